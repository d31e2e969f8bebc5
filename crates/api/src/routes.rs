//! Table of the routes. `dev/` has the routes of the dev inbox and Mailpit's API, and of the start page and DNS server
//! of `postroad dev`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get};
use bytes::Bytes;
use postroad_app::access::Operation;
use serde::Serialize;

use crate::auth::Authenticate;
use crate::endpoint::{self, Call, Handler};
use crate::envelope::{Success, json_response};
use crate::failure::Failure;
use crate::openapi::OPENAPI_JSON;
use crate::state::ApiState;
use crate::{
    account, account_keys, accounts, analytics, credentials, domains, events, health, ip_pools, jobs,
    messages, mta_sts, send, server_settings, servers, suppressions, templates, users, webhooks,
};

const NOT_FOUND_PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Not found</title>\
    <p>There is nothing here. <a href=\"/\">Go to the start page</a></p></html>\n";

pub(crate) fn router(state: Arc<ApiState>) -> Router {
    let openapi = Bytes::from_static(OPENAPI_JSON.as_bytes());
    Router::new()
        .endpoint(Operation::SendMessage, send::message::handle)
        .endpoint(Operation::SendRaw, send::raw::handle)
        .endpoint(Operation::SendBatch, send::batch::handle)
        .endpoint(Operation::SendCancel, send::cancel::handle)
        .endpoint(Operation::SendReschedule, send::reschedule::handle)
        .endpoint(Operation::MessagesMessage, messages::message::handle)
        .endpoint(Operation::MessagesDeliveries, messages::deliveries::handle)
        .endpoint(Operation::MessagesSearch, messages::search::handle)
        .endpoint(Operation::MessagesTimeline, messages::timeline::handle)
        .endpoint(Operation::MessagesRetry, messages::retry::handle)
        .endpoint(Operation::MessagesRelease, messages::release::handle)
        .endpoint(Operation::MessagesCancelHold, messages::cancel_hold::handle)
        .endpoint(Operation::MessagesErase, messages::erase::handle)
        .endpoint(Operation::JobsGet, jobs::get::handle)
        .endpoint(Operation::AnalyticsSummary, analytics::summary::handle)
        .endpoint(Operation::AnalyticsTimeseries, analytics::timeseries::handle)
        .endpoint(Operation::AnalyticsTop, analytics::top::handle)
        .endpoint(Operation::AnalyticsMessage, analytics::message::handle)
        .endpoint(Operation::WebhooksCreate, webhooks::create::handle)
        .endpoint(Operation::WebhooksGet, webhooks::get::handle)
        .endpoint(Operation::WebhooksList, webhooks::list::handle)
        .endpoint(Operation::WebhooksUpdate, webhooks::update::handle)
        .endpoint(Operation::WebhooksDelete, webhooks::delete::handle)
        .endpoint(Operation::WebhooksRotateSecret, webhooks::rotate_secret::handle)
        .endpoint(Operation::WebhooksTest, webhooks::test::handle)
        .endpoint(Operation::WebhooksAttempts, webhooks::attempts::handle)
        .endpoint(Operation::WebhooksReplay, webhooks::replay::handle)
        .endpoint(Operation::EventsList, events::list::handle)
        .endpoint(Operation::SuppressionsList, suppressions::list::handle)
        .endpoint(Operation::SuppressionsGet, suppressions::get::handle)
        .endpoint(Operation::SuppressionsAdd, suppressions::add::handle)
        .endpoint(Operation::SuppressionsRemove, suppressions::remove::handle)
        .endpoint(Operation::SuppressionsImport, suppressions::import::handle)
        .endpoint(Operation::SuppressionsExport, suppressions::export::handle)
        .endpoint(Operation::TemplatesCreate, templates::create::handle)
        .endpoint(Operation::TemplatesGet, templates::get::handle)
        .endpoint(Operation::TemplatesList, templates::list::handle)
        .endpoint(Operation::TemplatesUpdate, templates::update::handle)
        .endpoint(Operation::TemplatesDelete, templates::delete::handle)
        .endpoint(Operation::TemplatesRender, templates::render::handle)
        .endpoint(Operation::TemplatesValidate, templates::validate::handle)
        .endpoint(Operation::TemplatesVersions, templates::versions::handle)
        .endpoint(Operation::TemplatesPublish, templates::publish::handle)
        .endpoint(Operation::TemplatesRollback, templates::rollback::handle)
        .endpoint(Operation::TemplatesDiff, templates::diff::handle)
        .endpoint(Operation::DomainsCreate, domains::create::handle)
        .endpoint(Operation::DomainsGet, domains::get::handle)
        .endpoint(Operation::DomainsList, domains::list::handle)
        .endpoint(Operation::DomainsVerify, domains::verify::handle)
        .endpoint(Operation::DomainsRotateDkim, domains::rotate_dkim::handle)
        .endpoint(Operation::DomainsDelete, domains::delete::handle)
        .endpoint(Operation::DomainsZone, domains::zone::handle)
        .endpoint(Operation::DomainsReports, domains::reports::handle)
        .endpoint(Operation::ServerGet, server_settings::get::handle)
        .endpoint(Operation::ServerUpdate, server_settings::update::handle)
        .endpoint(Operation::ServersCreate, servers::create::handle)
        .endpoint(Operation::ServersList, servers::list::handle)
        .endpoint(Operation::ServersGet, servers::get::handle)
        .endpoint(Operation::ServersUpdate, servers::update::handle)
        .endpoint(Operation::ServersSuspend, servers::suspend::handle)
        .endpoint(Operation::ServersResume, servers::resume::handle)
        .endpoint(Operation::ServersDelete, servers::delete::handle)
        .endpoint(Operation::ServersRestore, servers::restore::handle)
        .endpoint(Operation::CredentialsCreate, credentials::create::handle)
        .endpoint(Operation::CredentialsList, credentials::list::handle)
        .endpoint(Operation::CredentialsGet, credentials::get::handle)
        .endpoint(Operation::CredentialsUpdate, credentials::update::handle)
        .endpoint(Operation::CredentialsRevoke, credentials::revoke::handle)
        .endpoint(Operation::CredentialsRotate, credentials::rotate::handle)
        .endpoint(Operation::IpPoolsCreate, ip_pools::create::handle)
        .endpoint(Operation::IpPoolsList, ip_pools::list::handle)
        .endpoint(Operation::IpPoolsGet, ip_pools::get::handle)
        .endpoint(Operation::IpPoolsDelete, ip_pools::delete::handle)
        .endpoint(Operation::IpPoolsAddAddress, ip_pools::add_address::handle)
        .endpoint(Operation::IpPoolsUpdateAddress, ip_pools::update_address::handle)
        .endpoint(Operation::IpPoolsRemoveAddress, ip_pools::remove_address::handle)
        .endpoint(Operation::IpPoolsWarmUp, ip_pools::warm_up::handle)
        .endpoint(Operation::IpPoolsHistory, ip_pools::history::handle)
        .endpoint(Operation::AccountGet, account::get::handle)
        .endpoint(Operation::AccountUpdate, account::update::handle)
        .endpoint(Operation::AccountUsage, account::usage::handle)
        .endpoint(Operation::AccountAudit, account::audit::handle)
        .endpoint(Operation::AccountKeysCreate, account_keys::create::handle)
        .endpoint(Operation::AccountKeysList, account_keys::list::handle)
        .endpoint(Operation::AccountKeysRevoke, account_keys::revoke::handle)
        .endpoint(Operation::UsersList, users::list::handle)
        .endpoint(Operation::UsersUpdate, users::update::handle)
        .endpoint(Operation::UsersRemove, users::remove::handle)
        .endpoint(Operation::UsersInvite, users::invite::handle)
        .endpoint(Operation::UsersInvitations, users::invitations::handle)
        .endpoint(Operation::UsersUninvite, users::uninvite::handle)
        .endpoint(Operation::UsersSessions, users::sessions::handle)
        .endpoint(Operation::UsersRevokeSession, users::revoke_session::handle)
        .endpoint(Operation::AccountsCreate, accounts::create::handle)
        .endpoint(Operation::AccountsList, accounts::list::handle)
        .endpoint(Operation::AccountsGet, accounts::get::handle)
        .endpoint(Operation::AccountsUpdate, accounts::update::handle)
        .endpoint(Operation::AccountsSuspend, accounts::suspend::handle)
        .endpoint(Operation::AccountsResume, accounts::resume::handle)
        .endpoint(Operation::AccountsDelete, accounts::delete::handle)
        .endpoint(Operation::AccountsRestore, accounts::restore::handle)
        .route(
            "/api/v1/openapi.json",
            get(async move || json_response(StatusCode::OK, openapi.clone()))
                .fallback(endpoint::answer_wrong_method),
        )
        .route("/api", any(endpoint::answer_unknown_path))
        .route("/api/", any(endpoint::answer_unknown_path))
        .route("/api/{*rest}", any(endpoint::answer_unknown_path))
        .route(webhooks::jwks::PATH, get(webhooks::jwks::serve))
        .route(mta_sts::PATH, get(mta_sts::serve))
        .route(health::PATH, get(async || health::live()))
        .route("/ready", get(health::ready))
        .fallback(async |headers: HeaderMap| not_found(&headers))
        .with_state(state)
}

