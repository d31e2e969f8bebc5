//! Templates of a server: editor, preview, versions with their differences, and a test message.

mod change;
mod check;
mod compare;
mod editor;
mod list;
mod preview;
mod preview_draft;
mod save;
mod send_test;

use std::sync::Arc;

use axum::{Extension, Router};

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;
use crate::visit::LargeForms;
use preview_draft::{show_draft, show_new_draft};

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    let editor = Router::new()
        .route("/servers/{server}/templates/new", get(editor::show_new).and_post(save::create))
        .route("/servers/{server}/templates/{template}", get(editor::show).and_post(save::update))
        .route("/servers/{server}/templates/new/check", post(check::submit_new))
        .route("/servers/{server}/templates/{template}/check", post(check::submit))
        .route("/servers/{server}/templates/new/preview", post(show_new_draft))
        .route("/servers/{server}/templates/{template}/preview", get(preview::show).and_post(show_draft))
        .layer(Extension(LargeForms));
    Router::new()
        .merge(editor)
        .route("/servers/{server}/templates", get(list::show))
        .route("/servers/{server}/templates/{template}/compare", get(compare::show))
        .route("/servers/{server}/templates/{template}/publish", post(change::publish))
        .route("/servers/{server}/templates/{template}/rollback", post(change::roll_back))
        .route("/servers/{server}/templates/{template}/delete", post(change::delete))
        .route("/servers/{server}/templates/{template}/send_test", post(send_test::submit))
}
