//! Analytics of a server: a chart over time, rates, and the largest values of a dimension; the same as CSV.

mod analytics_query;
mod chart;
mod csv;
mod range;
mod show;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub(crate) use chart::{PARTS, week};

use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/analytics", get(show::show))
        .route("/servers/{server}/analytics/csv", get(csv::download_csv))
}
