//! Every route on one page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{any, get};
use postroad_model::Scope;

use crate::endpoint::{self, Access, Door};
use crate::{analytics, events, health, messages, openapi, own_server, send, suppressions, webhooks};

/// The four endpoints of the specification take other methods too, for existing clients.
const SEND: Access = Access { scope: Scope::Send, methods: METHODS_OF_SPEC };
const READ_MESSAGES: Access = Access { scope: Scope::Read, methods: METHODS_OF_SPEC };
const READ: Access = Access { scope: Scope::Read, methods: "POST" };
const FULL: Access = Access { scope: Scope::Full, methods: "POST" };
const METHODS_OF_SPEC: &str = "POST, GET, PUT, PATCH";

/// How handlers get what they work with.
type Shared = State<Arc<Door>>;

pub(crate) fn router(door: Arc<Door>) -> Router {
    Router::new()
        .route("/api/v1/send/message", any(send_message))
        .route("/api/v1/send/raw", any(send_raw))
        .route("/api/v1/messages/message", any(message))
        .route("/api/v1/messages/deliveries", any(deliveries))
        .route("/api/v1/analytics/summary", any(analytics_summary))
        .route("/api/v1/analytics/timeseries", any(analytics_timeseries))
        .route("/api/v1/analytics/top", any(analytics_top))
        .route("/api/v1/analytics/message", any(analytics_message))
        .route("/api/v1/webhooks/create", any(create_webhook))
        .route("/api/v1/webhooks/get", any(get_webhook))
        .route("/api/v1/webhooks/list", any(list_webhooks))
        .route("/api/v1/webhooks/update", any(update_webhook))
        .route("/api/v1/webhooks/delete", any(delete_webhook))
        .route("/api/v1/webhooks/rotate_secret", any(rotate_webhook_secret))
        .route("/api/v1/webhooks/test", any(test_webhook))
        .route("/api/v1/webhooks/attempts", any(list_webhook_attempts))
        .route("/api/v1/webhooks/replay", any(replay_webhook))
        .route("/api/v1/events/list", any(list_events))
        .route("/api/v1/suppressions/list", any(list_suppressions))
        .route("/api/v1/suppressions/get", any(get_suppression))
        .route("/api/v1/suppressions/add", any(add_suppressions))
        .route("/api/v1/suppressions/remove", any(remove_suppressions))
        .route("/api/v1/suppressions/import", any(import_suppressions))
        .route("/api/v1/suppressions/export", any(export_suppressions))
        .route("/api/v1/server/get", any(get_server))
        .route("/api/v1/server/update", any(update_server))
        .route("/api/v1/openapi.json", get(openapi::serve).fallback(endpoint::not_get))
        .route("/api", any(endpoint::unknown))
        .route("/api/", any(endpoint::unknown))
        .route("/api/{*rest}", any(endpoint::unknown))
        .route(webhooks::jwks::PATH, get(webhooks::jwks::serve))
        .route(health::PATH, get(async || health::live()))
        .route("/ready", get(health::ready))
        .fallback(async || not_found())
        .with_state(door)
}

async fn send_message(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, SEND, send::message::handle).await
}

async fn send_raw(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, SEND, send::raw::handle).await
}

async fn message(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ_MESSAGES, messages::message::handle).await
}

async fn deliveries(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ_MESSAGES, messages::deliveries::handle).await
}

async fn analytics_summary(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, analytics::summary::handle).await
}

async fn analytics_timeseries(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, analytics::timeseries::handle).await
}

async fn analytics_top(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, analytics::top::handle).await
}

async fn analytics_message(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, analytics::message::handle).await
}

async fn create_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::create::handle).await
}

async fn get_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, webhooks::get::handle).await
}

async fn list_webhooks(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, webhooks::list::handle).await
}

async fn update_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::update::handle).await
}

async fn delete_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::delete::handle).await
}

async fn rotate_webhook_secret(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::rotate_secret::handle).await
}

async fn test_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::test::handle).await
}

async fn list_webhook_attempts(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, webhooks::attempts::handle).await
}

async fn replay_webhook(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, webhooks::replay::handle).await
}

async fn list_events(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, events::list::handle).await
}

async fn list_suppressions(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, suppressions::list::handle).await
}

async fn get_suppression(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, suppressions::get::handle).await
}

async fn add_suppressions(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, suppressions::add::handle).await
}

async fn remove_suppressions(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, suppressions::remove::handle).await
}

async fn import_suppressions(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, suppressions::import::handle).await
}

async fn export_suppressions(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, suppressions::export::handle).await
}

async fn get_server(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, READ, own_server::get::handle).await
}

async fn update_server(State(door): Shared, request: Request) -> Response {
    endpoint::answer(&door, request, FULL, own_server::update::handle).await
}

fn not_found() -> Response {
    let mut response = Response::new("There is nothing here; the API is under /api/v1/\n".into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
