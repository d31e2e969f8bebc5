//! Retry schedule of webhooks. Pure: time and randomness are arguments.

use std::time::Duration;

use postroad_model::Timestamp;

/// Each pause is up to a fifth shorter or longer, so that posts that failed together do not retry together.
const JITTER: f64 = 0.2;
/// Longest pause that a receiver can request for one event.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);
/// Longest pause that a receiver can request for all its events. Short, because the receiver may recover sooner.
const REQUESTED_PAUSE_MAX: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
pub struct RetrySettings {
    /// Pauses after the first attempt, the second, … The event is given up if the attempt after the last pause fails.
    pub schedule: Vec<Duration>,
    /// An endpoint is disabled when it has been failing for this long without a success.
    pub disable_after: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        let (minute, hour) = (60, 3_600);
        let secs = [
            5,
            minute,
            5 * minute,
            30 * minute,
            2 * hour,
            5 * hour,
            10 * hour,
            14 * hour,
            20 * hour,
            24 * hour,
        ];
        Self { schedule: secs.map(Duration::from_secs).to_vec(), disable_after: Duration::from_hours(5 * 24) }
    }
}

/// Consequence of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Consequence {
    RetryAt(Timestamp),
    GiveUp,
}

/// Decision to disable an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisableDecision {
    pub(crate) reason: String,
    /// Disable only if no post has succeeded since this time; `None` to disable in any case.
    pub(crate) failing_before: Option<Timestamp>,
}

/// Failed attempt, as far as it matters for retrying.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedAttempt<'a> {
    pub(crate) at: Timestamp,
    /// Number of attempts to post the event, including the failed attempt.
    pub(crate) attempts: u32,
    /// HTTP status, if there was an answer.
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<&'a str>,
    /// Since when the endpoint has been failing; `None` if it was not failing before this attempt.
    pub(crate) failing_since: Option<Timestamp>,
}

impl RetrySettings {
    /// Longest possible pauses after the first attempt, the second, …
    pub(crate) fn pauses_max(&self) -> Vec<Duration> {
        self.schedule.iter().map(|pause| pause.mul_f64(1.0 + JITTER)).collect()
    }

    /// Decision to disable the endpoint, with the reason; `None` if the endpoint stays enabled.
    pub(crate) fn find_disable_decision(&self, failed: FailedAttempt<'_>) -> Option<DisableDecision> {
        if failed.status == Some(410) {
            let reason = "The receiver answered 410 Gone".to_owned();
            return Some(DisableDecision { reason, failing_before: None });
        }
        let since = failed.failing_since?;
        if failed.at.since(since) < self.disable_after {
            return None;
        }
        let hours = self.disable_after.as_secs() / 3_600;
        let reason = format!("No attempt has succeeded for {hours} hours");
        Some(DisableDecision { reason, failing_before: Some(since) })
    }

    /// End of the pause that the endpoint requested for all its events.
    pub(crate) fn requested_pause_end(failed: FailedAttempt<'_>) -> Option<Timestamp> {
        let delay = failed.retry_after.filter(|_| matches!(failed.status, Some(429 | 503)))?;
        Some(failed.at.plus(parse_retry_after(delay, failed.at)?.min(REQUESTED_PAUSE_MAX)))
    }

    /// Consequence of a failed attempt. `chance` is a random number between 0 and 1, for the jitter.
    pub(crate) fn consequence(&self, failed: FailedAttempt<'_>, chance: f64) -> Consequence {
        if failed.status == Some(410) {
            return Consequence::GiveUp;
        }
        let pause = failed.attempts.checked_sub(1).and_then(|index| self.schedule.get(index as usize));
        let Some(pause) = pause else { return Consequence::GiveUp };
        let pause = pause.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0));
        let delay =
            failed.retry_after.and_then(|text| parse_retry_after(text, failed.at)).unwrap_or_default();
        Consequence::RetryAt(failed.at.plus(pause.max(delay)))
    }
}

