//! The inbox of `postroad dev`: mail that has passed the whole pipeline ends here, for people and their tests to
//! inspect.

mod caught_message;
mod server;
mod wait;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{Clock, Shared};
use tokio::sync::{Semaphore, watch};

pub use caught_message::CaughtMessage;
pub use server::InboxServer;
pub use wait::MessageMatcher;

use crate::local_smtp::IncomingMessage;

/// Maximum number of concurrent searches in the texts of messages.
const TEXT_SEARCHES_MAX: usize = 2;

/// Caught messages, kept in memory and lost with the process. At a limit the oldest are removed. Cheap to clone.
#[derive(Clone)]
pub struct Inbox {
    state: Shared<InboxState>,
}

struct InboxState {
    clock: Arc<dyn Clock>,
    limits: Limits,
    messages: Mutex<Messages>,
    /// The id of the newest message, for waiting callers.
    newest: watch::Sender<u64>,
    /// Limits searches in the texts of messages: every search reads the text of all messages.
    text_searches: Semaphore,
}

#[derive(Clone, Copy)]
struct Limits {
    messages_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Messages {
    /// Oldest first.
    stored: VecDeque<Arc<CaughtMessage>>,
    bytes: usize,
    last_id: u64,
}

impl Inbox {
    /// Keeps at most 10,000 messages and at most 256 MiB.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_limits(clock, Limits { messages_max: 10_000, bytes_max: 256 << 20 })
    }

    fn with_limits(clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let (newest, _) = watch::channel(0);
        let text_searches = Semaphore::new(TEXT_SEARCHES_MAX);
        Self {
            state: Shared::new(InboxState {
                clock,
                limits,
                messages: Mutex::default(),
                newest,
                text_searches,
            }),
        }
    }

    /// The newest messages, newest first.
    pub fn list(&self, limit: usize) -> Vec<Arc<CaughtMessage>> {
        self.messages().stored.iter().rev().take(limit).cloned().collect()
    }

    pub fn find(&self, id: u64) -> Option<Arc<CaughtMessage>> {
        let messages = self.messages();
        // Ids increase with the position, and some may be missing.
        let index = messages.stored.binary_search_by_key(&id, |message| message.id).ok()?;
        messages.stored.get(index).cloned()
    }

    /// Receives the id of the newest message whenever messages arrive; ids in between may be skipped.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.state.newest.subscribe()
    }

    /// Removes all messages and returns how many. Ids are not reused.
    pub fn clear(&self) -> usize {
        let mut messages = self.messages();
        messages.bytes = 0;
        std::mem::take(&mut messages.stored).len()
    }

    /// Removes these messages and returns how many existed.
    pub fn remove(&self, ids: &HashSet<u64>) -> usize {
        let mut messages = self.messages();
        let before = messages.stored.len();
        messages.stored.retain(|message| !ids.contains(&message.id));
        messages.bytes = messages.stored.iter().map(|message| message.raw.len()).sum();
        before - messages.stored.len()
    }

    /// Adds one entry for each recipient.
    fn catch(&self, received: &IncomingMessage) {
        let (head, received_at) = (caught_message::Head::of(&received.bytes), self.state.clock.now());
        let mut messages = self.messages();
        for caught in caught_message::entries(received, &head, received_at, messages.last_id + 1) {
            messages.last_id = caught.id;
            messages.bytes += caught.raw.len();
            messages.stored.push_back(Arc::new(caught));
        }
        messages.drop_oldest(self.state.limits);
        let last_id = messages.last_id;
        drop(messages);
        self.state.newest.send_replace(last_id);
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.state.messages.lock()
    }
}

impl Messages {
    fn drop_oldest(&mut self, limits: Limits) {
        while self.stored.len() > limits.messages_max || self.bytes > limits.bytes_max {
            let Some(oldest) = self.stored.pop_front() else { return };
            self.bytes -= oldest.raw.len();
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("messages", &self.messages().stored.len())
            .field("waiting", &self.state.newest.receiver_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use postroad_model::EmailAddress;
    use postroad_smtp::server::{Envelope, MailFrom, RcptTo, ReversePath};
    use postroad_testkit::ManualClock;

    use super::*;

    fn inbox(messages_max: usize, bytes_max: usize) -> Inbox {
        Inbox::with_limits(Arc::new(ManualClock::default()), Limits { messages_max, bytes_max })
    }

    fn received(recipients: &[&str], raw: &'static str) -> IncomingMessage {
        let mail_from = MailFrom {
            path: ReversePath::Null,
            size: None,
            is_eight_bit: false,
            is_smtputf8: false,
            ret: None,
            envid: None,
        };
        let rcpt = |address: &&str| RcptTo {
            address: EmailAddress::parse(address).unwrap(),
            notify: None,
            orcpt: None,
        };
        let envelope = Envelope { mail_from, rcpt_to: recipients.iter().map(rcpt).collect() };
        IncomingMessage { helo: "client".to_owned(), envelope, bytes: Bytes::from_static(raw.as_bytes()) }
    }

    fn ids(inbox: &Inbox) -> Vec<u64> {
        inbox.list(usize::MAX).iter().map(|message| message.id).collect()
    }

    #[test]
    fn the_oldest_messages_make_room_by_count_and_by_size() {
        let by_count = inbox(2, 1_000);
        let by_size = inbox(100, 9);
        for _ in 0..3 {
            by_count.catch(&received(&["a@example.net"], "1234"));
            by_size.catch(&received(&["a@example.net"], "1234"));
        }
        assert_eq!((ids(&by_count), ids(&by_size)), (vec![3, 2], vec![3, 2]));
        by_size.catch(&received(&["a@example.net"], "123456789"));
        assert_eq!(ids(&by_size), [4]);
        by_size.catch(&received(&["a@example.net"], "1234567890"));
        assert_eq!(ids(&by_size), [0; 0], "a message larger than the inbox is not kept");
    }

    #[test]
    fn each_recipient_has_an_entry_and_ids_are_used_once() {
        let inbox = inbox(10, 1_000);
        inbox.catch(&received(&["a@example.net", "b@example.net"], "x"));
        assert_eq!(inbox.find(1).unwrap().rcpt_to.as_str(), "a@example.net");
        assert_eq!(inbox.find(2).unwrap().rcpt_to.as_str(), "b@example.net");
        assert_eq!((inbox.clear(), inbox.clear()), (2, 0));
        inbox.catch(&received(&["c@example.net"], "x"));
        assert_eq!((ids(&inbox), inbox.find(1)), (vec![3], None));
        assert_eq!(inbox.list(0), []);
    }

    #[test]
    fn single_messages_can_be_removed_and_make_room() {
        let inbox = inbox(10, 9);
        inbox.catch(&received(&["a@example.net", "b@example.net"], "1234"));
        assert_eq!(inbox.remove(&HashSet::from([1, 7])), 1);
        assert_eq!(ids(&inbox), [2]);
        inbox.catch(&received(&["c@example.net"], "1234"));
        assert_eq!(ids(&inbox), [3, 2], "the removed bytes count no more");
    }
}
