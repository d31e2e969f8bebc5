//! Slows down addresses that guess keys or SMTP secrets. Only failures are delayed, so a valid key from the same
//! address keeps working.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::client_network;
use tokio::time::Instant;

/// Failures of an address (IPv6: of its /64 network) are counted in windows of this length.
const WINDOW: Duration = Duration::from_mins(1);
/// Number of failures in a window that are answered without a delay.
const FREE_FAILURES: u32 = 50;
/// After this many failures in a window, an address is shut out: SMTP sessions that fail again are disconnected.
const FAILURES_MAX: u32 = 200;
/// How long an address is shut out.
const SHUT_OUT_TIME: Duration = Duration::from_mins(1);
/// Delay of each failure beyond `FREE_FAILURES`.
const FAILURE_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of addresses whose failures are counted.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct BadKeys {
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

#[derive(Debug)]
struct Failures {
    since: Instant,
    count: u32,
    shut_out_until: Option<Instant>,
}

/// Consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Penalty {
    pub(crate) delay: Duration,
    pub(crate) shut_out: bool,
}

impl BadKeys {
    /// Records a failure and returns its consequence.
    pub(crate) fn record_failure(&self, address: IpAddr) -> Penalty {
        let address = client_network(address);
        let now = Instant::now();
        let mut failures = self.failures.lock();
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&address) {
            failures.retain(|_, failures| failures.is_remembered(now));
            // Still full: a flood from many addresses. Delay failures of new addresses instead of counting them.
            if failures.len() >= ADDRESSES_MAX {
                return Penalty { delay: FAILURE_DELAY, shut_out: false };
            }
        }
        let fresh = || Failures { since: now, count: 0, shut_out_until: None };
        let failures = failures.entry(address).or_insert_with(fresh);
        if !failures.is_remembered(now) {
            *failures = fresh();
        }
        failures.count = failures.count.saturating_add(1);
        if failures.count > FAILURES_MAX && failures.shut_out_until.is_none() {
            failures.shut_out_until = Some(now + SHUT_OUT_TIME);
        }
        Penalty {
            delay: if failures.count > FREE_FAILURES { FAILURE_DELAY } else { Duration::ZERO },
            shut_out: failures.shut_out_until.is_some(),
        }
    }
}

impl Failures {
    fn is_remembered(&self, now: Instant) -> bool {
        match self.shut_out_until {
            Some(until) => now < until,
            None => now.duration_since(self.since) < WINDOW,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PENALTY: Penalty = Penalty { delay: Duration::ZERO, shut_out: false };
    const DELAYED: Penalty = Penalty { delay: FAILURE_DELAY, shut_out: false };
    const SHUT_OUT: Penalty = Penalty { delay: FAILURE_DELAY, shut_out: true };

    #[tokio::test(start_paused = true)]
    async fn the_51st_failure_of_a_minute_is_delayed_and_the_next_minute_starts_at_zero() {
        let keys = BadKeys::default();
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!((0..50).all(|_| keys.record_failure(one) == NO_PENALTY));
        assert_eq!(keys.record_failure(one), DELAYED);
        assert_eq!(keys.record_failure(other), NO_PENALTY);
        tokio::time::advance(WINDOW).await;
        assert_eq!(keys.record_failure(one), NO_PENALTY);
    }

    #[tokio::test(start_paused = true)]
    async fn the_201st_failure_shuts_out_for_a_minute() {
        let keys = BadKeys::default();
        let address = IpAddr::from([192, 0, 2, 1]);
        assert!((0..200).all(|_| !keys.record_failure(address).shut_out));
        tokio::time::advance(WINDOW / 2).await;
        assert_eq!(keys.record_failure(address), SHUT_OUT);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(keys.record_failure(address), SHUT_OUT, "the minute begins with the 201st failure");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(keys.record_failure(address), NO_PENALTY);
    }
}
