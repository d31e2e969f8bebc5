//! People of the account and their invitations.

mod change;
mod list;
mod one;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/people", get(list::show).post(change::invite))
        .route("/account/people/{person}", get(one::show).post(one::update))
        .route("/account/people/{person}/sessions", post(one::end_session))
        .route("/account/people/{person}/reset_link", post(one::reset_link))
        .route("/account/people/{person}/disable_app", post(one::disable_app))
        .route("/account/people/{person}/role", post(change::role))
        .route("/account/people/{person}/remove", post(change::remove))
        .route("/account/people/{person}/sign_out", post(change::sign_out))
        .route("/account/people/uninvite", post(change::uninvite))
}
