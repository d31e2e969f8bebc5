//! Messages accepted in the last minute, counted per second.

use std::time::Duration;

use postroad_model::Timestamp;

const SECONDS: usize = 60;

#[derive(Debug, Clone)]
pub(super) struct LastMinute {
    counts: [u32; SECONDS],
    sum: u32,
    /// The last counted second.
    newest: i64,
}

impl Default for LastMinute {
    fn default() -> Self {
        Self { counts: [0; SECONDS], sum: 0, newest: 0 }
    }
}

impl LastMinute {
    pub(super) fn add(&mut self, now: Timestamp) {
        self.advance(now);
        self.counts[slot_of(self.newest)] += 1;
        self.sum += 1;
    }

    /// Messages accepted within the last minute.
    pub(super) fn sum(&mut self, now: Timestamp) -> u32 {
        self.advance(now);
        self.sum
    }

    /// The clock went back by this time: counts keep their age, so their slots move with it.
    pub(super) fn shift_back(&mut self, by: Duration) {
        let seconds = by.as_secs() as i64;
        self.counts.rotate_left(slot_of(seconds));
        self.newest -= seconds;
    }

    fn advance(&mut self, now: Timestamp) {
        let second = now.as_secs();
        if second - self.newest >= SECONDS as i64 {
            *self = Self { newest: second, ..Self::default() };
        }
        while self.newest < second {
            self.newest += 1;
            self.sum -= std::mem::take(&mut self.counts[slot_of(self.newest)]);
        }
    }
}

fn slot_of(second: i64) -> usize {
    second.rem_euclid(SECONDS as i64) as usize
}
