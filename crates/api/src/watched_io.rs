//! Stream wrapper that does two things that hyper does not do. It ends a connection on which the head of any request
//! but the first arrives too slowly, and it counts the bytes that are written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// First bytes of an HTTP/2 connection (RFC 9113 3.4).
const H2_PREFACE: &[u8] = b"PRI";

/// Activity of a connection. hyper has no idle limit for HTTP/2, nor for peers that connect and send nothing.
#[derive(Debug, Default)]
pub(crate) struct ConnectionActivity {
    requests_in_flight: AtomicUsize,
    /// Number of requests whose head has arrived.
    requests_begun: AtomicUsize,
    written_bytes: AtomicU64,
    /// When the latest request was answered; `None` before the first.
    answered_at: Mutex<Option<Instant>>,
}

impl ConnectionActivity {
    /// Counts a request whose head has arrived.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        self.requests_begun.fetch_add(1, Ordering::Relaxed);
        RequestGuard(Arc::clone(self))
    }

    /// Time at which the connection will have idled too long if nothing happens until then; `None` before the first
    /// request.
    pub(crate) fn idle_deadline(&self, idle_max: Duration) -> Option<Instant> {
        if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
            return Some(Instant::now() + idle_max);
        }
        let answered_at = *self.answered_at.lock();
        answered_at.map(|at| at + idle_max)
    }

    /// Whether a request is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests_in_flight.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Number of requests so far, if none is in progress.
    fn requests_if_idle(&self) -> Option<usize> {
        (self.requests_in_flight.load(Ordering::Relaxed) == 0)
            .then(|| self.requests_begun.load(Ordering::Relaxed))
    }
}

/// Request in progress; dropped when the request is answered.
pub(crate) struct RequestGuard(Arc<ConnectionActivity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        *self.0.answered_at.lock() = Some(Instant::now());
        self.0.requests_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stream of a connection, with the time limit for heads and the count of written bytes.
pub(crate) struct WatchedIo<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
    /// Time for the whole head of a request, from its first byte.
    head_time_max: Duration,
    /// First bytes of the connection. They identify HTTP/2, whose frames may arrive at any time.
    first_bytes: Vec<u8>,
    head: Option<ArrivingHead>,
}

/// Head of a request that has begun to arrive.
struct ArrivingHead {
    requests_before: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> WatchedIo<S> {
    pub(crate) fn new(stream: S, activity: Arc<ConnectionActivity>, head_time_max: Duration) -> Self {
        Self { stream, activity, head_time_max, first_bytes: Vec::new(), head: None }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        if self.first_bytes.len() < H2_PREFACE.len() {
            let wanted = (H2_PREFACE.len() - self.first_bytes.len()).min(bytes.len());
            self.first_bytes.extend_from_slice(&bytes[..wanted]);
        }
        let Some(requests_before) = self.activity.requests_if_idle() else { return };
        // The timer in `connection.rs` limits the first request.
        let is_watched = requests_before > 0 && self.first_bytes != H2_PREFACE && !bytes.is_empty();
        if is_watched && self.head.as_ref().is_none_or(|head| head.requests_before != requests_before) {
            self.head = Some(ArrivingHead { requests_before, deadline: Box::pin(sleep(self.head_time_max)) });
        }
    }

    fn is_head_late(&mut self, cx: &mut Context<'_>) -> bool {
        let requests_so_far = self.activity.requests_if_idle();
        match &mut self.head {
            Some(head) if Some(head.requests_before) == requests_so_far => {
                head.deadline.as_mut().poll(cx).is_ready()
            }
            _ => {
                self.head = None;
                false
            }
        }
    }

    fn note_written(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.activity.written_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() && self.is_head_late(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        ready!(read)?;
        self.note_read(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.note_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
