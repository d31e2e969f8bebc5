//! Inboxes: of the installation, as in `postroad dev`, with mail that was caught after the whole pipeline; and of each
//! development server, with the mail that it holds. Both show links and one-time codes of a message first.

mod list;
mod of_server;
mod one;

use std::sync::Arc;

use axum::Router;
use postroad_app::access::Operation;
use postroad_delivery::Inbox;

use crate::page_routes::{get, post};
use crate::problem::Problem;
use crate::state::PortalState;
use crate::visit::Visit;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/inbox", get(list::show))
        .route("/inbox/clear", post(list::clear))
        .route("/inbox/live", get(list::live))
        .route("/inbox/{message}", get(one::show))
        .route("/inbox/{message}/delete", post(list::delete))
        .route("/inbox/{message}/preview", get(one::preview))
        .route("/inbox/{message}/raw", get(one::raw))
        .route("/inbox/{message}/attachments/{number}", get(one::attachment))
        .route("/servers/{server}/inbox", get(of_server::list))
        .route("/servers/{server}/inbox/clear", post(of_server::clear))
        .route("/servers/{server}/inbox/{message}", get(of_server::show))
}

/// The inbox of the installation. An error if the person may not perform `operation`, or if the installation sends its
/// mail instead of catching it.
fn inbox(visit: &Visit, operation: Operation) -> Result<&Inbox, Problem> {
    visit.app().permit_operator(&visit.requester, operation)?;
    visit.state.inbox.as_ref().ok_or(Problem::NotFound)
}
