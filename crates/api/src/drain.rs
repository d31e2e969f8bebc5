//! Drains the bodies of requests that are answered before their body is read. Closing a socket with unread bytes
//! resets it, and the reset can discard the answer. Therefore the remaining bytes are read and dropped, within limits,
//! while the answer is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use axum::http::header::EXPECT;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

/// Limits for draining one body.
const DRAIN_BYTES_MAX: usize = 64 << 20;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// A body of at most this size is drained quickly enough to keep the connection.
const KEEP_CONNECTION_BYTES_MAX: u64 = 64 << 10;

/// Whether a request's body was read; decides whether the connection is closed after the answer.
#[derive(Debug)]
pub(crate) struct BodyReadState {
    /// Whether the body was read to its end.
    is_finished: Arc<AtomicBool>,
    /// Whether the connection can be kept although the body is unread: the client sends the body anyway, and the body
    /// is small.
    can_keep_connection: bool,
}

impl BodyReadState {
    pub(crate) fn must_close_connection(&self) -> bool {
        !self.is_finished.load(Ordering::Relaxed) && !self.can_keep_connection
    }
}

/// Watches the body: if it is dropped before its end, the remainder is drained in the background.
pub(crate) fn watch(request: Request<Body>) -> (Request<Body>, BodyReadState) {
    let (parts, body) = request.into_parts();
    let is_finished = Arc::new(AtomicBool::new(body.is_end_stream()));
    // A client that waits for 100 Continue has sent no body, and will send none once it sees the answer.
    let awaits_continue = parts.headers.contains_key(EXPECT);
    let can_keep_connection =
        !awaits_continue && body.size_hint().upper().is_some_and(|bytes| bytes <= KEEP_CONNECTION_BYTES_MAX);
    let body_read_state = BodyReadState { is_finished: Arc::clone(&is_finished), can_keep_connection };
    if body.is_end_stream() {
        return (Request::from_parts(parts, body), body_read_state);
    }
    let watched = Body::new(DrainedBody { body, is_finished, drains_on_drop: !awaits_continue });
    (Request::from_parts(parts, watched), body_read_state)
}

/// Request body that drains its remainder when it is dropped.
struct DrainedBody {
    body: Body,
    is_finished: Arc<AtomicBool>,
    /// False if the client sends no body before it sees `100 Continue`.
    drains_on_drop: bool,
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if self.body.is_end_stream() || !matches!(frame, Some(Ok(_))) {
            self.is_finished.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        if self.is_finished.load(Ordering::Relaxed) || !self.drains_on_drop {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let rest = std::mem::take(&mut self.body);
            // The task ends at its own limits, or with the connection.
            runtime.spawn(async move { drop(timeout(DRAIN_TIME_MAX, discard(rest)).await) });
        }
    }
}

async fn discard(mut body: Body) {
    let mut left = DRAIN_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(remaining) => left = remaining,
            None => return,
        }
    }
}
