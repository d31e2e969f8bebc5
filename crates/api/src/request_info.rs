//! Identity of one request, and the fields of its log line.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use postroad_app::Peer;
use postroad_model::{AccountId, AccountKeyId, CredentialId, ServerId};
use tokio::time::Instant;
use uuid::Uuid;

use crate::request_id;

/// Id, peer and start time of a request, kept in its extensions.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    /// Id in the answer; the client's own if it is safe to log.
    pub(crate) id: Arc<str>,
    /// Generated id for the log: clients may send the same id twice.
    pub(crate) own_id: Uuid,
    pub(crate) peer: Peer,
    started_at: Instant,
}

impl RequestInfo {
    pub(crate) fn new(headers: &HeaderMap, peer: Peer) -> Self {
        let own_id = Uuid::new_v4();
        Self { id: request_id::of(headers, own_id), own_id, peer, started_at: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Time since the request arrived, in seconds with three decimals.
    pub(crate) fn seconds(&self) -> f64 {
        (self.started_at.elapsed().as_secs_f64() * 1e3).round() / 1e3
    }
}

/// Fields that an answer adds to the log line of its request, kept in the extensions of the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogFields {
    pub(crate) code: &'static str,
    pub(crate) caller: Option<LoggedCaller>,
}

/// The ids by which the log names a caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoggedCaller {
    pub(crate) server: Option<ServerId>,
    pub(crate) credential: Option<CredentialId>,
    pub(crate) account: Option<AccountId>,
    pub(crate) account_key: Option<AccountKeyId>,
}