/// Parses `Retry-After`: seconds, or a date (RFC 9110 10.2.3). At most `RETRY_AFTER_MAX`.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let delay = match text.parse::<u64>() {
        Ok(secs) => Duration::from_secs(secs),
        Err(_) => Timestamp::parse_rfc2822(text)?.since(now),
    };
    Some(delay.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn failed(attempts: u32) -> FailedAttempt<'static> {
        FailedAttempt {
            at: at(1_000_000),
            attempts,
            status: Some(500),
            retry_after: None,
            failing_since: None,
        }
    }

    fn pause_of(consequence: &Consequence) -> Option<u64> {
        match consequence {
            Consequence::RetryAt(next) => Some(next.since(at(1_000_000)).as_secs()),
            Consequence::GiveUp => None,
        }
    }

    #[test]
    fn the_documented_schedule_is_followed_to_its_end() {
        let settings = RetrySettings::default();
        let pauses: Vec<Option<u64>> =
            (1..=11).map(|attempts| pause_of(&settings.consequence(failed(attempts), 0.5))).collect();
        let hours = |hours: u64| Some(hours * 3_600);
        let expected = [
            Some(5),
            Some(60),
            Some(300),
            Some(1_800),
            hours(2),
            hours(5),
            hours(10),
            hours(14),
            hours(20),
            hours(24),
            None,
        ];
        assert_eq!(pauses, expected);
        assert_eq!(settings.consequence(failed(11), 0.5), Consequence::GiveUp);
    }

    #[test]
    fn jitter_changes_a_pause_by_at_most_a_fifth() {
        let settings = RetrySettings::default();
        assert_eq!(pause_of(&settings.consequence(failed(2), 0.0)), Some(48));
        assert_eq!(pause_of(&settings.consequence(failed(2), 1.0)), Some(72));
    }

    #[test]
    fn a_receiver_can_request_a_pause_of_up_to_a_day_for_one_event() {
        let settings = RetrySettings::default();
        let with_retry_after = |text| FailedAttempt { retry_after: Some(text), ..failed(1) };
        assert_eq!(pause_of(&settings.consequence(with_retry_after("120"), 0.5)), Some(120));
        assert_eq!(pause_of(&settings.consequence(with_retry_after("1"), 0.5)), Some(5));
        assert_eq!(pause_of(&settings.consequence(with_retry_after("99999999"), 0.5)), Some(24 * 3_600));
        assert_eq!(pause_of(&settings.consequence(with_retry_after("soon"), 0.5)), Some(5));
        // Ten minutes after second 1,000,000.
        let date = with_retry_after("Mon, 12 Jan 1970 13:56:40 GMT");
        assert_eq!(pause_of(&settings.consequence(date, 0.5)), Some(600));
        let past = with_retry_after("Sun, 06 Nov 1960 08:49:37 GMT");
        assert_eq!(pause_of(&settings.consequence(past, 0.5)), Some(5));
    }

    #[test]
    fn an_endpoint_is_disabled_by_410_or_after_five_days_without_success() {
        let settings = RetrySettings::default();
        let gone = FailedAttempt { status: Some(410), ..failed(1) };
        assert_eq!(settings.find_disable_decision(gone).unwrap().failing_before, None);
        assert_eq!(settings.consequence(gone, 0.5), Consequence::GiveUp);
        let since = |secs: i64| FailedAttempt { failing_since: Some(at(1_000_000 - secs)), ..failed(3) };
        let decision = settings.find_disable_decision(since(5 * 86_400)).unwrap();
        assert_eq!(decision.failing_before, Some(at(1_000_000 - 5 * 86_400)));
        assert_eq!(settings.find_disable_decision(since(5 * 86_400 - 1)), None);
        // A post may succeed before the endpoint is disabled: then the event is not lost.
        assert!(matches!(settings.consequence(since(5 * 86_400), 0.5), Consequence::RetryAt(_)));
    }

    #[test]
    fn a_receiver_can_request_a_pause_of_up_to_an_hour_for_all_events() {
        let with_retry_after =
            |status, text| FailedAttempt { status: Some(status), retry_after: Some(text), ..failed(1) };
        assert_eq!(RetrySettings::requested_pause_end(with_retry_after(429, "120")), Some(at(1_000_120)));
        assert_eq!(
            RetrySettings::requested_pause_end(with_retry_after(503, "99999999")),
            Some(at(1_003_600))
        );
        assert_eq!(RetrySettings::requested_pause_end(with_retry_after(500, "120")), None);
        assert_eq!(RetrySettings::requested_pause_end(with_retry_after(429, "soon")), None);
        assert_eq!(RetrySettings::requested_pause_end(failed(1)), None);
    }
}
