//! Waits for the first message of a server; then the panel shows its timeline.

use askama::Template;
use axum::extract::Path;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::messages::{TimelineRow, rows};
use crate::problem::Problem;
use crate::shown::StatusBadge;
use crate::visit::Visit;

/// The newest message, with its timeline.
pub(crate) struct Arrival {
    pub(crate) id: i64,
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) status: StatusBadge,
}

#[derive(Template)]
#[template(path = "servers/first_message.html")]
struct FirstMessagePage {
    layout: Layout,
    server: i64,
    arrival: Option<Arrival>,
    timeline: Vec<TimelineRow>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesTimeline).await?;
    let (_, layout) = visit.server_layout(server, "First message", Section::Overview).await?;
    let filter =
        SearchRequest::default().filter().map_err(|_| Problem::Internal("an empty search".to_owned()))?;
    let newest = visit.app().search_messages(caller.server_id, filter, None, 1).await?.items.pop();
    let (mut arrival, mut timeline) = (None, Vec::new());
    if let Some(item) = newest {
        timeline = rows(visit.app().message_timeline(caller.server_id, item.id).await?.items);
        arrival = Some(Arrival {
            id: item.id.0,
            to: item.rcpt_to,
            subject: item.subject,
            status: StatusBadge(item.status),
        });
    }
    page(&FirstMessagePage { layout, server, arrival, timeline })
}
