//! Waits for a condition by polling.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Longest wait; long, because the machine may be busy with other tests.
const TIME_MAX: Duration = Duration::from_secs(40);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Calls `poll` until it returns `Ok`. Panics with the last `Err` after 40 seconds.
pub async fn eventually<T, E: Display>(mut poll: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + TIME_MAX;
    loop {
        match poll().await {
            Ok(found) => return found,
            Err(problem) => assert!(Instant::now() < deadline, "not within {TIME_MAX:?}: {problem}"),
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}
