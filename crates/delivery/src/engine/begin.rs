//! Telling the store that messages go on the wire, many in one question.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::{Begin, Begun, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::EngineShared;
use crate::schedule::Entry;

const BATCH_MAX: usize = 256;
/// A fresh message's acceptance looked at the suppressions, and the store knows of those that came since; for so long that
/// is relied on.
const FRESH_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Request {
    begin: Begin,
    answer: oneshot::Sender<Result<Begun, StoreError>>,
}

/// The task that asks.
#[derive(Debug)]
pub(crate) struct BeginBatcher {
    requests: mpsc::Receiver<Request>,
    store: Store,
}

impl BeginBatcher {
    pub(crate) fn new(store: Store) -> (mpsc::Sender<Request>, Self) {
        let (sender, requests) = mpsc::channel(BATCH_MAX * 4);
        (sender, Self { requests, store })
    }

    /// Until nobody can ask any more.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.requests.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let (begins, answers): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|request| (request.begin, request.answer)).unzip();
            // Whoever asked may be gone; then the claim is found again after a restart.
            match self.store.begin(begins).await {
                Ok(begun) => begun.into_iter().zip(answers).for_each(|(begun, answer)| {
                    let _ = answer.send(Ok(begun));
                }),
                Err(error) => answers.into_iter().for_each(|answer| {
                    let _ = answer.send(Err(error.clone()));
                }),
            }
        }
    }
}

impl EngineShared {
    pub(super) async fn begin(self: &Arc<Self>, entry: &Entry) -> Result<Begun, StoreError> {
        let now = self.clock.now();
        let begin = Begin {
            server_id: entry.server_id,
            message_id: entry.message_id,
            due_at: entry.due_at,
            // What has waited for a while may be suppressed by now; how long is not known if the clock went back.
            needs_message: entry.work.is_none() || now.since(entry.due_at) > FRESH_FOR || entry.due_at > now,
        };
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("the engine has stopped".into());
        self.begins.send(Request { begin, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}
