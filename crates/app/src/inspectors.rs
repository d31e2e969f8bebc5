//! Request inspectors, for trying webhooks without a receiver: a URL of the service itself that accepts any request,
//! and a page that shows the newest requests, at most 50.
//!
//! Anybody who knows the URL can send requests, so their number and size are limited on each node.

use std::fmt;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp};
use postroad_store::{
    AuditSubject, InspectorRequest, KeyHash, NewInspector, NewInspectorRequest, StoreError,
};
use tokio::time::Instant;

use crate::access::Operation;
use crate::budget::{Budget, BudgetLimits, Reservation};
use crate::sealing::UnsealError;
use crate::secrets::{hash, new_key};
use crate::{App, Caller};

/// Maximum number of servers with an inspector. A further inspector replaces the oldest one of the account that has the
/// most.
const INSPECTORS_MAX: usize = 200;
const INSPECTOR_LIFETIME: Duration = Duration::from_hours(24);
/// Tokens of inspectors are shorter. Longer texts are refused without a look-up.
const TOKEN_BYTES_MAX: usize = 100;
/// An inspector takes 50 requests at once and 20 a second on each node, all inspectors together ten times as many: each
/// request is a transaction, and mail comes first. `BYTE_LIMITS` limits their size.
const REQUEST_LIMITS: BudgetLimits =
    BudgetLimits { all_max: 500, each_max: 50, refill: Duration::from_millis(2_500) };
/// An inspector takes 1 MiB at once and 128 KiB a second on each node, all inspectors together four times as much.
const BYTE_LIMITS: BudgetLimits =
    BudgetLimits { all_max: 4 << 20, each_max: 1 << 20, refill: Duration::from_secs(8) };
/// Interval of look-ups without a notice, if there may be other nodes: requests that arrive there do not notify this
/// node.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// An inspector as its page shows it.
#[derive(Clone)]
pub struct InspectorView {
    /// The secret part of the URL.
    pub token: String,
    pub expires_at: Timestamp,
    /// Newest first.
    pub requests: Vec<InspectorRequest>,
}

impl fmt::Debug for InspectorView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectorView").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The right to store one request to an inspector.
#[derive(Debug)]
pub struct AdmittedRequest {
    token_hash: KeyHash,
    bytes: Reservation<ServerId>,
}

#[derive(Debug, thiserror::Error)]
pub enum InspectorRefusal {
    #[error("no inspector has this token, or it has expired")]
    NotFound,
    /// The sender may try again after a second.
    #[error("the inspector gets too many requests")]
    TooManyRequests,
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for InspectorRefusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            other => Self::Store(other),
        }
    }
}

/// Budgets for what one node stores for inspectors.
#[derive(Debug)]
pub(crate) struct InspectorBudgets {
    requests: Budget<ServerId>,
    bytes: Budget<ServerId>,
}

impl InspectorBudgets {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { requests: Budget::new(REQUEST_LIMITS, now), bytes: Budget::new(BYTE_LIMITS, now) }
    }

    fn reserve(&self, server_id: ServerId, bytes_max: usize) -> Option<Reservation<ServerId>> {
        let now = Instant::now();
        self.requests.reserve(server_id, 1, now)?;
        self.bytes.reserve(server_id, bytes_max, now)
    }
}

#[boxed_futures]
impl App {
    /// Opens an inspector of the caller's server for a day. Does nothing if the inspector is open and its token can be
    /// unsealed.
    pub async fn open_inspector(&self, caller: &Caller) -> Result<(), StoreError> {
        let (server_id, token) = (caller.server_id, new_key());
        let open = self.inner.store.find_inspector(server_id).await?;
        let unreadable_token =
            open.map(|open| open.sealed_token).filter(|sealed| self.unseal(server_id, sealed).is_err());
        let new = NewInspector {
            server_id,
            account_id: caller.account_id,
            token_hash: hash(&token),
            sealed_token: self.inner.sealing_key.seal(&seal_purpose(server_id), token.as_bytes()),
            expires_at: self.inner.clock.now().plus(INSPECTOR_LIFETIME),
            unreadable_token,
        };
        let subject = AuditSubject::Inspector(server_id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksOpenInspector, subject);
        store.open_inspector(new, INSPECTORS_MAX).await.map(drop)
    }

