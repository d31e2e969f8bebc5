//! Event stream of an inspector's open page: reports that requests arrived or were removed, on this node or another.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse as _;
use axum::response::sse::{Event, Sse};
use futures_util::stream;
use postroad_app::App;
use postroad_app::access::Operation;
use postroad_model::ServerId;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::live_permits::LivePermit;
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

/// A stream ends after this long; then the browser opens the next stream, and the session is checked again.
const STREAM_TIME_MAX: Duration = Duration::from_mins(5);
/// Longest wait for a change.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Pause between two notices: a page with fifty requests is read from the store each time.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);

struct Stream {
    app: App,
    server_id: ServerId,
    /// Number of changes that the page knows.
    seen: i64,
    is_begun: bool,
    /// Whether the last call of `next` sent a notice; the following call waits for `NOTICE_PAUSE` first.
    has_sent_notice: bool,
    ends_at: Instant,
    _permit: LivePermit,
}

/// Answers 404 if the server has no inspector.
pub(super) async fn stream(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksAttempts).await?;
    let seen = visit.app().count_inspector_changes(caller.server_id).await?.ok_or(Problem::NotFound)?;
    let permit = visit.state.live.acquire(visit.person.user.account_id, visit.person.user.id)?;
    let stream = Stream {
        app: visit.app().clone(),
        server_id: caller.server_id,
        seen,
        is_begun: false,
        has_sent_notice: false,
        ends_at: Instant::now() + STREAM_TIME_MAX,
        _permit: permit,
    };
    Ok(Sse::new(stream::unfold(stream, next)).into_response())
}

async fn next(mut stream: Stream) -> Option<(Result<Event, Infallible>, Stream)> {
    if !stream.is_begun {
        stream.is_begun = true;
        return Some((Ok(Event::default().event("start").data("1")), stream));
    }
    if stream.app.is_stopping() || Instant::now() >= stream.ends_at {
        return None;
    }
    if stream.has_sent_notice {
        tokio::time::sleep(NOTICE_PAUSE).await;
    }
    let waiting = stream.app.wait_for_inspector_change(stream.server_id, stream.seen, WAIT_MAX);
    // The stream ends if the store does not answer or the inspector no longer exists; the browser then tries again.
    let count = waiting.await.ok()??;
    stream.has_sent_notice = count != stream.seen;
    stream.seen = count;
    // A comment keeps proxies from closing a quiet connection.
    let event = if stream.has_sent_notice {
        Event::default().event("changed").data("1")
    } else {
        Event::default().comment("")
    };
    Some((Ok(event), stream))
}
