//! Reads request bodies within limits: size of one body, memory of all bodies, and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use postroad_app::FieldProblem;
use tokio::time::timeout;

use crate::Settings;
use crate::failure::{Failure, Reason};
use crate::memory::{Pools, SMALL_BYTES_MAX, Share};
use crate::tenant::Tenant;

/// Minimum memory that a body reserves, unless its announced length is smaller.
const RESERVATION_BYTES_MIN: usize = 4 << 10;

/// Reads request bodies within limits that all requests share.
#[derive(Debug)]
pub(crate) struct BodyReader {
    bytes_max: usize,
    batch_bytes_max: usize,
    pools: Arc<Pools>,
    /// Time for a whole body to arrive.
    read_time_max: Duration,
    /// Time for the next piece of a body to arrive.
    stall_max: Duration,
}

/// Body that was read; its memory counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    pub(crate) memory: BodyMemory,
}

/// Memory that a body holds in the pools.
#[derive(Debug, Default)]
pub(crate) struct BodyMemory {
    small: Share,
    large: Share,
}

/// Body that is being received.
struct ArrivingBody {
    /// The tenant whose memory the body takes.
    tenant: Tenant,
    /// From `Content-Length`.
    announced_bytes: Option<usize>,
    memory: BodyMemory,
    /// Number of bytes that `memory` covers.
    reserved_bytes: usize,
    /// First piece; a body that arrives in one piece is not copied.
    first: Bytes,
    /// All pieces, once there are several.
    all: Vec<u8>,
}

impl BodyReader {
    pub(crate) fn new(settings: &Settings, pools: Arc<Pools>) -> Self {
        Self {
            bytes_max: settings.request_bytes_max,
            batch_bytes_max: settings.batch_bytes_max,
            pools,
            read_time_max: settings.times.body,
            stall_max: settings.times.body_stall,
        }
    }

    /// Reads the whole body. Refuses a body as soon as it is known to be too large.
    pub(crate) async fn read(&self, tenant: impl Into<Tenant>, body: Body) -> Result<ReceivedBody, Failure> {
        self.read_within(self.bytes_max, tenant.into(), body).await
    }

    /// Like `read`, with the limit of send/batch.
    pub(crate) async fn read_batch(
        &self,
        tenant: impl Into<Tenant>,
        body: Body,
    ) -> Result<ReceivedBody, Failure> {
        self.read_within(self.batch_bytes_max, tenant.into(), body).await
    }

    /// Raises the reservation of a body to `bytes`, to cover the values parsed from it.
    pub(crate) async fn grow(
        &self,
        tenant: Tenant,
        memory: &mut BodyMemory,
        bytes: usize,
    ) -> Result<(), Failure> {
        let large_bytes = bytes.saturating_sub(memory.small.bytes());
        self.pools.large.grow(tenant, &mut memory.large, large_bytes).await
    }

    async fn read_within(
        &self,
        bytes_max: usize,
        tenant: Tenant,
        body: Body,
    ) -> Result<ReceivedBody, Failure> {
        let announced_bytes =
            body.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if announced_bytes.is_some_and(|bytes| bytes > bytes_max) {
            return Err(too_large(bytes_max));
        }
        match timeout(self.read_time_max, self.collect(bytes_max, tenant, body, announced_bytes)).await {
            Ok(read) => read,
            Err(_) => Err(too_slow("The request body did not arrive within", self.read_time_max)),
        }
    }

