//! Claims on SQLite: the table is the truth about what is due, memory knows what is being worked on.
//!
//! So that a claim costs what it returns and not what is claimed already, a cursor remembers how far into the queue,
//! in the order of due time, entries were handed out. What comes back or comes new before it is kept in a set.

use std::collections::{BTreeSet, HashMap};

use postroad_model::{MessageId, ServerId, Timestamp};

pub(super) type Key = (ServerId, MessageId);

/// Position of an entry in the queue.
pub(super) type QueuePosition = (Timestamp, MessageId);

const START: QueuePosition = (Timestamp::from_micros(i64::MIN), MessageId(0));

#[derive(Debug)]
pub(crate) struct Claims {
    /// Messages this process has claimed and neither finished nor released.
    held: HashMap<Key, Claim>,
    /// Every entry up to here is held or in `behind`.
    cursor: QueuePosition,
    /// Entries up to the cursor that nobody holds. Some may be gone or due at another time by now: whoever takes one
    /// looks it up.
    behind: BTreeSet<(QueuePosition, ServerId)>,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    due_at: Timestamp,
    /// It went on the wire.
    begun: bool,
    /// A change of it is written but not committed: a second one comes too late, a new claim too early.
    settling: bool,
}

/// Effect of a committed change on the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The entry left the queue.
    Gone,
    /// The entry is in the queue, for anybody.
    Queued(Timestamp),
    /// The entry is in the queue, and still ours.
    Kept(Timestamp),
}

impl Default for Claims {
    fn default() -> Self {
        Self { held: HashMap::new(), cursor: START, behind: BTreeSet::new() }
    }
}

impl Claims {
    pub(super) fn is_held(&self, key: Key) -> bool {
        self.held.contains_key(&key)
    }

    pub(super) fn hold(&mut self, key: Key, due_at: Timestamp) {
        self.held.insert(key, Claim { due_at, begun: false, settling: false });
    }

    pub(super) fn cursor(&self) -> QueuePosition {
        self.cursor
    }

    pub(super) fn advance(&mut self, to: QueuePosition) {
        self.cursor = to;
    }

    /// The first entry behind the cursor that is due by then.
    pub(super) fn first_behind(&self, due_by: Timestamp) -> Option<(QueuePosition, ServerId)> {
        self.behind.first().copied().filter(|((due_at, _), _)| *due_at <= due_by)
    }

    pub(super) fn forget_behind(&mut self, entry: &(QueuePosition, ServerId)) {
        self.behind.remove(entry);
    }

    /// To be called for every entry that is free in the queue, after the commit: a claim that went on meanwhile may
    /// have passed it before it could be seen.
    pub(super) fn note_queued(&mut self, (server_id, message_id): Key, due_at: Timestamp) {
        let position = (due_at, message_id);
        if position <= self.cursor && !self.is_held((server_id, message_id)) {
            self.behind.insert((position, server_id));
        }
    }

    /// After a commit whose end is unknown: there may be entries that nobody noted.
    pub(super) fn look_again(&mut self) {
        self.cursor = START;
        self.behind.clear();
    }

    /// Whether a message may go on the wire: it is claimed, for this very time, and was not begun before.
    pub(super) fn begin(&mut self, key: Key, due_at: Timestamp) -> bool {
        match self.held.get_mut(&key) {
            Some(claim) if claim.due_at == due_at && !claim.begun && !claim.settling => {
                claim.begun = true;
                true
            }
            _ => false,
        }
    }

    /// For a `begin` whose caller never heard of it.
    pub(super) fn take_back_begin(&mut self, key: Key) {
        if let Some(claim) = self.held.get_mut(&key) {
            claim.begun = false;
        }
    }

    /// Whether a message is on the wire, or is just being settled.
    pub(super) fn is_begun(&self, key: Key) -> bool {
        self.held.get(&key).is_some_and(|claim| claim.begun || claim.settling)
    }

    /// The due time under which a message is claimed.
    pub(super) fn claimed_for(&self, key: Key) -> Option<Timestamp> {
        self.held.get(&key).map(|claim| claim.due_at)
    }

    /// Whether the message is claimed and nobody else is settling it; from now on we are.
    pub(super) fn begin_settling(&mut self, key: Key) -> bool {
        match self.held.get_mut(&key) {
            Some(claim) if !claim.settling => {
                claim.settling = true;
                true
            }
            _ => false,
        }
    }

    /// The change of a message that was being settled is committed. `None` if nothing was changed: it is free.
    pub(super) fn end_settling(&mut self, key: Key, after: Option<After>) {
        let Some(before) = self.held.remove(&key) else { return };
        match after.unwrap_or(After::Queued(before.due_at)) {
            After::Gone => {}
            After::Queued(due_at) => self.note_queued(key, due_at),
            After::Kept(due_at) => self.hold(key, due_at),
        }
    }

    /// The change was rolled back.
    pub(super) fn undo_settling(&mut self, key: Key) {
        if let Some(claim) = self.held.get_mut(&key) {
            claim.settling = false;
        }
    }

    /// The entry was never there: what held it is done again, or not at all.
    pub(super) fn forget(&mut self, key: Key) {
        self.held.remove(&key);
    }

    pub(super) fn release(&mut self, key: Key) {
        if let Some(claim) = self.held.get(&key).copied().filter(|claim| !claim.settling) {
            self.held.remove(&key);
            self.note_queued(key, claim.due_at);
        }
    }
}
