//! Receivers' reports about the mail of a domain: DMARC by source, TLS by result.

mod show;

use std::sync::Arc;

use axum::Router;

use crate::page_routes::get;
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new().route("/servers/{server}/reports", get(show::show))
}
