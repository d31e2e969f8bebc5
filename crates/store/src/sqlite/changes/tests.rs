//! Tests claims of messages whose changes are written but not committed.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;

use parking_lot::Mutex;
use postroad_model::{MessageId, ServerId, SystemClock, Timestamp};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::Key;
use crate::error::StoreError;
use crate::queue::waiting::EntryChange;
use crate::queue::{BeginRequest, BeginResult};
use crate::{Database, Engine, Result, Role, Settings, SqlOperationWithIds, Store};

const KEY: Key = (ServerId(1), MessageId(7));
const DUE_AT: Timestamp = Timestamp::from_micros(100);
const LATER: Timestamp = Timestamp::from_micros(200);

const REMOVE: &str = "DELETE FROM queue";
const RESCHEDULE: &str = "UPDATE queue SET due_at = 200";
const NOTHING: &str = "UPDATE queue SET due_at = due_at";

/// A store whose queue has one entry, which nobody has claimed.
struct Queue {
    store: Store,
    _folder: TempDir,
}

impl Queue {
    async fn with_an_entry() -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let store = Store::open(settings, Role::Tool, Arc::new(SystemClock)).await.expect("it opens");
        let text = "INSERT INTO queue (server_id, message_id, domain, due_at, attempts)
                    VALUES (1, 7, 'example.com', 100, 0)";
        let insert = store.write(move |sql| Box::pin(async move { sql.execute(text, &[]).await }));
        insert.await.expect("the store works");
        Self { store, _folder: folder }
    }

    /// Claims entries; returns their due times.
    async fn claim(&self) -> Vec<Timestamp> {
        let claimed = self.store.claim(Timestamp::from_micros(1_000), 10, crate::ClaimSkips::default()).await;
        claimed.expect("the store works").iter().map(|claimed| claimed.due_at).collect()
    }

    /// Begins the message; `false` if the answer is not `Go`.
    async fn begin(&self) -> bool {
        let entry =
            BeginRequest { server_id: KEY.0, message_id: KEY.1, due_at: DUE_AT, needs_message: false };
        let begun = self.store.begin(vec![entry]).await.expect("the store works").remove(0);
        matches!(begun, BeginResult::Go(_))
    }

    /// Starts a change; returns when the change is written, but not committed. `UncommittedChange::commit` commits it.
    async fn begin_change(&self, text: &'static str, effect: Result<EntryChange>) -> UncommittedChange {
        let (written_sender, written) = channel();
        let (commit, may_commit) = channel::<()>();
        let store = self.store.clone();
        let operation = operation(text, effect, Some((written_sender, Mutex::new(may_commit))));
        let task = tokio::spawn(async move { change(&store, operation).await });
        tokio::task::spawn_blocking(move || written.recv()).await.expect("no panic").expect("it is written");
        UncommittedChange { commit, task }
    }
}

struct UncommittedChange {
    commit: Sender<()>,
    task: JoinHandle<Result<(bool, EntryChange)>>,
}

impl UncommittedChange {
    async fn commit(self) -> Result<(bool, EntryChange)> {
        drop(self.commit);
        self.task.await.expect("no panic")
    }
}

/// Signals that the change is written, and waits until it may be committed.
type PauseBeforeCommit = (Sender<()>, Mutex<Receiver<()>>);

fn operation(
    text: &'static str,
    effect: Result<EntryChange>,
    pause: Option<PauseBeforeCommit>,
) -> SqlOperationWithIds<(bool, EntryChange)> {
    Box::new(move |sql, _| {
        Box::pin(async move {
            sql.execute(text, &[]).await?;
            if let Some((written_sender, may_commit)) = pause {
                written_sender.send(()).expect("somebody waits");
                // `recv` fails when the sender is dropped, which is the signal to commit.
                let _ = may_commit.lock().recv();
            }
            Ok((true, effect?))
        })
    })
}

