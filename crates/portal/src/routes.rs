//! Table of all routes, by subject. Every answer gets the security headers, and every request that changes something is
//! checked for its origin, except those that programs send to a request inspector.

use std::sync::Arc;

use axum::response::IntoResponse as _;
use axum::{Router, middleware};

use crate::page_routes::get;
use crate::problem::Problem;
use crate::refused_forms::RefusedForms;
use crate::state::PortalState;
use crate::{
    account, account_keys, analytics, assets, audit, domains, events, headers, inbox, inspector, keys, live,
    messages, operator, origin, people, pools, profile, queue, refused_forms, reports, servers, settings,
    sign_in, suppressions, templates, webhooks,
};

pub(crate) fn routes(state: Arc<PortalState>) -> Router {
    let pages = Router::new()
        .merge(sign_in::routes())
        .merge(servers::routes())
        .merge(messages::routes())
        .merge(queue::routes())
        .merge(events::routes())
        .merge(analytics::routes())
        .merge(reports::routes())
        .merge(templates::routes())
        .merge(domains::routes())
        .merge(webhooks::routes())
        .merge(inspector::routes())
        .merge(keys::routes())
        .merge(suppressions::routes())
        .merge(settings::routes())
        .merge(people::routes())
        .merge(inbox::routes())
        .merge(profile::routes())
        .merge(pools::routes())
        .merge(operator::routes())
        .merge(account::routes())
        .merge(account_keys::routes())
        .merge(audit::routes())
        .route("/servers/{server}/live", get(live::stream))
        .route(assets::PATH, get(assets::serve))
        .method_not_allowed_fallback(async || Problem::NotFound.into_response())
        .with_state(Arc::clone(&state));
    let refused = RefusedForms { pages: pages.clone(), state: Arc::clone(&state) };
    pages
        .layer(middleware::from_fn_with_state(refused, refused_forms::show))
        .layer(middleware::from_fn(servers::remember_last_server))
        .layer(middleware::from_fn(origin::check))
        .merge(inspector::receiver().with_state(state))
        .layer(middleware::from_fn(headers::add_security_headers))
}
