//! Claims on SQLite: the table has all queue entries; memory knows which of them are claimed.
//!
//! A claim reads little more than the entries that it returns: a cursor remembers up to which entry, in the order of
//! due time, the queue was claimed. Entries that return, or are added, before the cursor are kept in a set. If the set
//! grows too large, it is emptied, and the cursor goes back to its first entry. Of a skipped server only the position
//! of its first such entry is kept; the cursor goes back there when the server is no longer skipped.

use std::collections::{BTreeSet, HashMap};

use postroad_model::{MessageId, ServerId, Timestamp};

/// Key of a message, and of its queue entry.
pub(super) type Key = (ServerId, MessageId);

/// Position of an entry in the queue.
pub(super) type QueuePosition = (Timestamp, MessageId);

/// Maximum number of entries before the cursor that are kept one by one.
const BEHIND_MAX: usize = 100_000;

const START: QueuePosition = (Timestamp::from_micros(i64::MIN), MessageId(0));

#[derive(Debug)]
pub(crate) struct Claims {
    /// Messages that this process has claimed and neither finished nor released.
    claimed: HashMap<Key, Claim>,
    /// Waiting messages, claimed or not, with a change that is written but not committed.
    changing: HashMap<Key, Change>,
    /// Every entry up to this position is claimed, being changed, scheduled, in `behind`, or of a server in `skipped`.
    cursor: QueuePosition,
    /// Unclaimed entries up to the cursor. Some may be gone or due at another time by now, so each is looked up before
    /// it is used.
    behind: BTreeSet<(QueuePosition, ServerId)>,
    /// Servers whose entries are not claimed at the moment, and the first of these entries up to the cursor.
    skipped: HashMap<ServerId, Option<QueuePosition>>,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    due_at: Timestamp,
    /// Whether the message is being sent.
    begun: bool,
    /// Whether an outcome of the message is written but not committed. Until the commit, neither a second outcome nor a
    /// new claim is possible.
    settling: bool,
    /// Whether the claim was released, or `begin` answered `Gone`, while an outcome or a change was not committed.
    is_release_pending: bool,
}

/// Changes of one message in the writer's current group.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    uncommitted: u32,
    /// Effect of the committed changes.
    effect: Option<EntryAfter>,
    /// Due time with which a claim skipped the entry, or with which the entry was queued, during the change.
    missed_due_at: Option<Timestamp>,
}

/// State of a queue entry after a committed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryAfter {
    /// The entry left the queue.
    Gone,
    /// The entry is in the queue, unclaimed.
    Queued(Timestamp),
    /// The entry is in the queue, still claimed by this process.
    Kept(Timestamp),
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            claimed: HashMap::new(),
            changing: HashMap::new(),
            cursor: START,
            behind: BTreeSet::new(),
            skipped: HashMap::new(),
        }
    }
}

impl Claims {
    pub(super) fn is_claimed(&self, key: Key) -> bool {
        self.claimed.contains_key(&key)
    }

    pub(super) fn add(&mut self, key: Key, due_at: Timestamp) {
        self.claimed.insert(key, Claim { due_at, begun: false, settling: false, is_release_pending: false });
    }

    /// Claims an entry of the queue; `false` if the entry is not free, or its server is skipped. An entry that is being
    /// changed becomes claimable when the change is over.
    pub(super) fn take(&mut self, key: Key, due_at: Timestamp) -> bool {
        if let Some(change) = self.changing.get_mut(&key) {
            change.missed_due_at = Some(due_at);
            return false;
        }
        let is_free = !self.is_claimed(key) && !self.note_if_skipped(key, due_at);
        if is_free {
            self.add(key, due_at);
        }
        is_free
    }

    pub(super) fn cursor(&self) -> QueuePosition {
        self.cursor
    }

    pub(super) fn advance(&mut self, to: QueuePosition) {
        self.cursor = to;
    }

    /// The first entry of `behind` that is due by `due_by`.
    pub(super) fn first_behind(&self, due_by: Timestamp) -> Option<(QueuePosition, ServerId)> {
        self.behind.first().copied().filter(|((due_at, _), _)| *due_at <= due_by)
    }

    pub(super) fn forget_behind(&mut self, entry: &(QueuePosition, ServerId)) {
        self.behind.remove(entry);
    }

