//! People of an account and their invitations.

mod change;
mod list;
mod one;

use std::sync::Arc;

use axum::Router;

use crate::layout::Section;
use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;
use change::invite_to_customer;

fn own_account(visit: &Visit) -> ViewedAccount {
    ViewedAccount::own(visit, Section::People)
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/account/people", get(list::show).and_post(change::invite))
        .route("/account/people/{person}", get(one::show).and_post(one::update))
        .route("/account/people/{person}/sessions", post(one::end_session))
        .route("/account/people/{person}/reset_link", post(one::reset_link))
        .route("/account/people/{person}/disable_app", post(one::disable_app))
        .route("/account/people/{person}/role", post(change::change_role))
        .route("/account/people/{person}/remove", post(change::remove))
        .route("/account/people/{person}/sign_out", post(change::sign_out))
        .route("/operator/accounts/{account}/people", get(list::of_customer).and_post(invite_to_customer))
        .route("/account/people/uninvite", post(change::uninvite))
}
