//! People of the account and their invitations.

mod change;
mod list;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/people", get(list::show).post(change::invite))
        .route("/account/people/{person}/role", post(change::role))
        .route("/account/people/{person}/remove", post(change::remove))
        .route("/account/people/{person}/sign_out", post(change::sign_out))
        .route("/account/people/uninvite", post(change::uninvite))
}
