//! Counts of the returned mail that this process has received since it started, for the operator.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use postroad_model::Timestamp;

use super::ReturnRefusal;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReturnCounts {
    /// Mails that were taken: bounces, replies, complaints, reports, and mail for the operator.
    pub taken: u64,
    /// Mails that were refused for good.
    pub refused: u64,
    /// Mails whose sender was asked to try again.
    pub put_off: u64,
    /// Time at which the newest mail was taken, refused or put off.
    pub last_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct ReturnCounters {
    taken: AtomicU64,
    refused: AtomicU64,
    put_off: AtomicU64,
    /// Microseconds; zero before the first mail.
    last_at: AtomicI64,
}

impl ReturnCounters {
    pub(super) fn count(&self, outcome: &Result<(), ReturnRefusal>, now: Timestamp) {
        let counter = match outcome {
            Ok(()) => &self.taken,
            Err(ReturnRefusal::Store(_) | ReturnRefusal::Busy) => &self.put_off,
            Err(_) => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.last_at.fetch_max(now.as_micros(), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> ReturnCounts {
        let last_at = self.last_at.load(Ordering::Relaxed);
        ReturnCounts {
            taken: self.taken.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            put_off: self.put_off.load(Ordering::Relaxed),
            last_at: (last_at > 0).then(|| Timestamp::from_micros(last_at)),
        }
    }
}
