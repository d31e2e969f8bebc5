//! Analytics of a server: a chart over time, rates, and the largest values of a dimension; also as CSV.

mod analytics_query;
mod chart;
mod csv;
mod difference;
mod range;
mod show;
mod time_rows;

use std::sync::Arc;

use axum::Router;

pub(crate) use chart::{BOUNCE_RATE_MAX, COMPLAINT_RATE_MAX, JUDGED_MESSAGES_MIN, PARTS, Week, week};

use crate::page_routes::get;
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/analytics", get(show::show))
        .route("/servers/{server}/analytics/csv", get(csv::download_csv))
}
