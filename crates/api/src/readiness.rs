//! Result of `/ready`: whether mail can be accepted and sent, and the cause if not.

use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Last result of `/ready`; the lock allows one check at a time.
#[derive(Debug, Default)]
pub(crate) struct LastReadiness(pub(crate) Mutex<Option<(Instant, Readiness)>>);

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Readiness {
    pub(crate) status: &'static str,
    /// Why the service is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// How long the longest overdue message has been due, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_lag_seconds: Option<f64>,
}

impl Readiness {
    pub(crate) fn unavailable(cause: &str) -> Self {
        Self { status: "unavailable", cause: Some(cause.to_owned()), queue_lag_seconds: None }
    }
}
