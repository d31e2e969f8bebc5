//! Worker of one endpoint while it has posts: claims a few events, posts as many at once as its pacing allows,
//! and ends when nothing is due.
//!
//! On SQLite a claim is only a read, so a worker remembers its events (`claimed`) until their outcomes are stored.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::EventId;
use postroad_store::{StoreError, Webhook, WebhookNext, WebhookOutcome, WebhookWork};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::permits::PermitClass;
use super::{EndpointKey, POLL_INTERVAL, SharedPacing, WorkerShared, worker_pause_end};
use crate::RetrySettings;
use crate::post::PostResult;
use crate::retry::{Consequence, DisableDecision, FailedAttempt};

/// Maximum number of posts whose outcomes are not stored yet; at this number no further posts are started.
const UNSETTLED_MAX: usize = 64;
/// Longest wait for a permit. A claim expires after two minutes, of which the event may already have spent some in the
/// worker's queue.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(45);
/// A post to a new endpoint moves to the permits for slow posts if it has no answer after this time.
const QUICK_ANSWER_MAX: Duration = Duration::from_millis(500);
/// Like `QUICK_ANSWER_MAX`, for an endpoint that has answered well before.
const QUICK_ANSWER_MAX_OF_PROVEN: Duration = Duration::from_secs(2);
/// A post without an answer is given up after this time if no further permit of its class is free, in total or for its
/// server.
const TIMEOUT_WITHOUT_PERMITS: Duration = Duration::from_secs(5);
/// Like `TIMEOUT_WITHOUT_PERMITS`, for an endpoint that has answered well before.
const TIMEOUT_WITHOUT_PERMITS_OF_PROVEN: Duration = Duration::from_secs(10);
/// Pause of an endpoint after the store refused an outcome. Without the pause the event would be posted again at once.
const REFUSED_OUTCOME_PAUSE: Duration = Duration::from_mins(5);
/// Pause after a notice of new events, so that several events are claimed together.
const CLAIM_DELAY: Duration = Duration::from_millis(20);

pub(super) struct EndpointWorker {
    shared: Arc<WorkerShared>,
    key: EndpointKey,
    pacing: SharedPacing,
    stopping: watch::Receiver<bool>,
    /// Notified when the server has new events.
    notices: watch::Receiver<u64>,
    queue: VecDeque<WebhookWork>,
    /// Events whose outcomes are not stored yet.
    claimed: HashSet<EventId>,
    /// Posts in progress; aborted together with the worker's own task.
    posts: JoinSet<(Arc<Webhook>, Result<PostResult, NoPermit>)>,
    /// Outcomes that are being stored, with the ids of their events.
    settling: JoinSet<EventId>,
}

/// The event with this id got no permit for its post: the wait was too long, or the service stops.
struct NoPermit(EventId);

/// Why a worker ends.
enum EndReason {
    /// No event is due, the endpoint pauses, somebody disabled or deleted the webhook, or the service stops.
    NothingToPost,
    /// The webhook must be disabled because of its endpoint's answers.
    MustDisable(DisableDecision),
}