    /// Call this for every entry that was queued or became unclaimed, after the commit: a concurrent claim may have
    /// passed the entry before the commit made it visible.
    pub(super) fn note_queued(&mut self, (server_id, message_id): Key, due_at: Timestamp) {
        let (key, position) = ((server_id, message_id), (due_at, message_id));
        if let Some(change) = self.changing.get_mut(&key) {
            change.missed_due_at = Some(due_at);
        } else if position <= self.cursor && !self.is_claimed(key) && !self.note_if_skipped(key, due_at) {
            self.behind.insert((position, server_id));
            if self.behind.len() > BEHIND_MAX {
                let first = self.behind.first().map_or(START, |(first, _)| *first);
                self.go_back_to(first);
            }
        }
    }

    /// Replaces the skipped servers: entries of these servers are not claimed. Entries of servers that are no longer
    /// skipped can be claimed again.
    pub(super) fn set_skipped(&mut self, servers: &[ServerId]) {
        let mut first: Option<QueuePosition> = None;
        self.skipped.retain(|server, waiting| {
            let is_skipped = servers.contains(server);
            if !is_skipped && let Some(waiting) = *waiting {
                first = Some(first.map_or(waiting, |first| first.min(waiting)));
            }
            is_skipped
        });
        for server in servers {
            self.skipped.entry(*server).or_default();
        }
        if let Some(first) = first.filter(|first| *first <= self.cursor) {
            self.go_back_to(first);
        }
    }

    /// Returns whether the server of a free entry is skipped. If so, notes the entry's position, from which the queue
    /// is read again when the server is no longer skipped.
    fn note_if_skipped(&mut self, (server_id, message_id): Key, due_at: Timestamp) -> bool {
        let Some(waiting) = self.skipped.get_mut(&server_id) else { return false };
        let position = (due_at, message_id);
        *waiting = Some(waiting.map_or(position, |first| first.min(position)));
        true
    }

    /// Moves the cursor back, so that the queue is read again from this entry on.
    fn go_back_to(&mut self, (due_at, message_id): QueuePosition) {
        self.cursor = (due_at, MessageId(message_id.0 - 1));
        // Entries from this position on are read from the table again.
        self.behind.split_off(&((due_at, message_id), ServerId(i64::MIN)));
    }

    /// Makes the next claims read the whole queue again. Call this after a failure: the commit may have happened
    /// anyway, with entries that were never noted.
    pub(super) fn read_all_again(&mut self) {
        self.cursor = START;
        self.behind.clear();
        for waiting in self.skipped.values_mut() {
            *waiting = None;
        }
    }

    /// Marks a message as being sent. `false` unless the message is claimed for this due time and was not begun before.
    /// Also returns `false`, and releases the claim, while a change or outcome of the message is not committed: the
    /// caller forgets the message.
    pub(super) fn begin(&mut self, key: Key, due_at: Timestamp) -> bool {
        let is_changing = self.changing.contains_key(&key);
        match self.claimed.get_mut(&key) {
            Some(claim) if claim.due_at == due_at && !claim.begun => {
                if is_changing || claim.settling {
                    claim.is_release_pending = true;
                    return false;
                }
                claim.begun = true;
                true
            }
            _ => false,
        }
    }

    /// Reverts `begin`: its result did not reach the caller, or the message is not being sent after all.
    pub(super) fn undo_begin(&mut self, key: Key) {
        if let Some(claim) = self.claimed.get_mut(&key) {
            claim.begun = false;
        }
    }

    /// The due time under which a message is claimed.
    pub(super) fn claimed_due_at(&self, key: Key) -> Option<Timestamp> {
        self.claimed.get(&key).map(|claim| claim.due_at)
    }

    /// Marks a message as being settled; `false` if the message is not claimed, or if somebody else is changing or
    /// settling it.
    pub(super) fn begin_settling(&mut self, key: Key) -> bool {
        let is_changing = self.changing.contains_key(&key);
        match self.claimed.get_mut(&key) {
            Some(claim) if !claim.settling && !is_changing => {
                claim.settling = true;
                true
            }
            _ => false,
        }
    }

    /// Ends settling after the outcome is committed. With `None` nothing was changed, and the message becomes
    /// unclaimed.
    pub(super) fn end_settling(&mut self, key: Key, after: Option<EntryAfter>) {
        let Some(before) = self.claimed.remove(&key) else { return };
        match after.unwrap_or(EntryAfter::Queued(before.due_at)) {
            EntryAfter::Gone => {}
            EntryAfter::Kept(due_at) if !before.is_release_pending => self.add(key, due_at),
            EntryAfter::Queued(due_at) | EntryAfter::Kept(due_at) => self.note_queued(key, due_at),
        }
    }

