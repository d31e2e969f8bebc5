//! Event stream for pages about data in memory, whose changes are announced by a counter.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use postroad_app::App;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::live_permits::LivePermit;
use crate::problem::Problem;
use crate::visit::Visit;

/// A stream ends after this long; then the browser opens the next stream, and the session is checked again.
const STREAM_TIME_MAX: Duration = Duration::from_mins(5);
/// Longest wait for a change. Short, because streams stay open for up to this long after the service begins to stop.
const WAIT_MAX: Duration = Duration::from_secs(5);

struct Stream {
    app: App,
    changed: watch::Receiver<u64>,
    is_begun: bool,
    ends_at: Instant,
    _permit: LivePermit,
}

/// Like `live::stream`, for a page whose permission the caller has checked.
pub(crate) fn stream(visit: &Visit, changed: watch::Receiver<u64>) -> Result<Response, Problem> {
    let permit = visit.state.live.acquire(visit.person.user.account_id, visit.person.user.id)?;
    let stream = Stream {
        app: visit.app().clone(),
        changed,
        is_begun: false,
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
    let event = match timeout(WAIT_MAX, stream.changed.changed()).await {
        Ok(Ok(())) => Event::default().event("changed").data("1"),
        // The sender of the counter was dropped: the data no longer exists.
        Ok(Err(_)) => return None,
        Err(_) => Event::default().comment(""),
    };
    Some((Ok(event), stream))
}
