//! The task that adds events up soon after they happened, and the catching up before a question is answered.
//! On failure (store unavailable) nothing is lost: the events are there, and counted at the next turn.

use std::time::Duration;

use postroad_model::ServerId;
use postroad_store::{CountingRules, Folded, StoreError};

use crate::App;

/// At most so often.
const PAUSE: Duration = Duration::from_secs(1);
/// Without being told of any event: there may be some of other nodes, or of transactions that took long.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// Batches of one server before the next one's turn.
const BATCHES_PER_TURN: usize = 50;
/// Batches that a question waits for: with more, it is answered as far as they are counted.
const BATCHES_PER_QUESTION: usize = 20;

/// The running task.
#[derive(Debug)]
pub struct Folder {
    task: tokio::task::JoinHandle<()>,
}

impl Folder {
    pub fn start(app: App) -> Self {
        let mut told = app.inner.store.told();
        let task = tokio::spawn(async move {
            loop {
                match app.fold_all().await {
                    Ok(()) => {}
                    Err(error) => tracing::warn!(%error, "counting is put off"),
                }
                tokio::time::sleep(PAUSE).await;
                // Neither an error nor the time-out needs to be told apart from an event.
                let _ = tokio::time::timeout(IDLE_PAUSE, told.changed()).await;
            }
        });
        Self { task }
    }

    pub fn stop(self) {
        self.task.abort();
    }
}

impl App {
    fn counting_rules(&self) -> CountingRules {
        CountingRules { simulator_domain: self.inner.simulator_domain.clone() }
    }

    async fn fold_all(&self) -> Result<(), StoreError> {
        let mut servers = self.inner.store.list_uncounted_servers().await?;
        while !servers.is_empty() {
            let mut unfinished = Vec::new();
            for server in servers {
                if self.fold(server, BATCHES_PER_TURN).await? == Folded::Some {
                    unfinished.push(server);
                }
            }
            servers = unfinished;
        }
        Ok(())
    }

    async fn fold(&self, server: ServerId, batches_max: usize) -> Result<Folded, StoreError> {
        let rules = self.counting_rules();
        for _ in 0..batches_max {
            match self.inner.store.fold_events(server, &rules).await? {
                Folded::Some => {}
                done => return Ok(done),
            }
        }
        Ok(Folded::Some)
    }

    /// Counts what a server's events are not counted of yet. False if there is more than a question should wait for.
    pub(super) async fn catch_up(&self, server: ServerId) -> Result<bool, StoreError> {
        let rules = self.counting_rules();
        for _ in 0..BATCHES_PER_QUESTION {
            match self.inner.store.fold_events(server, &rules).await? {
                Folded::AllDone => return Ok(true),
                // Another one was faster with this batch: on with the next.
                Folded::Some | Folded::Overtaken => {}
            }
        }
        Ok(false)
    }
}
