//! Table of all tracking routes.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::requests::{self, TrackingState, method_not_allowed};

pub(crate) fn routes(state: Arc<TrackingState>) -> Router {
    // `get` also accepts HEAD.
    Router::new()
        .route("/c/{token}", get(requests::click).fallback(method_not_allowed))
        .route("/o/{token}", get(requests::open).fallback(method_not_allowed))
        .route(
            "/u/{token}",
            get(requests::ask_to_unsubscribe).post(requests::unsubscribe).fallback(method_not_allowed),
        )
        .with_state(state)
}
