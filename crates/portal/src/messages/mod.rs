//! Messages of a server: the list with its search, one message, and actions.

mod act;
mod authentication;
mod bulk;
pub(crate) mod content;
mod events;
mod export;
mod figures;
mod files;
mod jobs;
mod list;
pub(crate) mod newest_rows;
mod one;
mod pictures;
mod preview;
mod preview_links;
mod preview_options;
mod reschedule;
mod search;
mod searches;
mod timeline;

use std::sync::Arc;

use axum::Router;

pub(crate) use act::Act;
pub(crate) use files::attachment_of;
pub(crate) use preview::{preview_of, sandboxed};
pub(crate) use preview_options::PreviewOptions;
pub(crate) use timeline::{TimelineRow, rows};

use crate::page_routes::{get, post};
use crate::state::PortalState;

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new()
        .route("/servers/{server}/messages", get(list::show))
        .route("/servers/{server}/messages/export", get(export::download_csv))
        .route("/servers/{server}/messages/bulk", post(bulk::submit))
        .route("/servers/{server}/messages/reschedule", post(reschedule::submit_tag))
        .route("/servers/{server}/messages/searches", post(searches::save))
        .route("/servers/{server}/messages/searches/forget", post(searches::forget))
        .route("/servers/{server}/erase", post(bulk::erase))
        .route("/servers/{server}/jobs", get(jobs::list))
        .route("/servers/{server}/jobs/{job}", get(jobs::show))
        .route("/servers/{server}/messages/{message}", get(one::show))
        .route("/servers/{server}/messages/{message}/act", post(act::submit))
        .route("/servers/{server}/messages/{message}/reschedule", post(reschedule::submit))
        .route("/servers/{server}/messages/{message}/preview", get(preview::show))
        .route("/servers/{server}/messages/{message}/raw", get(files::raw))
        .route("/servers/{server}/messages/{message}/attachments/{number}", get(files::attachment))
}
