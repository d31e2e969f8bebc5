//! Table of all routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, any, get};
use bytes::Bytes;
use postroad_model::Scope;
use serde::Serialize;

use crate::endpoint::{self, Access, Call};
use crate::envelope::{Success, json};
use crate::failure::Failure;
use crate::openapi::openapi_json;
use crate::state::ApiState;
use crate::{
    analytics, domains, events, health, messages, send, server_settings, suppressions, templates, webhooks,
};

pub(crate) fn router(state: Arc<ApiState>) -> Router {
    let openapi = Bytes::from(openapi_json());
    Router::new()
        .route("/api/v1/send/message", call(Access::by_any_client_method(Scope::Send), send::message::handle))
        .route("/api/v1/send/raw", call(Access::by_any_client_method(Scope::Send), send::raw::handle))
        .route(
            "/api/v1/messages/message",
            call(Access::by_any_client_method(Scope::Read), messages::message::handle),
        )
        .route(
            "/api/v1/messages/deliveries",
            call(Access::by_any_client_method(Scope::Read), messages::deliveries::handle),
        )
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
        .route("/api/v1/templates/create", call(Scope::Full, templates::create::handle))
        .route("/api/v1/templates/get", call(Scope::Read, templates::get::handle))
        .route("/api/v1/templates/list", call(Scope::Read, templates::list::handle))
        .route("/api/v1/templates/update", call(Scope::Full, templates::update::handle))
        .route("/api/v1/templates/delete", call(Scope::Full, templates::delete::handle))
        .route("/api/v1/templates/render", call(Scope::Read, templates::render::handle))
        .route("/api/v1/templates/validate", call(Scope::Read, templates::validate::handle))
        .route("/api/v1/templates/versions", call(Scope::Read, templates::versions::handle))
        .route("/api/v1/templates/publish", call(Scope::Full, templates::publish::handle))
        .route("/api/v1/templates/rollback", call(Scope::Full, templates::rollback::handle))
        .route("/api/v1/templates/diff", call(Scope::Read, templates::diff::handle))
        .route("/api/v1/domains/create", call(Scope::Full, domains::create::handle))
        .route("/api/v1/domains/get", call(Scope::Read, domains::get::handle))
        .route("/api/v1/domains/list", call(Scope::Read, domains::list::handle))
        .route("/api/v1/domains/verify", call(Scope::Full, domains::verify::handle))
        .route("/api/v1/domains/rotate_dkim", call(Scope::Full, domains::rotate_dkim::handle))
        .route("/api/v1/domains/delete", call(Scope::Full, domains::delete::handle))
        .route("/api/v1/server/get", call(Scope::Read, server_settings::get::handle))
        .route("/api/v1/server/update", call(Scope::Full, server_settings::update::handle))
        .route(
            "/api/v1/openapi.json",
            get(async move || json(StatusCode::OK, openapi.clone())).fallback(endpoint::not_get),
        )
        .route("/api", any(endpoint::unknown))
        .route("/api/", any(endpoint::unknown))
        .route("/api/{*rest}", any(endpoint::unknown))
        .route(webhooks::jwks::PATH, get(webhooks::jwks::serve))
        .route(health::PATH, get(async || health::live()))
        .route("/ready", get(health::ready))
        .fallback(async || not_found())
        .with_state(state)
}

/// Routes an endpoint to `handle`. Accepts every method, so that a wrong one is answered with an envelope.
fn call<T, F, Fut>(access: impl Into<Access>, handle: F) -> MethodRouter<Arc<ApiState>>
where
    T: Serialize + Send + Sync + 'static,
    F: Fn(Call) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
{
    let access = access.into();
    any(move |State(state): State<Arc<ApiState>>, request: Request| async move {
        endpoint::answer(&state, request, access, handle).await
    })
}

fn not_found() -> Response {
    let mut response = Response::new("There is nothing here; the API is under /api/v1/\n".into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
