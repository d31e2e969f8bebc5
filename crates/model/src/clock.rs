//! Clock and timestamps. This is the only module that reads the wall clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

/// Source of the current time. Tests pass a clock they can move.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("the machine's clock is set after 1970");
        Timestamp::from_micros(since_epoch.as_micros() as i64)
    }
}

/// Detects that a clock was set back, by an operator or a time server.
#[derive(Debug)]
pub struct ClockWatch {
    latest: Timestamp,
}

impl ClockWatch {
    /// Smaller steps back are ordinary corrections without noticeable effect.
    const STEP_BACK_IGNORED_MAX: Duration = Duration::from_secs(2);

    pub fn new(now: Timestamp) -> Self {
        Self { latest: now }
    }

    /// How far the clock is behind the latest time seen, if by more than `STEP_BACK_IGNORED_MAX`. Reports each step back
    /// once.
    pub fn detect_step_back(&mut self, now: Timestamp) -> Option<Duration> {
        let back = self.latest.since(now);
        if back <= Self::STEP_BACK_IGNORED_MAX {
            self.latest = self.latest.max(now);
            return None;
        }
        self.latest = now;
        Some(back)
    }
}

/// Point in time, in microseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// Microseconds of a duration; the longest ones are cut to 292,000 years.
const fn micros_of(duration: Duration) -> i64 {
    let micros = duration.as_micros();
    if micros > i64::MAX as u128 { i64::MAX } else { micros as i64 }
}

impl Timestamp {
    /// Latest time that RFC 3339 can express with a four-digit year.
    const MICROS_MAX: i64 = 253_402_300_799_999_999;

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Epoch seconds as a float, as Postal's API and webhooks have them.
    pub fn as_epoch_seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros_of(duration)))
    }

    #[must_use]
    pub const fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros_of(duration)))
    }

    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0) as u64)
    }

    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok().map(Self)
    }

    /// Parses the date of a mail header (RFC 5322 3.3), and HTTP dates in the preferred form (RFC 9110 5.6.7).
    pub fn parse_rfc2822(text: &str) -> Option<Self> {
        let moment = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        Some(Self(moment.unix_timestamp().checked_mul(1_000_000)?))
    }

    pub fn to_rfc3339(self) -> String {
        self.date_time().format(&Rfc3339).expect("a clamped moment has a four-digit year")
    }

    /// RFC 3339 with exactly three decimals, such as `2026-11-15T12:00:00.250Z`.
    pub fn to_rfc3339_millis(self) -> String {
        let moment = self.date_time();
        let whole_second = moment.replace_nanosecond(0).expect("zero is in range");
        let text = whole_second.format(&Rfc3339).expect("a clamped moment has a four-digit year");
        format!("{}.{:03}Z", text.trim_end_matches('Z'), moment.millisecond())
    }

    /// The value of a `Date` header (RFC 5322 3.3).
    pub fn to_rfc2822(self) -> String {
        let whole_second = Self(self.as_secs() * 1_000_000);
        whole_second.date_time().format(&Rfc2822).expect("a clamped moment has a four-digit year")
    }

    pub(crate) fn date_time(self) -> OffsetDateTime {
        let micros = self.0.clamp(0, Self::MICROS_MAX);
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000)
            .expect("a clamped moment is in range")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_is_read_and_written_in_utc() {
        let moment = Timestamp::parse_rfc3339("2026-11-15T05:00:00.25+02:00").unwrap();
        assert_eq!(moment.to_rfc3339(), "2026-11-15T03:00:00.25Z");
        assert!((moment.as_epoch_seconds() - 1_794_711_600.25).abs() < 1e-6);
        assert_eq!(Timestamp::parse_rfc3339("tomorrow"), None);
    }

    #[test]
    fn watch_reports_once_that_the_clock_went_back() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let mut watch = ClockWatch::new(at(100));
        assert_eq!(watch.detect_step_back(at(200)), None);
        assert_eq!(watch.detect_step_back(at(199)), None, "a small correction");
        assert_eq!(watch.detect_step_back(at(50)), Some(Duration::from_secs(150)));
        assert_eq!(watch.detect_step_back(at(51)), None);
    }

    #[test]
    fn date_header_has_no_fraction() {
        let moment = Timestamp::parse_rfc3339("2026-11-15T03:00:00.25Z").unwrap();
        assert_eq!(moment.to_rfc2822(), "Sun, 15 Nov 2026 03:00:00 +0000");
    }
}
