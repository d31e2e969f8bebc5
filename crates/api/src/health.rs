//! Health checks for load balancers and monitoring: `/health` (alive) and `/ready` (can accept and send mail).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::time::{Instant, timeout};

use crate::envelope::json_response;
use crate::readiness::Readiness;
use crate::state::ApiState;

pub(crate) const PATH: &str = "/health";
/// Timeout of each step of `/ready`: waiting for another check, the check itself, and reading the maintenance state.
const CHECK_TIME_MAX: Duration = Duration::from_secs(5);
/// The last result is repeated for this long, because a check writes to the disk and callers need no key.
const RESULT_LIFETIME: Duration = Duration::from_millis(500);

pub(crate) fn live() -> Response {
    json_response(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Answers 503 during maintenance, and, with the cause, while mail cannot be accepted or sent.
pub(crate) async fn ready(State(state): State<Arc<ApiState>>) -> Response {
    let Ok(mut last) = timeout(CHECK_TIME_MAX, state.readiness.0.lock()).await else {
        return answer(&Readiness::unavailable("the check takes too long"));
    };
    let readiness = match &*last {
        Some((at, readiness)) if at.elapsed() < RESULT_LIFETIME => readiness.clone(),
        _ => {
            let readiness = match timeout(CHECK_TIME_MAX, check(&state)).await {
                Ok(readiness) => readiness,
                Err(_) => Readiness::unavailable("the store does not answer"),
            };
            if let Some(cause) = &readiness.cause {
                tracing::warn!(cause, "/ready answers 503");
            }
            *last = Some((Instant::now(), readiness.clone()));
            readiness
        }
    };
    drop(last);
    if readiness.cause.is_some() {
        return answer(&readiness);
    }
    match timeout(CHECK_TIME_MAX, state.app.is_in_maintenance()).await {
        Ok(Ok(false)) => answer(&readiness),
        Ok(Ok(true)) => answer(&Readiness { status: "maintenance", ..readiness }),
        Ok(Err(_)) | Err(_) => answer(&Readiness::unavailable("the store cannot be read")),
    }
}

fn answer(readiness: &Readiness) -> Response {
    let code = if readiness.status == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_response(code, serde_json::to_string(readiness).expect("texts and numbers are JSON"))
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
    let mentions = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if mentions(&["bytes of disk are free", "disk is full", "no space left"]) {
        "the disk is full: the store cannot be written"
    } else if mentions(&["readonly", "read-only", "25006"]) {
        "the store is read-only"
    } else if mentions(&["permission denied"]) {
        "the store may not write to its files: permission denied"
    } else if mentions(&["disk i/o error"]) {
        "the disk cannot be written: the store reports an I/O error"
    } else {
        "the store cannot be written"
    }
}
