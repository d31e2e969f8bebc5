//! Reading request bodies within bounds: of one body, of all bodies in memory at once, and of time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use postroad_app::FieldProblem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::Settings;
use crate::failure::{Failure, Reason};

/// A body of unknown length takes memory in steps of this size.
const STEP_BYTES: usize = 256 << 10;
const KIB: usize = 1 << 10;

/// The limits that all requests share.
#[derive(Debug)]
pub(crate) struct Bodies {
    bytes_max: usize,
    /// One permit per KiB.
    memory: Arc<Semaphore>,
    memory_kib: usize,
    /// For a whole body to arrive.
    read_time_max: Duration,
    /// For memory that other bodies hold.
    memory_wait_max: Duration,
}

/// A body that was read; its memory counts until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Memory,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    permit: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(crate) fn new(settings: &Settings) -> Self {
        let memory_kib = settings.in_flight_bytes_max.div_ceil(KIB).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            bytes_max: settings.request_bytes_max,
            memory: Arc::new(Semaphore::new(memory_kib)),
            memory_kib,
            read_time_max: settings.times.body,
            memory_wait_max: settings.times.memory_wait,
        }
    }

    /// Reads the whole body, or refuses it as soon as it is known to be too large.
    pub(crate) async fn read(&self, body: Body) -> Result<ReadBody, Failure> {
        let declared = body.size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if declared.is_some_and(|bytes| bytes > self.bytes_max) {
            return Err(self.too_large());
        }
        if let Ok(read) = timeout(self.read_time_max, self.collect(body, declared)).await {
            return read;
        }
        let seconds = self.read_time_max.as_secs();
        let message = format!("The request body did not arrive within {seconds} seconds");
        Err(FieldProblem::new("", message).into())
    }

    async fn collect(&self, mut body: Body, declared: Option<usize>) -> Result<ReadBody, Failure> {
        let mut memory = Memory::default();
        self.reserve(&mut memory, declared.unwrap_or(0)).await?;
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| FieldProblem::new("", "The request body ended before its time"))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = first.len().max(all.len()) + data.len();
            if length > self.bytes_max {
                return Err(self.too_large());
            }
            if declared.is_none() {
                self.reserve(&mut memory, length.next_multiple_of(STEP_BYTES)).await?;
            }
            // A body that came in one piece is not copied.
            if first.is_empty() {
                first = data;
                continue;
            }
            if all.is_empty() {
                all.reserve(declared.unwrap_or(2 * length));
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&data);
        }
        let bytes = if all.is_empty() { first } else { all.freeze() };
        Ok(ReadBody { bytes, memory })
    }

    /// Makes `memory` cover that many bytes.
    async fn reserve(&self, memory: &mut Memory, bytes: usize) -> Result<(), Failure> {
        // A body larger than all there is may have all there is.
        let wanted_kib = bytes.div_ceil(KIB).min(self.memory_kib);
        let more = wanted_kib.saturating_sub(memory.kib());
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        match timeout(self.memory_wait_max, Arc::clone(&self.memory).acquire_many_owned(more)).await {
            Ok(Ok(permit)) => {
                memory.add(permit);
                Ok(())
            }
            _ => Err(Reason::Unavailable("the request bodies in memory are at their limit".into()).into()),
        }
    }

    fn too_large(&self) -> Failure {
        Reason::RequestTooLarge { bytes_max: self.bytes_max }.into()
    }
}

impl Memory {
    fn kib(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn bodies(request_bytes_max: usize, in_flight_bytes_max: usize) -> Bodies {
        Bodies::new(&Settings { request_bytes_max, in_flight_bytes_max, ..Settings::default() })
    }

    fn in_pieces(pieces: &[&'static [u8]]) -> Body {
        let pieces: Vec<Result<Bytes, std::io::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn pieces_are_put_together_and_counted() {
        let bodies = bodies(10, 1 << 20);
        let read = bodies.read(in_pieces(&[b"01", b"", b"234", b"56789"])).await.unwrap();
        assert_eq!(&read.bytes[..], b"0123456789");
        let refused = bodies.read(in_pieces(&[b"01234", b"567890"])).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::RequestTooLarge { bytes_max: 10 }));
    }

    #[tokio::test]
    async fn a_declared_length_over_the_limit_is_refused_unread() {
        let refused = bodies(10, 1 << 20).read(Body::from("01234567890")).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::RequestTooLarge { bytes_max: 10 }));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_shared_waited_for_and_given_back() {
        let bodies = bodies(1 << 20, 4 << 10);
        let held = bodies.read(Body::from(vec![0; 3 << 10])).await.unwrap();
        let refused = bodies.read(Body::from(vec![0; 2 << 10])).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        drop(held);
        // Larger than the whole budget: alone it is fine.
        let read = bodies.read(Body::from(vec![0; 64 << 10])).await.unwrap();
        assert_eq!(read.memory.kib(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_given_up() {
        let endless = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let refused = bodies(10, 1 << 20).read(endless).await.unwrap_err();
        assert!(refused.reason.row().message.contains("within 120 seconds"));
    }
}
