//! Retries, releases, cancels and erases messages by their ids.

use futures_util::StreamExt as _;
use futures_util::stream;
use postroad_model::{LimitPeriod, MessageId, ServerId, Status, SuppressionReason, Timestamp};
use postroad_store::{
    AuditSubject, CancelResult, EraseResult, JobKind, RetryResult, Store, StoreError, WaitingFor,
};

use crate::access::Operation;
use crate::{App, Caller};

/// Maximum number of messages of one call that are changed concurrently; the store writes concurrent changes together.
const CONCURRENT_CHANGES_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAction {
    /// Attempt a queued or delayed message now; not a scheduled one.
    Retry,
    /// Queue a held message.
    Release,
    /// Cancel a held message.
    CancelHold,
    /// Cancel a scheduled message.
    CancelScheduled,
    /// Erase the personal data of a message; a waiting one is cancelled first.
    Erase,
}

impl MessageAction {
    pub(super) const fn job_kind(self) -> JobKind {
        match self {
            Self::Retry => JobKind::Retry,
            Self::Release => JobKind::Release,
            Self::CancelHold => JobKind::CancelHold,
            Self::CancelScheduled => JobKind::CancelScheduled,
            Self::Erase => JobKind::Erase,
        }
    }

    const fn operation(self) -> Operation {
        match self {
            Self::Retry => Operation::MessagesRetry,
            Self::Release => Operation::MessagesRelease,
            Self::CancelHold => Operation::MessagesCancelHold,
            Self::CancelScheduled => Operation::SendCancel,
            Self::Erase => Operation::MessagesErase,
        }
    }

    /// Statuses in which this action can change a message.
    pub(super) const fn statuses(self) -> &'static [Status] {
        match self {
            Self::Retry => &[Status::Pending, Status::SoftFail],
            Self::Release | Self::CancelHold => &[Status::Held],
            Self::CancelScheduled => &[Status::Scheduled],
            Self::Erase => &Status::ALL,
        }
    }
}

/// Why a message was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ActionFailure {
    #[error("No message found matching provided ID")]
    NotFound,
    #[error(
        "The message is not waiting for an attempt; to send a scheduled message earlier, use send/reschedule"
    )]
    NotQueued,
    #[error("The message is not held")]
    NotHeld,
    #[error("The message is not scheduled")]
    NotScheduled,
    #[error("The recipient is suppressed ({reason} since {since}): remove the suppression first", since = since.to_rfc3339())]
    Suppressed { reason: SuppressionReason, since: Timestamp },
    #[error("The server's limit of {limit} messages an hour is reached: release it in the next hour")]
    HourlyLimitReached { limit: u32 },
    #[error(
        "The operator or the account made this a development server, which sends nothing: ask them to make it live"
    )]
    DevelopmentOnly,
    #[error("The account's limit of {limit} messages {} is reached: release it when the limit has room again", period.with_article())]
    AccountLimitReached { limit: u32, period: LimitPeriod },
    #[error("The message is being sent at this moment")]
    InDelivery,
    #[error(
        "Nothing was erased: other recipients of the same message are still queued or held. Erase it when they are sent or cancelled"
    )]
    TextNeeded,
    #[error(transparent)]
    Store(StoreError),
}

impl ActionFailure {
    /// `None` for store failures, which say nothing about the message.
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound => "MessageNotFound",
            Self::NotQueued => "MessageNotQueued",
            Self::NotHeld => "MessageNotHeld",
            Self::NotScheduled => "MessageNotScheduled",
            Self::Suppressed { .. } => "RecipientSuppressed",
            Self::HourlyLimitReached { .. } => "HourlyLimitReached",
            Self::DevelopmentOnly => "DevelopmentServer",
            Self::AccountLimitReached { .. } => "AccountLimitReached",
            Self::InDelivery => "MessageInDelivery",
            Self::TextNeeded => "MessageTextNeeded",
            Self::Store(_) => return None,
        })
    }
}

impl From<StoreError> for ActionFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl App {
    /// Changes several messages independently of each other; results are in the order of `ids`. Fails only if the store
    /// fails. Erasing reads many rows for each message, so an erasure counts as a long read.
    pub async fn change_messages(
        &self,
        caller: &Caller,
        action: MessageAction,
        ids: Vec<MessageId>,
    ) -> Result<Vec<(MessageId, Result<(), ActionFailure>)>, StoreError> {
        let _permit = match action {
            MessageAction::Erase => Some(self.inner.long_reads.permit(caller.account_id).await),
            _ => None,
        };
        self.change_all(&self.audited_store_for_action(caller, action), caller.server_id, action, ids).await
    }

    pub async fn change_message(
        &self,
        caller: &Caller,
        action: MessageAction,
        id: MessageId,
    ) -> Result<(), ActionFailure> {
        let (store, server_id) = (self.audited_store_for_action(caller, action), caller.server_id);
        self.change_one(&store, server_id, action, id).await?;
        Ok(self.after_changes(server_id, action).await?)
    }

