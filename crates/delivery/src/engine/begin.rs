//! Marks messages in the store as about to be sent, many in one call.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::{BeginRequest, BeginResult, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::EngineShared;
use crate::schedule::Entry;

const BATCH_MAX: usize = 256;
/// Suppressions were checked when a fresh message was accepted. After this time they are checked again before the
/// message is sent.
const FRESH_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Request {
    begin: BeginRequest,
    answer: oneshot::Sender<Result<BeginResult, StoreError>>,
}

/// Task that collects requests and passes them to the store.
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

    /// Runs until all senders of requests are dropped.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.requests.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let (begins, answers): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|request| (request.begin, request.answer)).unzip();
            // If a caller is gone, its answer is dropped, and its message is claimed again after a restart.
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
    pub(super) async fn begin(self: &Arc<Self>, entry: &Entry) -> Result<BeginResult, StoreError> {
        let now = self.clock.now();
        let begin = BeginRequest {
            server_id: entry.server_id,
            message_id: entry.message_id,
            due_at: entry.due_at,
            // Reading the message includes the check of suppressions, which may have changed while the message waited.
            // How long it waited is unknown if the clock went back.
            needs_message: entry.loaded_message.is_none()
                || now.since(entry.due_at) > FRESH_FOR
                || entry.due_at > now,
        };
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("the engine has stopped".into());
        self.begins.send(Request { begin, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}