impl EndpointWorker {
    pub(super) fn new(
        shared: Arc<WorkerShared>,
        key: EndpointKey,
        pacing: SharedPacing,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let notices = shared.store.server_event_notices(key.0);
        Self {
            shared,
            key,
            pacing,
            stopping,
            notices,
            queue: VecDeque::new(),
            claimed: HashSet::new(),
            posts: JoinSet::new(),
            settling: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self) -> EndpointKey {
        let (key, shared) = (self.key, Arc::clone(&self.shared));
        let (server_id, webhook_id) = key;
        let end_reason = self.post_due_events().await;
        // Posts in progress are finished and stored, whatever ended the worker.
        let mut unposted: Vec<EventId> = self.queue.drain(..).map(|work| work.event.id).collect();
        while let Some(ended) = self.posts.join_next().await {
            match ended {
                Ok((_, Ok(post))) => drop(self.evaluate(None, post)),
                Ok((_, Err(NoPermit(event_id)))) => unposted.push(event_id),
                Err(_) => {}
            }
        }
        while self.settling.join_next().await.is_some() {}
        if let Err(error) = shared.store.release_webhook_work(server_id, webhook_id, unposted).await {
            tracing::debug!(%error, webhook.id = webhook_id.0, "releasing claims of a webhook failed; they expire after two minutes");
        }
        match end_reason {
            Ok(EndReason::NothingToPost) => {}
            Ok(EndReason::MustDisable(decision)) => disable(&shared, key, decision).await,
            Err(error) => {
                tracing::warn!(%error, webhook.id = webhook_id.0, "webhook worker failed; it starts again after a pause");
                let now = self.shared.clock.now();
                self.pacing.lock().pause(worker_pause_end(now));
            }
        }
        key
    }

    /// Claims and posts events until the worker has a reason to end.
    async fn post_due_events(&mut self) -> Result<EndReason, StoreError> {
        let mut webhook = None;
        let mut has_posted = false;
        loop {
            if *self.stopping.borrow() || self.pacing.lock().is_paused(self.shared.clock.now()) {
                return Ok(EndReason::NothingToPost);
            }
            self.notices.mark_unchanged();
            let free = self.free_slots();
            if free > 0 && self.queue.is_empty() {
                let Some(found) = self.claim().await? else { return Ok(EndReason::NothingToPost) };
                webhook = Some(found);
            }
            if let Some(webhook) = &webhook {
                for work in self.queue.drain(..free.min(self.queue.len())) {
                    has_posted = true;
                    let is_failing = self.pacing.lock().is_failing();
                    let stopping = self.stopping.clone();
                    let shared = Arc::clone(&self.shared);
                    self.posts.spawn(post_claimed(shared, Arc::clone(webhook), is_failing, work, stopping));
                }
            }
            if self.posts.is_empty() && self.settling.is_empty() {
                if !has_posted {
                    self.pacing.lock().pause(worker_pause_end(self.shared.clock.now()));
                }
                return Ok(EndReason::NothingToPost);
            }
            let may_have_more = self.queue.is_empty() && self.free_slots() > 0;
            tokio::select! {
                () = until_notice(&mut self.notices), if may_have_more => {}
                // If a post panics, its event stays claimed: on SQLite until the worker ends, on PostgreSQL until the
                // claim expires. Then the event is posted again.
                Some(ended) = self.posts.join_next() => {
                    match ended {
                        Ok((webhook, Ok(post))) => {
                            if let Some(decision) = self.evaluate(Some(&webhook), post) {
                                return Ok(EndReason::MustDisable(decision));
                            }
                        }
                        Ok((_, Err(NoPermit(event_id)))) => self.release(event_id).await?,
                        Err(_) => {}
                    }
                }
                Some(stored) = self.settling.join_next() => {
                    if let Ok(stored) = stored {
                        self.claimed.remove(&stored);
                    }
                }
            }
        }
    }

    /// Number of further posts that may start now.
    fn free_slots(&self) -> usize {
        if self.settling.len() >= UNSETTLED_MAX {
            return 0;
        }
        self.pacing.lock().window().saturating_sub(self.posts.len())
    }

    /// Claims events into the queue; `None` if the webhook is disabled or deleted.
    async fn claim(&mut self) -> Result<Option<Arc<Webhook>>, StoreError> {
        let (server_id, id) = self.key;
        let found = self.shared.store.find_webhook(server_id, id).await?;
        let Some(webhook) = found.filter(|webhook| webhook.enabled) else { return Ok(None) };
        let limit = self.pacing.lock().window() * 2;
        let claimed = self.claimed.iter().copied().collect();
        let works = self.shared.store.claim_webhook_work(server_id, id, limit, claimed).await?;
        self.claimed.extend(works.iter().map(|work| work.event.id));
        self.queue.extend(works);
        Ok(Some(Arc::new(webhook)))
    }

    /// Releases an event, so that the next worker with a permit can post it, also on another node.
    async fn release(&mut self, event_id: EventId) -> Result<(), StoreError> {
        let (server_id, id) = self.key;
        self.shared.store.release_webhook_work(server_id, id, vec![event_id]).await?;
        self.claimed.remove(&event_id);
        Ok(())
    }

    /// Evaluates a post and passes its outcome to the settler. Returns the cause if the endpoint must be disabled.
    /// `webhook` says since when the endpoint has been failing; it is `None` while the worker ends, because then the
    /// result is ignored.
    fn evaluate(&mut self, webhook: Option<&Webhook>, post: PostResult) -> Option<DisableDecision> {
        let now = self.shared.clock.now();
        let mut decision = None;
        let next = if post.is_delivered {
            self.pacing.lock().record_success();
            WebhookNext::Done
        } else if post.unsupported_in_format {
            WebhookNext::UnsupportedInFormat
        } else {
            self.pacing.lock().record_failure(post.attempt.at, now);
            let failed = FailedAttempt {
                at: now,
                attempts: post.attempt.number,
                status: post.attempt.status,
                retry_after: post.retry_after.as_deref(),
                failing_since: webhook.and_then(|webhook| webhook.failing_since),
            };
            if let Some(until) = RetrySettings::requested_pause_end(failed) {
                self.pacing.lock().pause_at_least(until);
            }
            decision = self.shared.settings.retry.find_disable_decision(failed);
            match self.shared.settings.retry.consequence(failed, rand::random()) {
                Consequence::RetryAt(at) => WebhookNext::RetryAt(at),
                Consequence::GiveUp => WebhookNext::GiveUp,
            }
        };
        let (server_id, webhook_id) = self.key;
        let (shared, pacing, event_id) =
            (Arc::clone(&self.shared), self.pacing.clone(), post.attempt.event_id);
        let outcome = WebhookOutcome { server_id, webhook_id, attempt: post.attempt, next };
        self.settling.spawn(async move {
            if !shared.settler.settle(outcome).await {
                pacing.lock().pause_at_least(shared.clock.now().plus(REFUSED_OUTCOME_PAUSE));
            }
            event_id
        });
        decision
    }
}

async fn disable(shared: &WorkerShared, (server_id, id): EndpointKey, decision: DisableDecision) {
    let DisableDecision { reason, failing_before } = decision;
    match shared.store.disable_webhook(server_id, id, reason.clone(), failing_before).await {
        Ok(true) => {
            tracing::info!(server.id = server_id.0, webhook.id = id.0, reason, "webhook disabled");
        }
        // Another node disabled the webhook first, or a post succeeded meanwhile.
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(%error, webhook.id = id.0, "disabling a webhook failed; the next failed post tries again");
        }
    }
}

