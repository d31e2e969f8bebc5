//! Message being received.

use std::sync::Arc;

use postroad_smtp::server::Envelope;

use crate::memory::{Memory, Share, Tenant};

/// Spare capacity for the headers that are added on top, so that adding them reallocates nothing.
const ADDED_HEADER_BYTES: usize = 1 << 10;
/// Smallest number of bytes that a share covers.
const FIRST_SHARE_BYTES: usize = 4 << 10;
/// Up to this size the buffer doubles. A larger one is allocated once, for the announced or the largest possible size:
/// untouched pages take no memory, and a reallocation would hold the megabytes twice.
const DOUBLING_BYTES_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) envelope: Envelope,
    memory: Arc<Memory>,
    tenant: Tenant,
    bytes_max: usize,
    bytes: Vec<u8>,
    share: Share,
    /// Number of bytes that the share covers.
    covered_bytes: usize,
    /// Whether the message is discarded, because no memory became free in time.
    is_dropped: bool,
}

impl Incoming {
    pub(crate) fn new(envelope: Envelope, memory: Arc<Memory>, tenant: Tenant, bytes_max: usize) -> Self {
        let (bytes, share) = (Vec::new(), Share::default());
        Self { envelope, memory, tenant, bytes_max, bytes, share, covered_bytes: 0, is_dropped: false }
    }

    /// Appends a piece. Waits for memory, which slows the sender down; discards the message if none becomes free in
    /// time.
    pub(crate) async fn add(&mut self, piece: &[u8]) {
        if self.is_dropped {
            return;
        }
        let needed = self.bytes.len() + piece.len() + ADDED_HEADER_BYTES;
        if needed > self.covered_bytes {
            let wanted = self.next_covered_bytes(needed);
            if !self.memory.grow(self.tenant, &mut self.share, wanted).await {
                self.is_dropped = true;
                self.bytes = Vec::new();
                self.share = Share::default();
                return;
            }
            self.covered_bytes = wanted;
        }
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(self.next_capacity(needed) - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Number of bytes that the share should cover, so that it need not grow with each piece.
    fn next_covered_bytes(&self, needed: usize) -> usize {
        if needed > DOUBLING_BYTES_MAX {
            needed.next_multiple_of(DOUBLING_BYTES_MAX)
        } else {
            needed.max(self.covered_bytes * 2).max(FIRST_SHARE_BYTES)
        }
    }

    fn next_capacity(&self, needed: usize) -> usize {
        if needed <= DOUBLING_BYTES_MAX {
            return self.covered_bytes;
        }
        // RFC 1870: SIZE that the client announced.
        let announced = self.envelope.mail_from.size.and_then(|size| usize::try_from(size).ok());
        let announced =
            announced.map(|size| size.saturating_add(ADDED_HEADER_BYTES)).filter(|size| *size >= needed);
        announced
            .unwrap_or(self.bytes_max + ADDED_HEADER_BYTES)
            .min(self.bytes_max + ADDED_HEADER_BYTES)
            .max(needed)
    }

    /// Complete message and its memory share; `None` if the message was discarded for lack of memory.
    pub(crate) fn finish(self) -> Option<(Envelope, Vec<u8>, Share)> {
        (!self.is_dropped).then_some((self.envelope, self.bytes, self.share))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postroad_model::ServerId;
    use postroad_smtp::server::{MailFrom, ReversePath};

    use super::*;

    const TENANT: Tenant = Tenant::Server(ServerId(1));

    fn incoming(size: Option<u64>, in_flight_bytes_max: usize) -> Incoming {
        let mail_from = MailFrom {
            path: ReversePath::Null,
            size,
            is_eight_bit: false,
            is_smtputf8: false,
            ret: None,
            envid: None,
        };
        let envelope = Envelope { mail_from, rcpt_to: Vec::new() };
        let memory = Arc::new(Memory::new(in_flight_bytes_max, 1 << 20, Duration::from_secs(1)));
        Incoming::new(envelope, memory, TENANT, 1 << 20)
    }

    #[tokio::test]
    async fn a_large_message_gets_a_buffer_of_its_announced_or_the_largest_size() {
        for (announced, capacity) in [(Some(1_000_000), 1_000_000), (Some(300_000), 1 << 20), (None, 1 << 20)]
        {
            let mut message = incoming(announced, 4 << 20);
            message.add(&[b'x'; 1_000]).await;
            assert!(message.bytes.capacity() < 10_000, "an announced size alone allocates nothing");
            for _ in 0..999 {
                message.add(&[b'x'; 1_000]).await;
            }
            assert_eq!(message.covered_bytes, 1 << 20, "the share covers received bytes, not announced ones");
            let (_, bytes, _) = message.finish().unwrap();
            assert_eq!((bytes.len(), bytes.capacity()), (1_000_000, capacity + ADDED_HEADER_BYTES));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_without_free_memory_is_dropped() {
        let mut message = incoming(None, 0);
        let memory = Arc::clone(&message.memory);
        let mut share = Share::default();
        assert!(memory.grow(TENANT, &mut share, 64 << 10).await);
        message.add(b"x").await;
        message.add(b"y").await;
        assert!(message.bytes.is_empty());
        assert!(message.finish().is_none());
    }
}
