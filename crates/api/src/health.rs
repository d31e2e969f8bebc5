//! For load balancers and monitoring: is the process alive, and can it take calls.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use postroad_app::App;
use tokio::time::timeout;

use crate::endpoint::Door;
use crate::envelope::json;

pub(crate) const PATH: &str = "/health";
const STORE_WAIT_MAX: Duration = Duration::from_secs(5);

pub(crate) fn live() -> Response {
    json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// 503 while the store does not answer or maintenance is on.
pub(crate) async fn ready(State(door): State<Arc<Door>>) -> Response {
    match timeout(STORE_WAIT_MAX, check(&door.app)).await {
        Ok(Ok(false)) => json(StatusCode::OK, r#"{"status":"ok"}"#),
        Ok(Ok(true)) => json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"maintenance"}"#),
        Ok(Err(())) | Err(_) => json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"unavailable"}"#),
    }
}

/// Whether maintenance is on, if the store answers.
async fn check(app: &App) -> Result<bool, ()> {
    let cause = match app.check_store().await {
        Ok(()) => match app.is_in_maintenance().await {
            Ok(on) => return Ok(on),
            Err(cause) => cause,
        },
        Err(cause) => cause,
    };
    tracing::warn!(%cause, "not ready");
    Err(())
}
