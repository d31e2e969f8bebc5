//! Slows down addresses that try keys. Only failing answers are delayed, so a good key behind the same address
//! keeps working.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const WINDOW: Duration = Duration::from_mins(1);
const FREE_FAILURES: u32 = 50;
const DELAY: Duration = Duration::from_secs(1);
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct BadKeys {
    failures: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl BadKeys {
    /// Notes a failure; returns how long its answer has to wait.
    pub(crate) fn note(&self, address: IpAddr) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&address) {
            failures.retain(|_, (since, _)| since.elapsed() < WINDOW);
            // Still full: a flood from many addresses. Delay them all rather than remember more.
            if failures.len() >= ADDRESSES_MAX {
                return DELAY;
            }
        }
        let (since, count) = failures.entry(address).or_insert_with(|| (Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        if *count > FREE_FAILURES { DELAY } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_51st_failure_of_a_minute_waits_and_the_next_minute_is_new() {
        let keys = BadKeys::default();
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!((0..50).all(|_| keys.note(one) == Duration::ZERO));
        assert_eq!(keys.note(one), DELAY);
        assert_eq!(keys.note(other), Duration::ZERO);
        tokio::time::advance(WINDOW).await;
        assert_eq!(keys.note(one), Duration::ZERO);
    }
}
