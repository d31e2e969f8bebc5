//! Writes the answers of endpoints. An answer over 4 KiB to a known caller, even an error, counts against the memory
//! of the caller's tenant until the answer is sent. The only exception is `write_in_any_case`. Large answers
//! reserve memory before they are built, and are serialised off the async threads. A client that stops reading does
//! not get the remaining bytes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Reason};
use crate::memory::{Pools, SMALL_BYTES_MAX, Share};
use crate::tenant::Tenant;
use crate::{Settings, blocking_pool};

/// Size of a segment; an answer is written and freed segment by segment.
const SEGMENT_BYTES: usize = 64 << 10;
/// Answers up to this size are not counted: the limits on concurrent requests of an address and of a tenant bound their
/// memory.
const UNCOUNTED_BYTES: usize = 4 << 10;

/// Writes answers, within the limits on memory and on the time for sending.
#[derive(Debug)]
pub(crate) struct AnswerWriter {
    pools: Arc<Pools>,
    /// The client must take the next segment within this time. Checked at this interval, so twice the time may pass.
    stall_max: Duration,
    /// The client must take the whole answer within this time.
    time_max: Duration,
}

impl AnswerWriter {
    pub(crate) fn new(settings: &Settings, pools: Arc<Pools>) -> Self {
        Self { pools, stall_max: settings.times.body_stall, time_max: settings.times.answer }
    }

    /// Reserves memory for an answer that needs `bytes` to build; `None` for a small one. Fails with 503 if no memory
    /// becomes free in time.
    pub(crate) async fn reserve(
        &self,
        tenant: impl Into<Tenant>,
        bytes: usize,
    ) -> Result<Option<Share>, Failure> {
        if bytes <= SMALL_BYTES_MAX {
            return Ok(None);
        }
        let mut share = Share::default();
        self.pools.answers.grow(tenant, &mut share, bytes).await?;
        Ok(Some(share))
    }

    /// Writes `value` as JSON on this thread, then reserves memory for the text if it is over `UNCOUNTED_BYTES`.
    pub(crate) async fn write(&self, tenant: Tenant, value: &dyn WriteJson) -> Result<Body, Failure> {
        let segments = write_segments(value)?;
        let bytes: usize = segments.iter().map(Vec::len).sum();
        let mut share = Share::default();
        if bytes > UNCOUNTED_BYTES {
            self.pools.answers.grow(tenant, &mut share, bytes).await?;
        }
        Ok(self.body(segments, share))
    }

    /// Writes `value` even if no memory is free: the call has changed something, and its caller must learn
    /// that. A client that reads too slowly still does not get the remaining bytes.
    pub(crate) fn write_in_any_case(&self, value: &dyn WriteJson) -> Result<Body, Failure> {
        Ok(self.body(write_segments(value)?, Share::default()))
    }

    /// Writes `value`, for which `share` was reserved, as JSON on a blocking thread. The body frees `share` segment by
    /// segment as it is sent.
    pub(crate) async fn write_reserved(
        &self,
        value: Box<dyn WriteJson>,
        share: Share,
    ) -> Result<Body, Failure> {
        // The share is moved as well: it is held until the work is done, even if the caller has gone.
        let work = move || write_segments(&*value).map(|segments| (segments, share));
        let (segments, share) = blocking_pool::run_on_blocking_thread(work).await??;
        Ok(self.body(segments, share))
    }

    fn body(&self, mut segments: VecDeque<Vec<u8>>, mut share: Share) -> Body {
        let bytes = segments.iter().map(Vec::len).sum();
        if bytes <= UNCOUNTED_BYTES {
            return Body::from(segments.pop_front().unwrap_or_default());
        }
        // Only the text is needed from here on, so the share shrinks to its size.
        drop(share.split_above(bytes));
        let rest = Arc::new(Mutex::new(Rest { segments, share, bytes, segments_taken: 0, is_cut: false }));
        let watch_task = tokio::spawn(watch(Arc::downgrade(&rest), self.stall_max, self.time_max));
        Body::new(SegmentedBody { rest, watch_task })
    }
}