    /// Reverts `begin_settling` before the outcome is written once more in the same group.
    pub(super) fn revert_begin_settling(&mut self, key: Key) {
        if let Some(claim) = self.claimed.get_mut(&key) {
            claim.settling = false;
        }
    }

    /// Ends settling after the outcome was rolled back.
    pub(super) fn undo_settling(&mut self, key: Key) {
        if let Some(claim) = self.claimed.get_mut(&key) {
            claim.settling = false;
            self.end_if_released(key);
        }
    }

    /// Begins a change of a message that is neither being sent nor being settled; `false` otherwise. Nobody claims or
    /// begins the message until `end_change`. The second of two changes in one group sees the rows that the first
    /// wrote.
    pub(super) fn begin_change(&mut self, key: Key) -> bool {
        let is_waiting = self.claimed.get(&key).is_none_or(|claim| !claim.begun && !claim.settling);
        if is_waiting {
            self.changing.entry(key).or_default().uncommitted += 1;
        }
        is_waiting
    }

    /// Ends a change after its commit or rollback. `effect` is `None` if the change had no effect or was rolled back.
    /// After the last change of the group, the claim of a changed entry ends.
    pub(super) fn end_change(&mut self, key: Key, effect: Option<EntryAfter>) {
        let Some(change) = self.changing.get_mut(&key) else { return };
        change.uncommitted -= 1;
        change.effect = effect.or(change.effect);
        if change.uncommitted > 0 {
            return;
        }
        let Change { effect, missed_due_at, .. } = *change;
        self.changing.remove(&key);
        match effect {
            Some(EntryAfter::Gone) => self.forget(key),
            Some(EntryAfter::Queued(due_at) | EntryAfter::Kept(due_at)) => {
                self.forget(key);
                self.note_queued(key, due_at);
            }
            None => {
                self.end_if_released(key);
                if let Some(due_at) = missed_due_at {
                    self.note_queued(key, due_at);
                }
            }
        }
    }

    /// Removes a claim, without making the entry claimable again.
    pub(super) fn forget(&mut self, key: Key) {
        self.claimed.remove(&key);
    }

    /// Ends a claim: at once, or after an uncommitted outcome or change of the message.
    pub(super) fn release(&mut self, key: Key) {
        if let Some(claim) = self.claimed.get_mut(&key) {
            claim.is_release_pending = true;
            self.end_if_released(key);
        }
    }

    fn end_if_released(&mut self, key: Key) {
        if self.changing.contains_key(&key) {
            return;
        }
        if let Some(claim) =
            self.claimed.get(&key).copied().filter(|claim| claim.is_release_pending && !claim.settling)
        {
            self.claimed.remove(&key);
            self.note_queued(key, claim.due_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    #[test]
    fn entries_behind_the_cursor_are_bounded_and_none_is_forgotten() {
        let mut claims = Claims::default();
        claims.advance((at(1_000_000), MessageId(9_999_999)));
        for number in 0..=BEHIND_MAX as i64 {
            claims.note_queued((SERVER, MessageId(number)), at(5 + number));
        }
        assert!(claims.behind.is_empty());
        assert!(claims.cursor() < (at(5), MessageId(0)), "all entries are read again");
        claims.note_queued((SERVER, MessageId(1)), at(4));
        assert_eq!(claims.behind.len(), 1, "the entry is before the cursor");
    }

    #[test]
    fn a_skipped_server_costs_no_memory_and_is_read_again_from_its_first_entry() {
        let mut claims = Claims::default();
        claims.advance((at(1_000), MessageId(9_999)));
        claims.set_skipped(&[SERVER]);
        for number in 10..500 {
            claims.note_queued((SERVER, MessageId(number)), at(number));
            claims.note_queued((ServerId(2), MessageId(1_000 + number)), at(number));
        }
        assert_eq!(claims.behind.len(), 490);
        claims.set_skipped(&[]);
        assert_eq!(claims.cursor(), (at(10), MessageId(9)));
        assert!(claims.behind.is_empty(), "the entries of the other server are read again, too");
    }
}
