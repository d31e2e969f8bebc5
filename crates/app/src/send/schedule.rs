//! send/cancel and send/reschedule: change messages that are scheduled.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use postroad_boxed_futures::boxed_futures;
use postroad_model::{Limits, MessageId, ServerId, Status, Timestamp};
use postroad_store::{
    AuditSubject, Message, ScheduleChange, ScheduleChangeResult, ScheduledOf, Store, StoreError,
};
use tokio::time::Instant;

use super::options::check_time;
use crate::access::Operation;
use crate::{App, Caller, FieldProblem};

/// Maximum number of scheduled messages examined in one query.
const PAGE_MESSAGES_MAX: usize = 500;
/// Messages changed in one transaction.
const CHANGES_PER_TRANSACTION: usize = 100;
/// Maximum number of due messages that are changed concurrently; the store writes concurrent changes together.
const DUE_CHANGES_CONCURRENT_MAX: usize = 32;
/// Time limit of one call; the answer says where the next call continues.
const CALL_TIME_MAX: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub enum ScheduleRefusal {
    NotFound,
    /// The message has no `send_at`, or it was held or cancelled.
    NotScheduled,
    /// The message is being sent, or was tried already.
    TooLate,
    Validation(Vec<FieldProblem>),
    Store(StoreError),
}

impl From<StoreError> for ScheduleRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Numbers of messages of a tag or batch that one call found and changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleCounts {
    /// Messages that were found: scheduled, or due and not tried yet.
    pub matched: usize,
    pub changed: usize,
    /// Set if the call stopped early: the next call begins after this message.
    pub next: Option<MessageId>,
}

#[boxed_futures]
impl App {
    /// Parses the time of a reschedule: RFC 3339, within the next 30 days. A past time means now.
    pub fn parse_send_at(&self, text: &str) -> Result<Timestamp, FieldProblem> {
        let mut problems = Vec::new();
        let send_at = check_time("/send_at", Some(text), &mut problems);
        let now = self.inner.clock.now();
        let days = Limits::SEND_AT_DAYS_MAX;
        match send_at {
            Some(at) if at > now.plus(Duration::from_hours(days * 24)) => {
                Err(FieldProblem::new("/send_at", format!("`send_at` must be within the next {days} days")))
            }
            Some(at) => Ok(at.max(now)),
            None => Err(problems.swap_remove(0)),
        }
    }

    /// Cancels or reschedules one message. Returns its new state.
    pub async fn change_schedule(
        &self,
        caller: &Caller,
        id: MessageId,
        change: ScheduleChange,
    ) -> Result<Message, ScheduleRefusal> {
        let message = self.find_own_message(caller, id).await?;
        if message.send_at.is_none() {
            return Err(ScheduleRefusal::NotScheduled);
        }
        match message.status {
            Status::Scheduled | Status::Pending => {}
            Status::Held | Status::HoldCancelled | Status::Cancelled => {
                return Err(ScheduleRefusal::NotScheduled);
            }
            Status::SoftFail | Status::Sent | Status::HardFail | Status::Bounced => {
                return Err(ScheduleRefusal::TooLate);
            }
        }
        let store = self.audited_store_for_schedule(caller, change);
        match store
            .change_scheduled(caller.server_id, id, change, self.inner.simulator_domain.clone())
            .await?
        {
            ScheduleChangeResult::Done => self.find_own_message(caller, id).await,
            ScheduleChangeResult::TooLate => Err(ScheduleRefusal::TooLate),
            ScheduleChangeResult::ExpiresBefore(expires_at) => {
                let expires_at = expires_at.to_rfc3339();
                let message = format!("`send_at` must be before the message expires, at {expires_at}");
                Err(ScheduleRefusal::Validation(vec![FieldProblem::new("/send_at", message)]))
            }
        }
    }

    /// Moves the time of a scheduled message to now.
    pub async fn send_now(&self, caller: &Caller, id: MessageId) -> Result<Message, ScheduleRefusal> {
        self.change_schedule(caller, id, ScheduleChange::MoveTo(self.inner.clock.now())).await
    }

    fn audited_store_for_schedule(&self, caller: &Caller, change: ScheduleChange) -> Store {
        let operation = match change {
            ScheduleChange::Cancel => Operation::SendCancel,
            ScheduleChange::MoveTo(_) => Operation::SendReschedule,
        };
        self.audited_store(&caller.requester(), operation, AuditSubject::Messages(caller.server_id))
    }

    async fn find_own_message(&self, caller: &Caller, id: MessageId) -> Result<Message, ScheduleRefusal> {
        let found = self.inner.store.find_message(caller.server_id, id).await?;
        found.ok_or(ScheduleRefusal::NotFound)
    }

    /// Cancels or reschedules messages of a tag or batch that are still waiting: at most `limit`, with ids above
    /// `after`.
    pub async fn change_schedules(
        &self,
        caller: &Caller,
        of: ScheduledOf,
        change: ScheduleChange,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<ScheduleCounts, StoreError> {
        let (store, server_id) = (self.audited_store_for_schedule(caller, change), caller.server_id);
        let started_at = Instant::now();
        let mut counts = ScheduleCounts::default();
        let mut after = after.unwrap_or(MessageId(0));
        loop {
            let mut page =
                store.list_scheduled(server_id, of.clone(), change, after, PAGE_MESSAGES_MAX).await?;
            let limit_left = limit.saturating_sub(counts.matched);
            let is_cut = page.matching.len() > limit_left;
            page.matching.truncate(limit_left);
            counts.matched += page.matching.len();
            for chunk in page.matching.chunks(CHANGES_PER_TRANSACTION) {
                counts.changed += self.change_chunk(&store, server_id, chunk, change).await?;
            }
            let next = if is_cut { page.matching.last().copied() } else { page.next };
            let Some(next) = next else { return Ok(counts) };
            after = next;
            if started_at.elapsed() > CALL_TIME_MAX || counts.matched >= limit {
                return Ok(ScheduleCounts { next: Some(after), ..counts });
            }
        }
    }

    /// Changes scheduled messages in one transaction, and due messages, which may be claimed, each in its own
    /// transaction. Returns the number of changed messages.
    async fn change_chunk(
        &self,
        store: &Store,
        server_id: ServerId,
        messages: &[MessageId],
        change: ScheduleChange,
    ) -> Result<usize, StoreError> {
        let done = store.change_all_scheduled(server_id, messages.to_vec(), change).await?;
        let left = messages.iter().copied().filter(|id| !done.contains(id));
        let changes =
            left.map(|id| store.change_scheduled(server_id, id, change, self.inner.simulator_domain.clone()));
        let changed: Vec<ScheduleChangeResult> =
            stream::iter(changes).buffered(DUE_CHANGES_CONCURRENT_MAX).try_collect().await?;
        let changed = changed.into_iter().filter(|changed| *changed == ScheduleChangeResult::Done);
        Ok(done.len() + changed.count())
    }
}
