//! Periods by which the messages of an account are counted, in UTC.

use std::fmt;

use time::{Date, Month};

use crate::clock::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitPeriod {
    Hour,
    Day,
    /// A calendar month.
    Month,
}

impl LimitPeriod {
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The name with its article, as in "messages an hour".
    pub const fn with_article(self) -> &'static str {
        match self {
            Self::Hour => "an hour",
            Self::Day => "a day",
            Self::Month => "a month",
        }
    }

    /// Number of the period that contains a time, counted from 1970.
    pub fn number_at(self, at: Timestamp) -> i64 {
        match self {
            Self::Hour => at.as_secs().div_euclid(3_600),
            Self::Day => at.as_secs().div_euclid(86_400),
            Self::Month => {
                let date = at.date_time();
                (i64::from(date.year()) - 1970) * 12 + i64::from(u8::from(date.month())) - 1
            }
        }
    }

    /// When the period with this number begins.
    pub fn start(self, number: i64) -> Timestamp {
        let secs = match self {
            Self::Hour => number.saturating_mul(3_600),
            Self::Day => number.saturating_mul(86_400),
            Self::Month => month_start(number),
        };
        Timestamp::from_micros(secs.saturating_mul(1_000_000))
    }
}

impl fmt::Display for LimitPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn month_start(number: i64) -> i64 {
    let year = 1970 + number.div_euclid(12).clamp(0, 9_999 - 1970) as i32;
    let month = Month::try_from(number.rem_euclid(12) as u8 + 1).expect("a number from 1 to 12");
    let first = Date::from_calendar_date(year, month, 1).expect("every month has a first day");
    first.midnight().assume_utc().unix_timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_lies_between_the_starts_of_its_period_and_of_the_next() {
        for text in
            ["1970-01-01T00:00:00Z", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z", "2028-02-29T12:00:00Z"]
        {
            let at = Timestamp::parse_rfc3339(text).unwrap();
            for period in LimitPeriod::ALL {
                let number = period.number_at(at);
                assert!(period.start(number) <= at && at < period.start(number + 1), "{period} of {text}");
            }
        }
        let at = Timestamp::parse_rfc3339("2026-12-31T23:59:59Z").unwrap();
        let next = |period: LimitPeriod| period.start(period.number_at(at) + 1).to_rfc3339();
        assert_eq!(LimitPeriod::ALL.map(next), ["2027-01-01T00:00:00Z"; 3].map(str::to_owned));
    }
}
