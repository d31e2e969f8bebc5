//! Health checks for load balancers and monitoring: `/health` (alive) and `/ready` (can accept and send mail).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::time::{Instant, timeout};

use crate::envelope::json;
use crate::readiness::Readiness;
use crate::state::ApiState;

pub(crate) const PATH: &str = "/health";
/// Timeout of each step of `/ready`: waiting for another check, the check itself, and reading the maintenance state.
const CHECK_MAX: Duration = Duration::from_secs(5);
/// The last result is repeated for this long, because a check writes to the disk and callers need no key.
const RESULT_LIFETIME: Duration = Duration::from_millis(500);

pub(crate) fn live() -> Response {
    json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Answers 503 during maintenance, and, with the cause, while mail cannot be accepted or sent.
pub(crate) async fn ready(State(state): State<Arc<ApiState>>) -> Response {
    let Ok(mut last) = timeout(CHECK_MAX, state.readiness.0.lock()).await else {
        return answer(&Readiness::unavailable("the check takes too long"));
    };
    let checked = match &*last {
        Some((at, checked)) if at.elapsed() < RESULT_LIFETIME => checked.clone(),
        _ => {
            let checked = match timeout(CHECK_MAX, check(&state)).await {
                Ok(checked) => checked,
                Err(_) => Readiness::unavailable("the store does not answer"),
            };
            if let Some(cause) = &checked.cause {
                tracing::warn!(cause, "/ready answers 503");
            }
            *last = Some((Instant::now(), checked.clone()));
            checked
        }
    };
    drop(last);
    if checked.cause.is_some() {
        return answer(&checked);
    }
    match timeout(CHECK_MAX, state.app.is_in_maintenance()).await {
        Ok(Ok(false)) => answer(&checked),
        Ok(Ok(true)) => answer(&Readiness { status: "maintenance", ..checked }),
        Ok(Err(_)) | Err(_) => answer(&Readiness::unavailable("the store cannot be read")),
    }
}

fn answer(readiness: &Readiness) -> Response {
    let code = if readiness.status == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(code, serde_json::to_string(readiness).expect("texts and numbers are JSON"))
}

async fn check(state: &ApiState) -> Readiness {
    // The store's error text may name hosts and files, so it goes only into the log.
    if let Err(error) = state.app.check_store().await {
        tracing::warn!(%error, "store check failed: writes are refused");
        return Readiness::unavailable(store_cause(&error.to_string()));
    }
    let lag = match state.queue() {
        Some(queue) => match queue.health(state.app.now()).await {
            Ok(health) if health.problems.is_empty() => Some(health.lag.as_secs_f64()),
            Ok(health) => {
                let lag = Some(health.lag.as_secs_f64());
                let unavailable = Readiness::unavailable(&health.problems.join("; "));
                return Readiness { queue_lag_seconds: lag, ..unavailable };
            }
            Err(error) => {
                tracing::warn!(%error, "queue check failed: the queue cannot be read");
                return Readiness::unavailable("the queue cannot be read");
            }
        },
        None => None,
    };
    Readiness { status: "ok", cause: None, queue_lag_seconds: lag }
}

/// Public cause for an error text of the store, without names of hosts or files.
fn store_cause(error: &str) -> &'static str {
    let error = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if says(&["bytes of disk are free", "disk is full", "no space left"]) {
        "the disk is full: the store cannot be written"
    } else if says(&["readonly", "read-only", "25006"]) {
        "the store is read-only"
    } else if says(&["permission denied"]) {
        "the store may not write to its files: permission denied"
    } else if says(&["disk i/o error"]) {
        "the disk cannot be written: the store reports an I/O error"
    } else {
        "the store cannot be written"
    }
}
