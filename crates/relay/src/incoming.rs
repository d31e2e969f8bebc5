//! A message on its way in.

use std::sync::Arc;

use postroad_smtp::server::Envelope;

use crate::memory::{Memory, Share};

/// Room for the headers that are put on top, so that the message need not move to a larger place for them.
const HEAD_BYTES: usize = 1 << 10;
const FIRST_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) envelope: Envelope,
    memory: Arc<Memory>,
    bytes_max: usize,
    bytes: Vec<u8>,
    share: Share,
    /// There was no memory for it: the rest of it is not kept.
    is_dropped: bool,
}

impl Incoming {
    pub(crate) fn new(envelope: Envelope, memory: Arc<Memory>, bytes_max: usize) -> Self {
        Self { envelope, memory, bytes_max, bytes: Vec::new(), share: Share::default(), is_dropped: false }
    }

    /// Waits for memory, which is what holds a sender back.
    pub(crate) async fn add(&mut self, piece: &[u8]) {
        if self.is_dropped {
            return;
        }
        let needed = self.bytes.len() + piece.len() + HEAD_BYTES;
        if needed > self.bytes.capacity() {
            let wanted = self.next_capacity(needed);
            if !self.memory.grow(&mut self.share, wanted).await {
                self.is_dropped = true;
                self.bytes = Vec::new();
                self.share = Share::default();
                return;
            }
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Doubles, and goes to the announced size (RFC 1870) as soon as a quarter of it is here: an announcement alone
    /// holds no memory.
    fn next_capacity(&self, needed: usize) -> usize {
        let announced = self.envelope.mail_from.size.and_then(|size| usize::try_from(size).ok());
        let announced = announced.map(|size| size.saturating_add(HEAD_BYTES));
        let capacity = match announced {
            Some(announced) if announced >= needed && announced / 4 <= needed => announced,
            _ => needed.max(self.bytes.capacity() * 2).max(FIRST_BYTES),
        };
        capacity.min((self.bytes_max + HEAD_BYTES).max(needed))
    }

    /// The whole message and the memory it holds; `None` if there was none for it.
    pub(crate) fn finish(self) -> Option<(Envelope, Vec<u8>, Share)> {
        (!self.is_dropped).then_some((self.envelope, self.bytes, self.share))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postroad_smtp::server::{MailFrom, ReversePath};

    use super::*;

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
        Incoming::new(envelope, memory, 1 << 20)
    }

    #[tokio::test]
    async fn an_announced_message_gets_its_place_once() {
        let mut message = incoming(Some(1_000_000), 4 << 20);
        message.add(&[b'x'; 1_000]).await;
        assert!(message.bytes.capacity() < 10_000, "the announcement alone holds nothing");
        for _ in 0..999 {
            message.add(&[b'x'; 1_000]).await;
        }
        let (_, bytes, _) = message.finish().unwrap();
        assert_eq!((bytes.len(), bytes.capacity()), (1_000_000, 1_000_000 + HEAD_BYTES));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_without_memory_is_let_go() {
        let mut message = incoming(None, 0);
        let held = Arc::clone(&message.memory);
        let mut share = Share::default();
        assert!(held.grow(&mut share, 64 << 10).await);
        message.add(b"x").await;
        message.add(b"y").await;
        assert!(message.bytes.is_empty());
        assert!(message.finish().is_none());
    }
}
