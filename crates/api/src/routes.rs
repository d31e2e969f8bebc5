//! Every route on one page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get};
use postroad_model::Scope;
use serde::Serialize;

use crate::endpoint::{self, Access, ApiState, Call};
use crate::envelope::Success;
use crate::failure::Failure;
use crate::{analytics, events, health, messages, openapi, send, server_settings, suppressions, webhooks};

/// Methods of most endpoints, as the header Allow lists them.
const POST_ONLY: &str = "POST";
/// Methods of the four endpoints that the specification names: existing clients use all of these.
const CLIENT_METHODS: &str = "POST, GET, PUT, PATCH";

pub(crate) fn router(state: Arc<ApiState>) -> Router {
    Router::new()
        .route("/api/v1/send/message", client_call(Scope::Send, send::message::handle))
        .route("/api/v1/send/raw", client_call(Scope::Send, send::raw::handle))
        .route("/api/v1/messages/message", client_call(Scope::Read, messages::message::handle))
        .route("/api/v1/messages/deliveries", client_call(Scope::Read, messages::deliveries::handle))
        .route("/api/v1/analytics/summary", call(Scope::Read, analytics::summary::handle))
        .route("/api/v1/analytics/timeseries", call(Scope::Read, analytics::timeseries::handle))
        .route("/api/v1/analytics/top", call(Scope::Read, analytics::top::handle))
        .route("/api/v1/analytics/message", call(Scope::Read, analytics::message::handle))
        .route("/api/v1/webhooks/create", call(Scope::Full, webhooks::create::handle))
        .route("/api/v1/webhooks/get", call(Scope::Read, webhooks::get::handle))
        .route("/api/v1/webhooks/list", call(Scope::Read, webhooks::list::handle))
        .route("/api/v1/webhooks/update", call(Scope::Full, webhooks::update::handle))
        .route("/api/v1/webhooks/delete", call(Scope::Full, webhooks::delete::handle))
        .route("/api/v1/webhooks/rotate_secret", call(Scope::Full, webhooks::rotate_secret::handle))
        .route("/api/v1/webhooks/test", call(Scope::Full, webhooks::test::handle))
        .route("/api/v1/webhooks/attempts", call(Scope::Read, webhooks::attempts::handle))
        .route("/api/v1/webhooks/replay", call(Scope::Full, webhooks::replay::handle))
        .route("/api/v1/events/list", call(Scope::Read, events::list::handle))
        .route("/api/v1/suppressions/list", call(Scope::Read, suppressions::list::handle))
        .route("/api/v1/suppressions/get", call(Scope::Read, suppressions::get::handle))
        .route("/api/v1/suppressions/add", call(Scope::Full, suppressions::add::handle))
        .route("/api/v1/suppressions/remove", call(Scope::Full, suppressions::remove::handle))
        .route("/api/v1/suppressions/import", call(Scope::Full, suppressions::import::handle))
        .route("/api/v1/suppressions/export", call(Scope::Read, suppressions::export::handle))
        .route("/api/v1/server/get", call(Scope::Read, server_settings::get::handle))
        .route("/api/v1/server/update", call(Scope::Full, server_settings::update::handle))
        .route("/api/v1/openapi.json", get(openapi::serve).fallback(endpoint::not_get))
        .route("/api", any(endpoint::unknown))
        .route("/api/", any(endpoint::unknown))
        .route("/api/{*rest}", any(endpoint::unknown))
        .route(webhooks::jwks::PATH, get(webhooks::jwks::serve))
        .route(health::PATH, get(async || health::live()))
        .route("/ready", get(health::ready))
        .fallback(async || not_found())
        .with_state(state)
}

/// Answers POST by `handle`, for keys of this scope.
fn call<T, F, Fut>(scope: Scope, handle: F) -> MethodRouter<Arc<ApiState>>
where
    T: Serialize + Send + Sync + 'static,
    F: Fn(Call) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
{
    endpoint_for(Access { scope, methods: POST_ONLY }, handle)
}

/// The same for the methods that existing clients use.
fn client_call<T, F, Fut>(scope: Scope, handle: F) -> MethodRouter<Arc<ApiState>>
where
    T: Serialize + Send + Sync + 'static,
    F: Fn(Call) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
{
    endpoint_for(Access { scope, methods: CLIENT_METHODS }, handle)
}

/// Takes every method, so that a wrong one is answered with an envelope.
fn endpoint_for<T, F, Fut>(access: Access, handle: F) -> MethodRouter<Arc<ApiState>>
where
    T: Serialize + Send + Sync + 'static,
    F: Fn(Call) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
{
    any(move |State(state): State<Arc<ApiState>>, request: Request| async move {
        endpoint::answer(&state, request, access, handle).await
    })
}

fn not_found() -> Response {
    let mut response = Response::new("There is nothing here; the API is under /api/v1/\n".into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
