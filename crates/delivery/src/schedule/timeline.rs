//! Entries that are not due yet, within the horizon: the earliest first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use postroad_model::Timestamp;

use super::entry::Entry;

#[derive(Debug, Default)]
pub(super) struct Timeline {
    heap: BinaryHeap<TimelineEntry>,
}

#[derive(Debug)]
struct TimelineEntry {
    lane: usize,
    entry: Entry,
    /// When the entry leaves the timeline: when it is due, or earlier.
    at: Timestamp,
}

impl Timeline {
    pub(super) fn push(&mut self, lane: usize, entry: Entry) {
        let at = entry.due_at;
        self.heap.push(TimelineEntry { lane, entry, at });
    }

    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<(usize, Entry)> {
        if self.heap.peek()?.at > now {
            return None;
        }
        self.heap.pop().map(|waiting| (waiting.lane, waiting.entry))
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.heap.peek().map(|waiting| waiting.at)
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Moves entries for which `earlier` returns an earlier time to that time. Their due time is unchanged, because the
    /// store identifies entries by their due time.
    pub(super) fn bring_forward(&mut self, earlier: impl Fn(usize, &Entry) -> Option<Timestamp>) {
        let mut all = std::mem::take(&mut self.heap).into_vec();
        for waiting in &mut all {
            if let Some(at) = earlier(waiting.lane, &waiting.entry) {
                waiting.at = waiting.at.min(at);
            }
        }
        self.heap = all.into();
    }

    /// Removes entries that are due later than `moment`.
    pub(super) fn take_after(&mut self, moment: Timestamp) -> Vec<(usize, Entry)> {
        let (later, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.heap).into_iter().partition(|waiting| waiting.entry.due_at > moment);
        self.heap = kept.into();
        later.into_iter().map(|waiting| (waiting.lane, waiting.entry)).collect()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry> {
        std::mem::take(&mut self.heap).into_iter().map(|waiting| waiting.entry)
    }
}

impl Ord for TimelineEntry {
    /// Reversed, because the heap returns the greatest entry first.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |waiting: &Self| (waiting.at, waiting.entry.message_id);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for TimelineEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimelineEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for TimelineEntry {}
