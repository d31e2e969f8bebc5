//! Gathers accepts into batches: accepts that arrive while a batch is being written form the next one. Of each kind
//! (`BatchKind`), one batch is written at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::ServerId;
use tokio::sync::{mpsc, oneshot};

use super::accept::KeyScope;
use super::{BatchKind, Database, accept};
use crate::accept::hand_over::Sink;
use crate::accept::{Accepted, FreshMessages, NewSend};
use crate::error::StoreError;
use crate::idempotency::StoredAnswer;

const BATCH_SENDS_MAX: usize = 1_024;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Maximum number of sends that wait for their batch.
const QUEUE_LENGTH: usize = 4_096;
/// How long a send waits for room in the queue before it is refused.
const ENQUEUE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Result of a send for its caller.
type AcceptResult = Result<Accepted, StoreError>;

/// Result of a send in its batch, with the messages that were claimed for delivery.
type SendOutcome = Result<accept::AcceptOutcome, StoreError>;

#[derive(Debug)]
pub(super) struct Batcher {
    queue: mpsc::Sender<QueuedSend>,
}

/// A send that waits for its batch.
struct QueuedSend {
    send: NewSend,
    answer: oneshot::Sender<AcceptResult>,
}

impl Batcher {
    pub(super) fn start(database: Arc<Database>, kind: BatchKind) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_LENGTH);
        tokio::spawn(run_batches(database, kind, waiting));
        Self { queue }
    }

    pub(super) async fn accept(&self, send: NewSend) -> AcceptResult {
        let (answer, result) = oneshot::channel();
        let closed = || StoreError::Unavailable("the store is closed".into());
        match tokio::time::timeout(ENQUEUE_WAIT_MAX, self.queue.send(QueuedSend { send, answer })).await {
            Ok(Ok(())) => result.await.unwrap_or_else(|_| Err(closed())),
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(StoreError::Unavailable("too many messages are waiting".into())),
        }
    }
}

/// Accepts the sends of one `send/batch` request in one transaction: all of them or none.
pub(super) async fn accept_batch(database: &Database, sends: Vec<NewSend>) -> AcceptResult {
    let _guard = database.batch_lock.lock().await;
    let sink = database.hand_over.sink();
    // The batch stores its highest id in the same row as sends with a key. Only the last statement locks that row, so
    // the lock is short.
    let kind = BatchKind::AcceptWithKey;
    let outcomes = accept::accept(database, kind, &sends, KeyScope::First, sink.as_ref()).await?;
    let mut accepted = Err(StoreError::Internal("the batch has no sends".into()));
    for (send, outcome) in sends.into_iter().zip(outcomes) {
        hand_over(sink.as_ref(), send, &outcome);
        accepted = Ok(outcome.accepted);
    }
    accepted
}

/// Writes batches until the engine is dropped and every waiting send is answered.
async fn run_batches(database: Arc<Database>, kind: BatchKind, mut waiting: mpsc::Receiver<QueuedSend>) {
    while let Some(first) = waiting.recv().await {
        let mut bytes = first.send.weight();
        let mut batch = vec![first];
        while batch.len() < BATCH_SENDS_MAX && bytes < BATCH_BYTES_MAX {
            let Ok(another) = waiting.try_recv() else { break };
            bytes += another.send.weight();
            batch.push(another);
        }
        write_batch(&database, kind, batch).await;
    }
}

/// Accepts the sends of a batch, answers their callers, and hands claimed messages over to delivery.
async fn write_batch(database: &Database, kind: BatchKind, mut batch: Vec<QueuedSend>) {
    let repeats = split_off_repeats(&mut batch);
    let (sends, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|queued| (queued.send, queued.answer)).unzip();
    let sink = database.hand_over.sink();
    let outcomes = accept_all(database, kind, &sends, sink.as_ref()).await;
    if !repeats.is_empty() {
        answer_repeats(repeats, &sends, &outcomes);
    }
    for ((send, answer), outcome) in sends.into_iter().zip(answers).zip(outcomes) {
        let accepted = outcome.map(|outcome| {
            hand_over(sink.as_ref(), send, &outcome);
            outcome.accepted
        });
        // The caller may have disconnected; its message is accepted anyway.
        let _ = answer.send(accepted);
    }
}