/// Adds endpoints under the names of their operations.
trait Endpoints {
    /// Routes an operation to `handle`. Accepts every method, so that a wrong one is answered with
    /// an envelope.
    fn endpoint<C, T, F, Fut>(self, operation: Operation, handle: F) -> Self
    where
        C: Authenticate,
        T: Serialize + Send + Sync + 'static,
        F: Fn(Call<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static;
}

impl Endpoints for Router<Arc<ApiState>> {
    fn endpoint<C, T, F, Fut>(self, operation: Operation, handle: F) -> Self
    where
        C: Authenticate,
        T: Serialize + Send + Sync + 'static,
        F: Fn(Call<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
    {
        self.route(&path(operation), route_to(operation, endpoint::box_handler(handle)))
    }
}

fn route_to<C: Authenticate>(operation: Operation, handle: Handler<C>) -> MethodRouter<Arc<ApiState>> {
    any(async move |State(state): State<Arc<ApiState>>, request: Request| {
        endpoint::answer(&state, request, operation, handle).await
    })
}

fn path(operation: Operation) -> String {
    format!("/api/v1/{}", operation.name())
}

/// Answers 404: a page for browsers, a line for programs.
fn not_found(headers: &HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let (content_type, text) = if accepted.contains("text/html") {
        ("text/html; charset=utf-8", NOT_FOUND_PAGE)
    } else {
        ("text/plain; charset=utf-8", "There is nothing here; the API is under /api/v1/\n")
    };
    let mut response = Response::new(text.into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