    /// The inspector of a server, if one is open. An inspector whose token cannot be unsealed counts as none:
    /// `open_inspector` replaces it.
    pub async fn find_inspector(&self, server_id: ServerId) -> Result<Option<InspectorView>, StoreError> {
        let Some(found) = self.inner.store.find_inspector(server_id).await? else { return Ok(None) };
        match self.unseal(server_id, &found.sealed_token) {
            Ok(token) => {
                Ok(Some(InspectorView { token, expires_at: found.expires_at, requests: found.requests }))
            }
            Err(error) => {
                tracing::warn!(server.id = server_id.0, %error, "the address of a request inspector cannot be unsealed; opening the inspector again gives it a new address");
                Ok(None)
            }
        }
    }

    fn unseal(&self, server_id: ServerId, sealed_token: &[u8]) -> Result<String, UnsealError> {
        let token = self.inner.sealing_key.unseal(&seal_purpose(server_id), sealed_token)?;
        String::from_utf8(token).map_err(|_| UnsealError::Damaged)
    }

    /// One request to the inspector of a server.
    pub async fn find_inspector_request(
        &self,
        server_id: ServerId,
        number: u64,
    ) -> Result<Option<InspectorRequest>, StoreError> {
        self.inner.store.find_inspector_request(server_id, number).await
    }

    /// Removes the requests to the inspector of the caller's server.
    pub async fn clear_inspector(&self, caller: &Caller) -> Result<(), StoreError> {
        let subject = AuditSubject::Inspector(caller.server_id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksClearInspector, subject);
        store.clear_inspector(caller.server_id).await
    }

    /// Checks whether a request to this token may be stored; call it before reading the body. An unknown token costs
    /// one read. Tokens are looked up by their hash, so that the time of the look-up reveals nothing about them. The
    /// request will have at most `bytes_max` bytes to store; these count even if the request does not arrive.
    pub async fn admit_inspector_request(
        &self,
        token: &str,
        bytes_max: usize,
    ) -> Result<AdmittedRequest, InspectorRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(InspectorRefusal::NotFound);
        }
        let token_hash = hash(token);
        let found = self.inner.store.find_inspector_by_token(token_hash).await?;
        let server_id = found.ok_or(InspectorRefusal::NotFound)?;
        let reserved = self.inner.inspector_budgets.reserve(server_id, bytes_max);
        let bytes = reserved.ok_or(InspectorRefusal::TooManyRequests)?;
        Ok(AdmittedRequest { token_hash, bytes })
    }

    /// Stores a request. `NotFound` if the inspector has expired or was replaced meanwhile.
    pub async fn take_inspector_request(
        &self,
        admitted: AdmittedRequest,
        request: NewInspectorRequest,
    ) -> Result<(), InspectorRefusal> {
        let bytes = request.bytes();
        self.inner.store.take_inspector_request(admitted.token_hash, request).await?;
        self.inner.inspector_budgets.bytes.return_unused(admitted.bytes, bytes);
        Ok(())
    }

    /// Number that grows when a request arrives at a server's inspector, and when the inspector is cleared or opened;
    /// `None` if none is open.
    pub async fn count_inspector_changes(&self, server_id: ServerId) -> Result<Option<i64>, StoreError> {
        self.inner.store.count_inspector_changes(server_id).await
    }

    /// Waits at most `wait` until `count_inspector_changes` no longer returns `seen`. Returns the new count, or `seen`.
    pub async fn wait_for_inspector_change(
        &self,
        server_id: ServerId,
        seen: i64,
        wait: Duration,
    ) -> Result<Option<i64>, StoreError> {
        let store = &self.inner.store;
        let mut notices = store.inspector_notices(server_id);
        let mut stop = self.inner.waiting_calls.stop_signal();
        let deadline = Instant::now() + wait;
        let is_shared = store.may_have_other_nodes();
        loop {
            notices.mark_unchanged();
            let count = store.count_inspector_changes(server_id).await?;
            let is_over = count != Some(seen) || Instant::now() >= deadline;
            if is_over || *stop.borrow() {
                return Ok(count);
            }
            tokio::select! {
                _ = notices.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if is_shared => {}
                () = tokio::time::sleep_until(deadline) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// Purpose under which a token is sealed. A token copied into another server's row cannot be unsealed.
fn seal_purpose(server_id: ServerId) -> String {
    format!("inspector:{server_id}")
}