/// Waits until posts may be due: until this node adds an event, or for `POLL_INTERVAL`, because other nodes may add
/// events and retries may become due.
async fn until_notice(notices: &mut watch::Receiver<u64>) {
    if tokio::time::timeout(POLL_INTERVAL, notices.changed()).await.is_ok() {
        tokio::time::sleep(CLAIM_DELAY).await;
    }
}

async fn post_claimed(
    shared: Arc<WorkerShared>,
    webhook: Arc<Webhook>,
    is_failing: bool,
    work: WebhookWork,
    mut stopping: watch::Receiver<bool>,
) -> (Arc<Webhook>, Result<PostResult, NoPermit>) {
    let class = shared.class_of(&webhook, is_failing);
    let permit = tokio::select! {
        biased;
        _ = stopping.wait_for(|stop| *stop) => None,
        permit = shared.permits.acquire(webhook.server_id, class) => Some(permit),
        () = tokio::time::sleep(PERMIT_WAIT_MAX) => None,
    };
    let Some(mut permit) = permit else { return (webhook, Err(NoPermit(work.event.id))) };
    let (quick_answer_max, timeout_without_permits) = match class {
        PermitClass::Proven => (QUICK_ANSWER_MAX_OF_PROVEN, TIMEOUT_WITHOUT_PERMITS_OF_PROVEN),
        _ => (QUICK_ANSWER_MAX, TIMEOUT_WITHOUT_PERMITS),
    };
    let (preempt_sender, preempt_receiver) = oneshot::channel();
    let mut preempt_sender = Some(preempt_sender);
    let preempted = async {
        if preempt_receiver.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let begun = Instant::now();
    let post = {
        let mut posting = pin!(shared.poster.post(&webhook, work.event, work.attempts, preempted));
        loop {
            if let Ok(post) = tokio::time::timeout(quick_answer_max, &mut posting).await {
                break post;
            }
            permit = shared.permits.move_to_slow(permit);
            if begun.elapsed() >= timeout_without_permits
                && shared.permits.is_exhausted(&permit)
                && let Some(sender) = preempt_sender.take()
            {
                // Fails if the post has its answer by now.
                let _ = sender.send(());
            }
        }
    };
    (webhook, Ok(post))
}