    async fn collect(
        &self,
        bytes_max: usize,
        tenant: Tenant,
        mut body: Body,
        announced_bytes: Option<usize>,
    ) -> Result<ReceivedBody, Failure> {
        let mut arriving = ArrivingBody {
            tenant,
            announced_bytes,
            memory: BodyMemory::default(),
            reserved_bytes: 0,
            first: Bytes::new(),
            all: Vec::new(),
        };
        loop {
            let Ok(frame) = timeout(self.stall_max, body.frame()).await else {
                return Err(too_slow("Nothing more of the request body arrived for", self.stall_max));
            };
            let Some(frame) = frame else { return Ok(arriving.finish()) };
            let frame = frame.map_err(|_| {
                FieldProblem::new("", "The connection ended before the request body was complete")
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if arriving.length() + data.len() > bytes_max {
                return Err(too_large(bytes_max));
            }
            self.reserve(&mut arriving, data.len(), bytes_max).await?;
            arriving.add(data);
        }
    }

    /// Reserves memory for the bytes that have arrived, rounded up to a power of two. Bytes that are only announced get
    /// no memory: a client must send bytes to make others wait. Rounding keeps the number of waits small.
    async fn reserve(
        &self,
        arriving: &mut ArrivingBody,
        more_bytes: usize,
        bytes_max: usize,
    ) -> Result<(), Failure> {
        let needed = arriving.length() + more_bytes;
        if needed <= arriving.reserved_bytes {
            return Ok(());
        }
        let max = arriving.announced_bytes.unwrap_or(bytes_max).max(needed);
        let wanted = needed.next_power_of_two().max(RESERVATION_BYTES_MIN).min(max);
        // A body announced as large takes nothing from the pool of small bodies. A body without an announced length
        // may be small.
        let is_large = arriving.announced_bytes.is_some_and(|bytes| bytes > SMALL_BYTES_MAX);
        let small = if is_large { 0 } else { wanted.min(SMALL_BYTES_MAX) };
        let tenant = arriving.tenant;
        self.pools.small.grow(tenant, &mut arriving.memory.small, small).await?;
        self.pools.large.grow(tenant, &mut arriving.memory.large, wanted - small).await?;
        arriving.reserved_bytes = wanted;
        Ok(())
    }
}

fn too_large(bytes_max: usize) -> Failure {
    Reason::RequestTooLarge { bytes_max }.into()
}

impl ArrivingBody {
    fn length(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    /// Keeps a piece for which memory was reserved.
    fn add(&mut self, data: Bytes) {
        if self.first.is_empty() {
            self.first = data;
            return;
        }
        // The buffer grows with the reserved memory, not at once to the announced length.
        self.all.reserve_exact(self.reserved_bytes - self.all.len());
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        self.all.extend_from_slice(&data);
    }

    fn finish(mut self) -> ReceivedBody {
        let length = self.length();
        let small = self.memory.small.bytes().min(length);
        drop(self.memory.large.split_above(length - small));
        drop(self.memory.small.split_above(length));
        // Frees the capacity for bytes that never came.
        self.all.shrink_to_fit();
        let bytes = if self.all.is_empty() { self.first } else { self.all.into() };
        ReceivedBody { bytes, memory: self.memory }
    }
}

fn too_slow(message: &str, time_max: Duration) -> Failure {
    FieldProblem::new("", format!("{message} {} seconds", time_max.as_secs())).into()
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};
    use tokio::time::{Instant, sleep};

    use postroad_model::ServerId;

    use super::*;
    use crate::memory::Pool;

    const SERVER_1: ServerId = ServerId(1);
    const MIB: usize = 1 << 20;
    const PIECE_BYTES: usize = 64 << 10;

    /// Reader with memory for each server: 4 MiB for small bodies and 4 MiB for large ones.
    fn new_body_reader(request_bytes_max: usize) -> BodyReader {
        let settings = Settings { request_bytes_max, ..Settings::default() };
        let pools = Pools {
            small: Pool::new(16 * MIB, 4 * MIB, settings.times.memory_wait),
            large: Pool::new(16 * MIB, 4 * MIB, settings.times.memory_wait),
            answers: Pool::new(MIB, MIB, settings.times.memory_wait),
        };
        BodyReader::new(&settings, Arc::new(pools))
    }

    fn free_bytes(body_reader: &BodyReader) -> (usize, usize) {
        (body_reader.pools.small.free_bytes(), body_reader.pools.large.free_bytes())
    }

    fn in_pieces(pieces: &[&'static [u8]]) -> Body {
        let pieces: Vec<Result<Bytes, std::io::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    /// Body of an announced length. If fewer bytes are to arrive, the body then stalls.
    struct Announced {
        /// Announced bytes that were not sent yet.
        announced_left: usize,
        /// Bytes that will still be sent.
        arriving_left: usize,
    }

    impl HttpBody for Announced {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, std::io::Error>>> {
            use std::task::Poll;
            if self.arriving_left == 0 {
                return if self.announced_left == 0 { Poll::Ready(None) } else { Poll::Pending };
            }
            let piece = PIECE_BYTES.min(self.arriving_left);
            self.arriving_left -= piece;
            self.announced_left -= piece;
            Poll::Ready(Some(Ok(hyper::body::Frame::data(vec![0; piece].into()))))
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(self.announced_left as u64)
        }
    }

    fn announced(length: usize, arriving: usize) -> Body {
        Body::new(Announced { announced_left: length, arriving_left: arriving })
    }

    /// Body of unknown length that sends `arriving` bytes and then stalls.
    fn unannounced(arriving: usize) -> Body {
        let pieces = std::iter::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![0; PIECE_BYTES])));
        Body::from_stream(stream::iter(pieces.take(arriving / PIECE_BYTES)).chain(stream::pending()))
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_joined_and_its_total_is_limited() {
        let body_reader = new_body_reader(10);
        let read = body_reader.read(SERVER_1, in_pieces(&[b"01", b"", b"234", b"56789"])).await.unwrap();
        assert_eq!(&read.bytes[..], b"0123456789");
        let refused = body_reader.read(SERVER_1, in_pieces(&[b"01234", b"567890"])).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::RequestTooLarge { bytes_max: 10 }));
    }