fn hand_over(sink: Option<&Sink>, send: NewSend, outcome: &accept::AcceptOutcome) {
    if let Some(sink) = sink.filter(|_| !outcome.claimed.is_empty()) {
        sink.take(FreshMessages::of(send, &outcome.claimed));
    }
}

/// Removes sends whose idempotency key is already in the batch; they get the outcome of the first send with that key.
fn split_off_repeats(batch: &mut Vec<QueuedSend>) -> Vec<QueuedSend> {
    let mut seen = HashSet::new();
    let is_repeated = |queued: &mut QueuedSend| {
        let key = queued.send.idempotency.as_ref();
        key.is_some_and(|key| !seen.insert((queued.send.info.server_id, key.key.clone())))
    };
    batch.extract_if(.., is_repeated).collect()
}

fn answer_repeats(repeats: Vec<QueuedSend>, sends: &[NewSend], outcomes: &[SendOutcome]) {
    let firsts: HashMap<(ServerId, &str), AcceptResult> = sends
        .iter()
        .zip(outcomes)
        .filter_map(|(send, outcome)| {
            let key = send.idempotency.as_ref()?;
            let repeated = outcome.clone().map(|outcome| match outcome.accepted {
                Accepted::Stored(_) => Accepted::Repeated(StoredAnswer {
                    fingerprint: key.fingerprint,
                    answer: key.answer.clone(),
                }),
                repeated @ Accepted::Repeated(_) => repeated,
            });
            Some(((send.info.server_id, key.key.as_str()), repeated))
        })
        .collect();
    for QueuedSend { send, answer } in repeats {
        let key = send.idempotency.as_ref().map(|key| (send.info.server_id, key.key.as_str()));
        let first = key.and_then(|key| firsts.get(&key)).cloned();
        let _ = answer.send(first.unwrap_or(Err(StoreError::KeyInUse)));
    }
}

/// One outcome for each of `sends`.
async fn accept_all(
    database: &Database,
    kind: BatchKind,
    sends: &[NewSend],
    sink: Option<&Sink>,
) -> Vec<SendOutcome> {
    let error = match accept::accept(database, kind, sends, KeyScope::Each, sink).await {
        Ok(outcomes) => return outcomes.into_iter().map(Ok).collect(),
        Err(error) => error,
    };
    let is_outage =
        |error: &StoreError| matches!(error, StoreError::Unavailable(_)) && !error.is_lock_timeout();
    if is_outage(&error) {
        tracing::error!(%error, sends = sends.len(), "writing a batch of sends failed; their senders get HTTP 503 or SMTP 451");
    }
    if is_outage(&error) || sends.len() == 1 {
        return sends.iter().map(|_| Err(error.clone())).collect();
    }
    // One of the sends causes the failure (a key in use elsewhere, a locked row, or a bug): each send is tried in its
    // own transaction, so that the other sends succeed.
    let mut outcomes: Vec<SendOutcome> = Vec::with_capacity(sends.len());
    let mut outage = None;
    // Wait once for a server whose row is locked, not once for each of its sends.
    let mut locked: HashMap<ServerId, StoreError> = HashMap::new();
    for send in sends {
        let server_id = send.info.server_id;
        let outcome = match outage.as_ref().or_else(|| locked.get(&server_id)) {
            Some(error) => Err(StoreError::clone(error)),
            None => accept::accept(database, kind, std::slice::from_ref(send), KeyScope::Each, sink)
                .await
                .map(|mut outcomes| outcomes.remove(0)),
        };
        if let Err(error) = &outcome {
            if is_outage(error) {
                outage = Some(error.clone());
            } else if error.is_lock_timeout() {
                locked.insert(server_id, error.clone());
            }
        }
        outcomes.push(outcome);
    }
    outcomes
}
