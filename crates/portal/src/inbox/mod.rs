//! Inbox of `postroad dev`: mail that was caught after the whole pipeline, with its links and one-time codes.

mod list;
mod one;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use postroad_app::access::Operation;
use postroad_delivery::Inbox;

use crate::problem::Problem;
use crate::state::PortalState;
use crate::visit::Visit;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/inbox", get(list::show))
        .route("/inbox/clear", post(list::clear))
        .route("/inbox/live", get(list::live))
        .route("/inbox/{message}", get(one::show))
        .route("/inbox/{message}/preview", get(one::preview))
        .route("/inbox/{message}/raw", get(one::raw))
        .route("/inbox/{message}/attachments/{number}", get(one::attachment))
}

/// The inbox, if the person may see it; absent if mail is really sent.
fn inbox(visit: &Visit, operation: Operation) -> Result<&Inbox, Problem> {
    visit.app().permit_operator(&visit.by, operation)?;
    visit.state.inbox.as_ref().ok_or(Problem::NotFound)
}