async fn change(
    store: &Store,
    operation: SqlOperationWithIds<(bool, EntryChange)>,
) -> Result<(bool, EntryChange)> {
    match &*store.engine {
        Engine::Sqlite { engine, ids } => {
            let result_if_being_sent = false;
            engine.change_waiting(KEY, Arc::clone(ids), result_if_being_sent, operation).await
        }
        Engine::Postgres(_) => panic!("this is SQLite"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_is_being_cancelled_cannot_be_claimed() {
    let queue = Queue::with_an_entry().await;
    let cancel = queue.begin_change(REMOVE, Ok(EntryChange::Gone)).await;
    assert_eq!(queue.claim().await, [], "readers see the entry, but it is being cancelled");
    assert_eq!(cancel.commit().await.expect("the store works"), (true, EntryChange::Gone));
    assert_eq!(queue.claim().await, []);
    assert!(!queue.begin().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_is_being_rescheduled_is_claimed_for_its_new_time() {
    let queue = Queue::with_an_entry().await;
    let reschedule = queue.begin_change(RESCHEDULE, Ok(EntryChange::Queued(LATER))).await;
    assert_eq!(queue.claim().await, []);
    assert_eq!(reschedule.commit().await.expect("the store works"), (true, EntryChange::Queued(LATER)));
    assert_eq!(queue.claim().await, [LATER]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_a_claim_skipped_during_a_change_is_claimed_when_nothing_was_changed() {
    let queue = Queue::with_an_entry().await;
    let change = queue.begin_change(NOTHING, Ok(EntryChange::Unchanged)).await;
    assert_eq!(queue.claim().await, []);
    assert_eq!(change.commit().await.expect("the store works"), (true, EntryChange::Unchanged));
    assert_eq!(queue.claim().await, [DUE_AT]);
    assert!(queue.begin().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_a_claim_skipped_during_a_change_is_claimed_when_the_change_failed() {
    let queue = Queue::with_an_entry().await;
    let change = queue.begin_change(REMOVE, Err(StoreError::Internal("it fails".into()))).await;
    assert_eq!(queue.claim().await, []);
    change.commit().await.expect_err("it fails");
    assert_eq!(queue.claim().await, [DUE_AT]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_could_not_begin_during_a_change_is_unclaimed_when_nothing_was_changed() {
    let queue = Queue::with_an_entry().await;
    assert_eq!(queue.claim().await, [DUE_AT]);
    let change = queue.begin_change(NOTHING, Ok(EntryChange::Unchanged)).await;
    assert!(!queue.begin().await, "the change may end the claim");
    change.commit().await.expect("the store works");
    assert_eq!(
        queue.claim().await,
        [DUE_AT],
        "a caller that could not begin does not come back, so its claim has to end"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_is_released_during_a_change_is_unclaimed_when_nothing_was_changed() {
    let queue = Queue::with_an_entry().await;
    assert_eq!(queue.claim().await, [DUE_AT]);
    let change = queue.begin_change(NOTHING, Ok(EntryChange::Unchanged)).await;
    queue.store.release_claims(vec![KEY]).await.expect("the store works");
    assert_eq!(queue.claim().await, [], "the change may end the claim");
    change.commit().await.expect("the store works");
    assert_eq!(queue.claim().await, [DUE_AT]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_change_of_a_message_in_one_group_sees_the_first_change() {
    let queue = Queue::with_an_entry().await;
    let reschedule = queue.begin_change(RESCHEDULE, Ok(EntryChange::Queued(LATER))).await;
    let mut cancel = Box::pin(change(&queue.store, operation(REMOVE, Ok(EntryChange::Gone), None)));
    // Polled once, the cancellation waits for the writer, which takes it into the same group.
    let is_pending = poll_fn(|context| Poll::Ready(cancel.as_mut().poll(context).is_pending())).await;
    assert!(is_pending);
    assert_eq!(reschedule.commit().await.expect("the store works"), (true, EntryChange::Queued(LATER)));
    assert_eq!(cancel.await.expect("the store works"), (true, EntryChange::Gone), "it sees the new due time");
    assert_eq!(queue.claim().await, []);
}
