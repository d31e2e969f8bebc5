//! Event stream of a server for open pages. It only reports that something happened: the page then reloads itself, so
//! that HTML is rendered in one place only.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use postroad_app::access::Operation;
use postroad_app::{App, FeedRequest, FeedStart};
use postroad_model::{EventCursor, EventSet, MessageId, ServerId};
use tokio::time::Instant;

use crate::live_permits::LivePermit;
use crate::path::Path;
use crate::problem::Problem;
use crate::state::PortalState;
use crate::visit::Visit;

/// A stream ends after this long; then the browser opens the next stream, and the session is checked again.
const STREAM_TIME_MAX: Duration = Duration::from_mins(5);
/// Longest wait for events in one read of the feed.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Pause between two notices: a busy server has thousands of events a second.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);
/// Events that one read of the feed takes; the page gets one notice for all of them.
const EVENTS_MAX: usize = 100;

struct Stream {
    app: App,
    server_id: ServerId,
    message_id: Option<MessageId>,
    after: Option<EventCursor>,
    /// Whether the last call of `next` sent a notice; the following call waits for `NOTICE_PAUSE` first.
    has_sent_notice: bool,
    ends_at: Instant,
    _permit: LivePermit,
}

pub(crate) async fn stream(
    State(state): State<Arc<PortalState>>,
    Path(server): Path<i64>,
    visit: Visit,
) -> Result<Response, Problem> {
    let caller = visit.caller(server, Operation::EventsList).await?;
    let permit = state.live.acquire(visit.person.user.account_id, visit.person.user.id)?;
    let stream = Stream {
        app: state.app.clone(),
        server_id: caller.server_id,
        message_id: visit.query.number("message").map(MessageId),
        after: None,
        has_sent_notice: false,
        ends_at: Instant::now() + STREAM_TIME_MAX,
        _permit: permit,
    };
    let events = stream::unfold(stream, next);
    Ok(Sse::new(events).into_response())
}

async fn next(mut stream: Stream) -> Option<(Result<Event, Infallible>, Stream)> {
    if stream.after.is_none() {
        // The stream reports events after this position.
        let page = stream.read_feed(FeedStart::Latest, Duration::ZERO).await?;
        stream.after = Some(page.0);
        return Some((Ok(Event::default().event("start").data("1")), stream));
    }
    if stream.app.is_stopping() || Instant::now() >= stream.ends_at {
        return None;
    }
    if stream.has_sent_notice {
        tokio::time::sleep(NOTICE_PAUSE).await;
    }
    let after = stream.after?;
    let (mut cursor, is_changed) = stream.read_feed(FeedStart::After(after), WAIT_MAX).await?;
    if is_changed {
        // One notice covers all events up to now.
        (cursor, _) = stream.read_feed(FeedStart::Latest, Duration::ZERO).await?;
    }
    (stream.after, stream.has_sent_notice) = (Some(cursor), is_changed);
    // A comment keeps proxies from closing a quiet connection.
    let event =
        if is_changed { Event::default().event("changed").data("1") } else { Event::default().comment("") };
    Some((Ok(event), stream))
}

impl Stream {
    /// Reads the feed. Returns the position reached, and whether there were events. `None` if the store does not
    /// answer: the stream then ends, and the browser opens another.
    async fn read_feed(&self, start: FeedStart, wait: Duration) -> Option<(EventCursor, bool)> {
        let request =
            FeedRequest { start, kinds: EventSet::ALL, message_id: self.message_id, limit: EVENTS_MAX, wait };
        let page = self.app.list_events(self.server_id, request).await.ok()?;
        Some((page.next, !page.events.is_empty()))
    }
}