/// A value that is written as JSON. Used as a trait object, so that the code that writes answers is compiled once and
/// not for each endpoint.
pub(crate) trait WriteJson: Send + Sync {
    fn write_json(&self, segments: &mut Segments) -> serde_json::Result<()>;
}

impl<T: Serialize + Send + Sync> WriteJson for T {
    fn write_json(&self, segments: &mut Segments) -> serde_json::Result<()> {
        serde_json::to_writer(segments, self)
    }
}

fn write_segments(value: &dyn WriteJson) -> Result<VecDeque<Vec<u8>>, Failure> {
    let mut segments = Segments::default();
    value
        .write_json(&mut segments)
        .map_err(|error| Reason::Internal(format!("an answer cannot be written: {error}")))?;
    Ok(segments.finish())
}

/// JSON text in segments. At most the first segment is copied when it grows; each segment is freed separately.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    full: VecDeque<Vec<u8>>,
    last: Vec<u8>,
}

impl Segments {
    fn finish(mut self) -> VecDeque<Vec<u8>> {
        self.full.push_back(self.last);
        self.full
    }
}

impl io::Write for Segments {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == SEGMENT_BYTES {
            self.full.push_back(std::mem::take(&mut self.last));
        }
        if self.last.capacity() == 0 && !self.full.is_empty() {
            self.last.reserve_exact(SEGMENT_BYTES);
        }
        let written = bytes.len().min(SEGMENT_BYTES - self.last.len());
        self.last.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Part of an answer that hyper has not taken yet.
struct Rest {
    segments: VecDeque<Vec<u8>>,
    share: Share,
    bytes: usize,
    segments_taken: usize,
    is_cut: bool,
}

impl Rest {
    fn take_segment(&mut self) -> Option<Bytes> {
        let bytes = self.segments.pop_front()?;
        self.bytes -= bytes.len();
        self.segments_taken += 1;
        Some(Bytes::from_owner(Segment { bytes, _share: self.share.split_above(self.bytes) }))
    }
}

/// One segment on its way to the socket. hyper drops the body when hyper takes the last segment, not when that segment
/// is sent; therefore each segment holds a share of its own.
struct Segment {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Segment {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct SegmentedBody {
    rest: Arc<Mutex<Rest>>,
    watch_task: JoinHandle<()>,
}

impl HttpBody for SegmentedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut rest = lock(&self.rest);
        if rest.is_cut {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        Poll::Ready(rest.take_segment().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        let rest = lock(&self.rest);
        rest.segments.is_empty() && !rest.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(lock(&self.rest).bytes as u64)
    }
}

impl Drop for SegmentedBody {
    fn drop(&mut self) {
        self.watch_task.abort();
    }
}

/// Frees the remaining segments if the client takes nothing for `stall_max`, or not everything within `time_max`. The
/// body itself cannot do this: hyper does not poll the body while the client takes nothing.
async fn watch(rest: Weak<Mutex<Rest>>, stall_max: Duration, time_max: Duration) {
    let end = Instant::now() + time_max;
    let mut taken_before = 0;
    loop {
        sleep(stall_max).await;
        let Some(rest) = rest.upgrade() else { return };
        let mut rest = lock(&rest);
        if rest.segments_taken == taken_before || Instant::now() >= end {
            tracing::info!(bytes = rest.bytes, "response closed: the client reads too slowly");
            rest.segments = VecDeque::new();
            rest.share = Share::default();
            rest.is_cut = true;
            return;
        }
        taken_before = rest.segments_taken;
    }
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock()
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use http_body_util::BodyExt;
    use serde::Serializer;

    use postroad_model::ServerId;

    use super::*;

    const STALL: Duration = Duration::from_secs(20);
    const MIB: usize = 1 << 20;
    const SERVER_1: ServerId = ServerId(1);

    /// Of 32 MiB, `Pools` gives 12 MiB to answers; one server may hold half of them.
    fn new_answer_writer() -> AnswerWriter {
        let pools = Pools::new(32 * MIB, Duration::from_secs(10));
        AnswerWriter { pools: Arc::new(pools), stall_max: STALL, time_max: 10 * STALL }
    }

    fn free_bytes(answer_writer: &AnswerWriter) -> usize {
        answer_writer.pools.answers.free_bytes()
    }

    /// Serialises to exactly 1 MiB: two quotes and the text between them.
    fn text() -> String {
        "x".repeat(MIB - 2)
    }

    #[tokio::test]
    async fn memory_is_freed_as_the_answer_is_sent() {
        let answer_writer = new_answer_writer();
        assert!(
            answer_writer.reserve(SERVER_1, SMALL_BYTES_MAX).await.unwrap().is_none(),
            "small ones need no reservation"
        );
        let share = answer_writer.reserve(SERVER_1, 3 * MIB).await.unwrap().unwrap();
        assert_eq!(free_bytes(&answer_writer), 9 * MIB);
        let mut body = answer_writer.write_reserved(Box::new(text()), share).await.unwrap();
        assert_eq!(free_bytes(&answer_writer), 11 * MIB, "of the answer, only its text still counts");
        assert_eq!(body.size_hint().exact(), Some(MIB as u64));
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((first.len(), free_bytes(&answer_writer)), (SEGMENT_BYTES, 11 * MIB));
        drop(first);
        assert_eq!(free_bytes(&answer_writer), 11 * MIB + SEGMENT_BYTES);
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!((rest.len(), rest.last()), (MIB - SEGMENT_BYTES, Some(&b'"')));
        drop(rest);
        assert_eq!(free_bytes(&answer_writer), 12 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn unreserved_answers_are_counted_and_no_server_gets_all_the_memory() {
        let answer_writer = new_answer_writer();
        let small = answer_writer.write(SERVER_1.into(), &"x".repeat(UNCOUNTED_BYTES - 2)).await.unwrap();
        assert_eq!(free_bytes(&answer_writer), 12 * MIB, "small ones do not count");
        let unread: Vec<Body> = futures_util::future::join_all(
            (0..6).map(|_| async { answer_writer.write(SERVER_1.into(), &text()).await.unwrap() }),
        )
        .await;
        assert_eq!(free_bytes(&answer_writer), 6 * MIB);
        // Longer than the wait for memory, shorter than the time after which unread answers are cut off.
        let refused =
            tokio::time::timeout(STALL / 2 + STALL / 4, answer_writer.write(SERVER_1.into(), &text()))
                .await
                .unwrap();
        assert!(matches!(refused.unwrap_err().reason, Reason::Unavailable(_)));
        drop(answer_writer.write(ServerId(2).into(), &text()).await.expect("others have their own share"));
        sleep(2 * STALL).await;
        assert_eq!(free_bytes(&answer_writer), 12 * MIB, "unread answers are cut off");
        drop((small, unread));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_cut_off_when_its_client_stops_reading() {
        let answer_writer = new_answer_writer();
        let share = answer_writer.reserve(SERVER_1, MIB).await.unwrap().unwrap();
        let mut body = answer_writer.write_reserved(Box::new(text()), share).await.unwrap();
        sleep(STALL / 2).await;
        drop(body.frame().await.unwrap().unwrap());
        sleep(STALL).await;
        drop(body.frame().await.unwrap().expect("a slow reader gets the next segment"));
        sleep(2 * STALL).await;
        assert_eq!(free_bytes(&answer_writer), 12 * MIB);
        assert!(!body.is_end_stream() && body.frame().await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_takes_too_long_to_read_is_cut_off() {
        let answer_writer = AnswerWriter { time_max: 2 * STALL, ..new_answer_writer() };
        let share = answer_writer.reserve(SERVER_1, MIB).await.unwrap().unwrap();
        let mut body = answer_writer.write_reserved(Box::new(text()), share).await.unwrap();
        for _ in 0..3 {
            drop(body.frame().await.unwrap().unwrap());
            sleep(STALL * 3 / 4).await;
        }
        assert!(body.frame().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn large_answers_are_written_on_another_thread() {
        /// Serialises as `true` on any thread but the one with this id.
        struct IsOtherThread(ThreadId);
        impl Serialize for IsOtherThread {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool(thread::current().id() != self.0)
            }
        }
        let body = new_answer_writer()
            .write_reserved(Box::new(IsOtherThread(thread::current().id())), Share::default())
            .await
            .unwrap();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "true");
    }
}
