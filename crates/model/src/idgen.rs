//! Generator of ids of messages, events and other rows, without a database round trip: 32 bits of seconds since 2025,
//! 5 bits of node, 16 bits of sequence. Ids are in time order, so retention deletes a range; 53 bits are exact in
//! JavaScript.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::{Clock, Timestamp};

/// Start of the seconds in ids: 2025-01-01T00:00:00Z.
const EPOCH_SECS: i64 = 1_735_689_600;
const SEQUENCE_BITS: u32 = 16;
/// Seconds that fit into an id: until 2161.
const SECONDS_MAX: i64 = (1 << 32) - 1;
const NODE_BITS: u32 = 5;

/// Number of nodes that can share a database.
pub const NODE_COUNT: u8 = 1 << NODE_BITS;

/// Strictly increasing ids of one node. Ids run ahead of the clock when the 65,536 ids of a second are used up,
/// and never go back when the clock does.
#[derive(Debug)]
pub struct IdGenerator {
    clock: Arc<dyn Clock>,
    node: u8,
    /// Tick of the last id: its seconds and sequence, without the node bits between them.
    last: AtomicI64,
}

impl IdGenerator {
    /// `last_id` is the highest id this node has handed out (0 for none). Ids continue above it, even if the
    /// clock went back or the process restarted within a second.
    pub fn new(clock: Arc<dyn Clock>, node: u8, last_id: i64) -> Self {
        assert!(node < NODE_COUNT, "node numbers are 0 to {}", NODE_COUNT - 1);
        Self { clock, node, last: AtomicI64::new(without_node(last_id)) }
    }

    /// Highest id handed out so far; if there is none, a number below all ids to come. The caller must store this
    /// number for the next start.
    pub fn last(&self) -> i64 {
        with_node(self.last.load(Ordering::Relaxed), self.node)
    }

    /// Current time of the generator's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn next(&self) -> i64 {
        let now = tick_at(self.clock.now());
        let before = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(last.max(now - 1) + 1))
            .expect("the update always gives a value");
        with_node(before.max(now - 1) + 1, self.node)
    }
}

/// Second in which an id was handed out, or a later second: ids never go back, even if the clock does.
pub fn second_of_id(id: i64) -> Timestamp {
    Timestamp::from_micros(((id >> (SEQUENCE_BITS + NODE_BITS)) + EPOCH_SECS) * 1_000_000)
}

/// Smallest id that can be handed out at `moment`, such as the boundary of a retention range or a partition.
pub fn first_id_at(moment: Timestamp) -> i64 {
    with_node(tick_at(moment), 0)
}

/// Number of the node that handed out an id.
pub fn node_of(id: i64) -> u8 {
    ((id >> SEQUENCE_BITS) & i64::from(NODE_COUNT - 1)) as u8
}

/// First tick of the second that contains `moment`. A moment outside the range of ids counts as its first or last
/// second.
fn tick_at(moment: Timestamp) -> i64 {
    moment.as_secs().saturating_sub(EPOCH_SECS).clamp(0, SECONDS_MAX) << SEQUENCE_BITS
}

fn with_node(tick: i64, node: u8) -> i64 {
    let seconds = tick >> SEQUENCE_BITS;
    let sequence = tick & ((1 << SEQUENCE_BITS) - 1);
    (seconds << (SEQUENCE_BITS + NODE_BITS)) | (i64::from(node) << SEQUENCE_BITS) | sequence
}

fn without_node(id: i64) -> i64 {
    let seconds = id >> (SEQUENCE_BITS + NODE_BITS);
    let sequence = id & ((1 << SEQUENCE_BITS) - 1);
    (seconds << SEQUENCE_BITS) | sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct FixedClock(i64);

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0 * 1_000_000)
        }
    }

    fn generator_at(seconds: i64, node: u8, last_id: i64) -> IdGenerator {
        IdGenerator::new(Arc::new(FixedClock(EPOCH_SECS + seconds)), node, last_id)
    }

    #[test]
    fn ids_stay_below_two_to_the_53_until_2161() {
        let ids = generator_at((1 << 32) - 1, NODE_COUNT - 1, 0);
        assert!(ids.next() < 1 << 53);
    }

    #[test]
    fn moments_outside_the_id_range_give_the_first_or_last_id() {
        let at = |micros: i64| first_id_at(Timestamp::from_micros(micros));
        assert_eq!((at(i64::MIN), at(0)), (0, 0));
        assert_eq!(at(i64::MAX) >> (SEQUENCE_BITS + NODE_BITS), SECONDS_MAX);
    }

    #[test]
    fn ids_continue_in_the_next_second_when_a_second_is_used_up() {
        let ids = generator_at(100, 3, 0);
        let all: Vec<i64> = (0..70_000).map(|_| ids.next()).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(all.iter().all(|id| (id >> SEQUENCE_BITS) & 31 == 3));
    }

    #[test]
    fn a_clock_that_went_back_does_not_repeat_ids() {
        let last = generator_at(200, 1, 0).next();
        assert!(generator_at(100, 1, last).next() > last);
    }

    #[test]
    fn ids_of_different_nodes_never_collide() {
        assert_ne!(generator_at(100, 0, 0).next(), generator_at(100, 1, 0).next());
    }
}