    /// Cancels a queued or delayed message, unless it is being sent. Scheduled and held messages are cancelled by a
    /// `MessageAction`.
    pub async fn cancel_queued(&self, caller: &Caller, id: MessageId) -> Result<(), ActionFailure> {
        let subject = AuditSubject::Messages(caller.server_id);
        let store = self.audited_store(&caller.requester(), Operation::MessagesCancel, subject);
        let failure = match store.cancel_if(caller.server_id, id, WaitingFor::Delivery).await? {
            CancelResult::Done(_) => return Ok(()),
            CancelResult::TooLate => ActionFailure::InDelivery,
            CancelResult::NotWaiting => ActionFailure::NotQueued,
        };
        match store.find_message_summary(caller.server_id, id).await? {
            Some(_) => Err(failure),
            None => Err(ActionFailure::NotFound),
        }
    }

    /// The store, with an entry in the audit log for each message that is changed and each job that begins.
    pub(super) fn audited_store_for_action(&self, caller: &Caller, action: MessageAction) -> Store {
        let subject = AuditSubject::Messages(caller.server_id);
        self.audited_store(&caller.requester(), action.operation(), subject)
    }

    pub(super) async fn change_all(
        &self,
        store: &Store,
        server_id: ServerId,
        action: MessageAction,
        ids: Vec<MessageId>,
    ) -> Result<Vec<(MessageId, Result<(), ActionFailure>)>, StoreError> {
        let changes = ids
            .into_iter()
            .map(|id| async move { (id, self.change_one(store, server_id, action, id).await) });
        let changed: Vec<_> = stream::iter(changes).buffered(CONCURRENT_CHANGES_MAX).collect().await;
        if changed.iter().any(|(_, result)| result.is_ok()) {
            self.after_changes(server_id, action).await?;
        }
        let mut results = Vec::with_capacity(changed.len());
        for (id, result) in changed {
            match result {
                Err(ActionFailure::Store(error)) => return Err(error),
                result => results.push((id, result)),
            }
        }
        Ok(results)
    }

    /// After an erasure, removes the requests to the server's inspector: webhooks of the server may have posted
    /// recipients and subjects to the inspector.
    async fn after_changes(&self, server_id: ServerId, action: MessageAction) -> Result<(), StoreError> {
        match action {
            MessageAction::Erase => self.inner.store.forget_inspector_requests(server_id).await,
            MessageAction::Retry
            | MessageAction::Release
            | MessageAction::CancelHold
            | MessageAction::CancelScheduled => Ok(()),
        }
    }

    async fn change_one(
        &self,
        store: &Store,
        server_id: ServerId,
        action: MessageAction,
        id: MessageId,
    ) -> Result<(), ActionFailure> {
        let failure = match action {
            MessageAction::Retry | MessageAction::Release => {
                let waiting_for = match action {
                    MessageAction::Retry => WaitingFor::Delivery,
                    _ => WaitingFor::Release,
                };
                match store.retry_if(server_id, id, waiting_for, self.inner.simulator_domain.clone()).await? {
                    RetryResult::Now | RetryResult::Released => return Ok(()),
                    RetryResult::Suppressed { reason, since } => ActionFailure::Suppressed { reason, since },
                    RetryResult::OverHourlyLimit { limit } => ActionFailure::HourlyLimitReached { limit },
                    RetryResult::DevelopmentOnly => ActionFailure::DevelopmentOnly,
                    RetryResult::OverAccountLimit { limit, period } => {
                        ActionFailure::AccountLimitReached { limit, period }
                    }
                    RetryResult::TooLate => ActionFailure::InDelivery,
                    RetryResult::NotWaiting if action == MessageAction::Retry => ActionFailure::NotQueued,
                    RetryResult::NotWaiting => ActionFailure::NotHeld,
                }
            }
            MessageAction::CancelHold => match store.cancel_if(server_id, id, WaitingFor::Release).await? {
                CancelResult::Done(_) => return Ok(()),
                // `TooLate`: a held message is never being sent, so the message was queued meanwhile.
                CancelResult::TooLate | CancelResult::NotWaiting => ActionFailure::NotHeld,
            },
            MessageAction::CancelScheduled => {
                match store.cancel_if(server_id, id, WaitingFor::SendTime).await? {
                    CancelResult::Done(_) => return Ok(()),
                    CancelResult::TooLate => ActionFailure::InDelivery,
                    CancelResult::NotWaiting => ActionFailure::NotScheduled,
                }
            }
            MessageAction::Erase => {
                let cancelled = self.cancel_to_erase(store, server_id, id).await?;
                if cancelled == CancelResult::TooLate {
                    ActionFailure::InDelivery
                } else {
                    match store.erase_message(server_id, id).await? {
                        EraseResult::Done => return Ok(()),
                        EraseResult::StillNeeded => ActionFailure::TextNeeded,
                        EraseResult::NotFound => return Err(ActionFailure::NotFound),
                    }
                }
            }
        };
        match store.find_message_summary(server_id, id).await? {
            Some(_) => Err(failure),
            None => Err(ActionFailure::NotFound),
        }
    }

    /// Cancels a message that is to be erased. The audit entry of the erasure covers the cancellation, unless the
    /// erasure is refused.
    async fn cancel_to_erase(
        &self,
        store: &Store,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<CancelResult, StoreError> {
        let is_refused = store.erasure_only_cancels(server_id, id).await?;
        let store = if is_refused { store } else { &self.inner.store };
        store.cancel_if(server_id, id, WaitingFor::Anything).await
    }
}
