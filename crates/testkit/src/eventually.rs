//! Waits for a condition by polling. Each form takes a `poll` whose `Err` says what is missing, so that a failed test
//! says what it waited for.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait; long, because the machine may be busy with other tests.
const TIME_MAX: Duration = Duration::from_secs(40);
/// Longest time of a single call of an asynchronous `poll`. In a test with paused time, a call that waits for something
/// real, such as a socket, exceeds it at once.
const POLL_TIME_MAX: Duration = Duration::from_secs(40);
/// First pause between two polls. Each pause is twice as long as the one before, up to `PAUSE_MAX`.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Calls `poll` until it returns `Ok`. Panics with the last `Err` after 40 seconds.
pub async fn eventually<T, E: Display>(poll: impl AsyncFnMut() -> Result<T, E>) -> T {
    eventually_within(TIME_MAX, poll).await
}

/// Like [`eventually`], with another time limit. A `poll` that begins before the limit may return `Ok` after it.
pub async fn eventually_within<T, E: Display>(
    time_max: Duration,
    poll: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let found = try_eventually(time_max, poll).await;
    found.unwrap_or_else(|problem| panic!("not within {time_max:?}: {problem}"))
}

/// Like [`eventually_within`], but returns the last `Err`, for a caller that can explain it. Panics only if a single
/// call of `poll` does not end.
pub async fn try_eventually<T, E: Display>(
    time_max: Duration,
    mut poll: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let deadline = Instant::now() + time_max;
    let mut pause = PAUSE_MIN;
    let mut last = None;
    loop {
        let Ok(found) = tokio::time::timeout(POLL_TIME_MAX, poll()).await else {
            let before = last.map_or_else(|| "it was the first".to_owned(), |problem: E| problem.to_string());
            panic!("a poll did not end within {POLL_TIME_MAX:?}; before: {before}");
        };
        let problem = match found {
            Err(problem) if Instant::now() < deadline => problem,
            found => return found,
        };
        last = Some(problem);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Like [`eventually_within`], for code that blocks its thread.
pub fn eventually_blocking<T, E: Display>(time_max: Duration, mut poll: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + time_max;
    let mut pause = PAUSE_MIN;
    loop {
        match poll() {
            Ok(found) => return found,
            Err(problem) => assert!(Instant::now() < deadline, "not within {time_max:?}: {problem}"),
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_poll_is_repeated_until_it_returns_ok() {
        let mut calls = 0;
        let found = eventually(async || {
            calls += 1;
            if calls == 3 { Ok("found") } else { Err("nothing yet") }
        });
        assert_eq!(found.await, "found");
        assert_eq!(calls, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "not within 5ms: no letter 2")]
    async fn failure_says_what_was_missing_at_the_end() {
        let mut calls = 0;
        eventually_within(Duration::from_millis(5), async || {
            calls = (calls + 1).min(2);
            Err::<(), _>(format!("no letter {calls}"))
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a poll did not end within 40s; before: no answer")]
    async fn poll_that_never_ends_is_given_up() {
        let mut is_first = true;
        eventually(async || {
            if !std::mem::replace(&mut is_first, false) {
                std::future::pending::<()>().await;
            }
            Err::<(), _>("no answer")
        })
        .await;
    }

    #[test]
    #[should_panic(expected = "not within 1ms: nothing")]
    fn blocking_form_has_a_time_limit_too() {
        eventually_blocking(Duration::from_millis(1), || Err::<(), _>("nothing"));
    }
}
