//! Signing in and out, the first person of an installation, forgotten passwords and invitations.

mod code;
mod developer;
mod form;
mod invitation;
mod password;
mod reset;
mod set_up;
mod sign_out;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::{AndPost as _, get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/sign_in", get(password::show).and_post(password::submit))
        .route("/sign_in/code", post(code::submit))
        .route("/sign_in/developer", post(developer::submit))
        .route("/sign_out", post(sign_out::submit))
        .route("/set_up", get(set_up::show).and_post(set_up::submit))
        .route("/reset_password", get(reset::show).and_post(reset::submit))
        .route("/invitation", get(invitation::show).and_post(invitation::submit))
}