    #[tokio::test]
    async fn an_announced_length_over_the_limit_is_refused_unread() {
        let refused = new_body_reader(10).read(SERVER_1, announced(11, 0)).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::RequestTooLarge { bytes_max: 10 }));
    }

    #[tokio::test]
    async fn a_body_counts_by_its_length_until_it_is_dropped() {
        let body_reader = new_body_reader(8 * MIB);
        let all = free_bytes(&body_reader);
        let small = body_reader.read(SERVER_1, announced(100_000, 100_000)).await.unwrap();
        // The pools count whole KiB.
        assert_eq!(
            (small.bytes.len(), small.memory.small.bytes(), small.memory.large.bytes()),
            (100_000, 98 << 10, 0)
        );
        let large = body_reader.read(SERVER_1, announced(3 * MIB, 3 * MIB)).await.unwrap();
        assert_eq!((large.memory.small.bytes(), large.memory.large.bytes()), (0, 3 * MIB));
        drop(large);
        let pieces = std::iter::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![7; PIECE_BYTES])));
        let unknown =
            body_reader.read(SERVER_1, Body::from_stream(stream::iter(pieces.take(20)))).await.unwrap();
        assert_eq!(unknown.bytes, vec![7; 20 * PIECE_BYTES]);
        assert_eq!((unknown.memory.small.bytes(), unknown.memory.large.bytes()), (SMALL_BYTES_MAX, MIB));
        drop((small, unknown));
        assert_eq!(free_bytes(&body_reader), all);
        // A body larger than the server's share takes the whole share. It is accepted while the server has no other
        // large body.
        assert_eq!(
            body_reader.read(SERVER_1, announced(8 * MIB, 8 * MIB)).await.unwrap().bytes.len(),
            8 * MIB
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_announced_length_takes_no_memory() {
        let body_reader = new_body_reader(8 * MIB);
        let all = free_bytes(&body_reader);
        let mut idle: Vec<_> =
            (0..100).map(|_| Box::pin(body_reader.read(SERVER_1, announced(8 * MIB, 0)))).collect();
        for reading in &mut idle {
            assert!(reading.now_or_never().is_none());
        }
        assert_eq!(free_bytes(&body_reader), all);
    }

    #[tokio::test(start_paused = true)]
    async fn small_bodies_do_not_wait_for_large_ones() {
        let body_reader = new_body_reader(8 * MIB);
        let mut large = Vec::new();
        for body in [announced(8 * MIB, 3 * MIB), announced(8 * MIB, 3 * MIB), unannounced(3 * MIB)] {
            large.push(Box::pin(body_reader.read(SERVER_1, body)));
            assert!(large.last_mut().unwrap().now_or_never().is_none());
        }
        assert_eq!(body_reader.pools.large.free_bytes(), 12 * MIB);
        let begun = Instant::now();
        body_reader.read(SERVER_1, announced(SMALL_BYTES_MAX, SMALL_BYTES_MAX)).await.unwrap();
        body_reader.read(SERVER_1, in_pieces(&[b"{", b"}"])).await.unwrap();
        body_reader
            .read(ServerId(2), announced(3 * MIB, 3 * MIB))
            .await
            .expect("others have their own share");
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_that_wait_for_each_other_do_not_deadlock() {
        let body_reader = new_body_reader(8 * MIB);
        let all = free_bytes(&body_reader);
        let begun = Instant::now();
        let reads = (0..6).map(|_| body_reader.read(SERVER_1, announced(3 * MIB, 3 * MIB)));
        let outcomes = futures_util::future::join_all(reads.map(|read| async {
            // Each request keeps its memory while it works.
            let read = read.await;
            sleep(Duration::from_secs(1)).await;
            read.map(drop)
        }));
        let refused: Vec<Failure> = outcomes.await.into_iter().filter_map(Result::err).collect();
        assert!(refused.len() < 6 && begun.elapsed() < Duration::from_secs(30), "{refused:?}");
        assert!(refused.iter().all(|failure| matches!(failure.reason, Reason::Unavailable(_))));
        assert_eq!(free_bytes(&body_reader), all);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_or_takes_too_long_is_refused() {
        let body_reader = new_body_reader(MIB);
        let all = free_bytes(&body_reader);
        for body in [announced(MIB, PIECE_BYTES), announced(10, 0), unannounced(PIECE_BYTES)] {
            let refused = body_reader.read(SERVER_1, body).await.unwrap_err();
            let message = refused.reason.row().message.into_owned();
            assert_eq!(message, "Nothing more of the request body arrived for 20 seconds");
        }
        let dripping =
            stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b"x"))).then(|piece| async {
                sleep(Duration::from_secs(19)).await;
                piece
            });
        let refused = body_reader.read(SERVER_1, Body::from_stream(dripping)).await.unwrap_err();
        assert!(refused.reason.row().message.contains("within 120 seconds"));
        assert_eq!(free_bytes(&body_reader), all);
    }
}
