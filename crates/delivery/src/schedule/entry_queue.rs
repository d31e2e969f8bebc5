//! Messages of one lane that wait in order: all of them while the lane has no route, later those of one server.
//! Messages whose long wait was recorded come first, by age; the others follow in the order of their arrival.

use std::collections::VecDeque;
use std::ops::Range;

use postroad_model::{ServerId, Timestamp};

use super::entry::{Entry, LateBound};

#[derive(Debug, Default)]
pub(super) struct EntryQueue {
    entries: VecDeque<Entry>,
    /// Earliest time at which a recorded wait may be recorded again.
    next_delay_notice_at: Option<Timestamp>,
}

impl EntryQueue {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Adds an entry at the end, or by its age among those whose long wait was recorded.
    pub(super) fn push(&mut self, entry: Entry) {
        let Some(delay_notice_at) = entry.delay_notice_at else { return self.entries.push_back(entry) };
        self.note_delay_notice(delay_notice_at);
        let is_before =
            |other: &Entry| other.delay_notice_at.is_some() && other.message_id < entry.message_id;
        let at = self.entries.partition_point(is_before);
        self.entries.insert(at, entry);
    }

    /// Puts back an entry that was taken and waits again: it comes first.
    pub(super) fn push_front(&mut self, entry: Entry) {
        if let Some(delay_notice_at) = entry.delay_notice_at {
            self.note_delay_notice(delay_notice_at);
        }
        self.entries.push_front(entry);
    }

    fn note_delay_notice(&mut self, delay_notice_at: Timestamp) {
        self.next_delay_notice_at =
            Some(self.next_delay_notice_at.map_or(delay_notice_at, |from| from.min(delay_notice_at)));
    }

    pub(super) fn pop_front(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// Removes the first `count` entries.
    pub(super) fn take_first(&mut self, count: usize) -> impl Iterator<Item = Entry> {
        self.entries.drain(..count.min(self.entries.len()))
    }

    /// Removes entries that have waited for long, at most `limit`. Examines all recorded waits only when one of them
    /// may be reported again.
    pub(super) fn take_late(&mut self, limit: usize, bound: LateBound) -> Vec<Entry> {
        self.take_late_of(|_| true, limit, bound)
    }

    /// Like `take_late`, for the servers for which `is_wanted` is true.
    pub(super) fn take_late_of(
        &mut self,
        is_wanted: impl Fn(ServerId) -> bool,
        limit: usize,
        bound: LateBound,
    ) -> Vec<Entry> {
        let is_taken = |entry: &Entry| entry.is_late(bound) && is_wanted(entry.server_id);
        let mut late = Vec::new();
        while late.len() < limit && self.entries.front().is_some_and(is_taken) {
            late.extend(self.entries.pop_front());
        }
        let recorded = self.entries.partition_point(|entry| entry.delay_notice_at.is_some());
        let mut late_end = recorded;
        let mut room = limit - late.len();
        while let Some(entry) = self.entries.get(late_end).filter(|entry| room > 0 && entry.is_late(bound)) {
            room -= usize::from(is_wanted(entry.server_id));
            late_end += 1;
        }
        late.extend(self.take_of(recorded..late_end, limit - late.len(), is_taken));
        if self.next_delay_notice_at.is_some_and(|from| from <= bound.now) && late.len() < limit {
            // The first entries, whose waits were recorded.
            late.extend(self.take_of(0..recorded, limit - late.len(), is_taken));
            let left = self.entries.iter().map_while(|entry| entry.delay_notice_at);
            self.next_delay_notice_at = left.min();
        }
        late
    }

    /// Removes the entries of a range for which `is_taken` is true, at most `limit`; the others keep their order.
    fn take_of(
        &mut self,
        range: Range<usize>,
        limit: usize,
        is_taken: impl Fn(&Entry) -> bool,
    ) -> Vec<Entry> {
        // Moves entries that stay to the front of the range.
        let Range { start, end } = range;
        let mut stay = start;
        for at in start..end {
            if at - stay >= limit || !is_taken(&self.entries[at]) {
                self.entries.swap(stay, at);
                stay += 1;
            }
        }
        let mut taken: Vec<Entry> = self.entries.drain(stay..end).collect();
        if stay > start {
            taken.sort_by_key(|entry| entry.message_id);
        }
        taken
    }
}

impl Extend<Entry> for EntryQueue {
    fn extend<T: IntoIterator<Item = Entry>>(&mut self, entries: T) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl IntoIterator for EntryQueue {
    type Item = Entry;
    type IntoIter = std::collections::vec_deque::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postroad_model::MessageId;

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

    fn minute(minute: u64) -> Timestamp {
        START.plus(Duration::from_mins(minute))
    }

    fn entry(message: i64, due_at: Timestamp, delay_notice_at: Option<Timestamp>) -> Entry {
        Entry {
            server_id: ServerId(1),
            message_id: MessageId(message),
            due_at,
            expires_at: None,
            attempts: 0,
            chosen_pool: None,
            source: None,
            greylisting: None,
            delay_notice_at,
            was_tried_before_claim: false,
            was_aborted: false,
            is_begun: false,
            loaded_message: None,
        }
    }

    fn late_at(now: Timestamp) -> LateBound {
        LateBound::new(Duration::from_mins(5), now)
    }

    fn ids(entries: &[Entry]) -> Vec<i64> {
        entries.iter().map(|entry| entry.message_id.0).collect()
    }

    #[test]
    fn late_entries_are_found_behind_those_whose_wait_was_recorded() {
        let mut queue = EntryQueue::default();
        queue.push(entry(4, minute(60), None));
        queue.push(entry(5, minute(66), None));
        for (message, delay_notice_at) in [(3, 400), (1, 300), (2, 64)] {
            queue.push(entry(message, minute(0), Some(minute(delay_notice_at))));
        }
        assert_eq!(ids(&queue.take_late(10, late_at(minute(63)))), [0_i64; 0]);
        assert_eq!(ids(&queue.take_late(10, late_at(minute(65)))), [4, 2]);
        assert_eq!(ids(&queue.take_late(10, late_at(minute(65)))), [0_i64; 0]);
        assert_eq!(ids(&queue.take_late(1, late_at(minute(500)))), [1]);
        assert_eq!(ids(&queue.take_late(10, late_at(minute(500)))), [3, 5]);
        assert!(queue.is_empty());
    }
}
