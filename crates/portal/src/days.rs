//! Days in forms and searches, such as `2027-01-31`. They are days of UTC.

use std::time::Duration;

use postroad_model::Timestamp;

use crate::fields::Fields;
use crate::problem::Problem;

const DAY: Duration = Duration::from_hours(24);

/// The moment when a day begins; `None` if the text is no day.
pub(crate) fn begin(day: &str) -> Option<Timestamp> {
    // Longer texts could bring a time of their own.
    (day.len() == "2027-01-31".len()).then(|| Timestamp::parse_rfc3339(&format!("{day}T00:00:00Z")))?
}

/// The moment when a day ends; `None` if the text is no day.
pub(crate) fn end(day: &str) -> Option<Timestamp> {
    begin(day).map(|begin| begin.plus(DAY))
}

/// The day of a moment.
pub(crate) fn day_of(at: Timestamp) -> String {
    at.to_rfc3339().chars().take("2027-01-31".len()).collect()
}

/// The fields `since` and `until` of a search: from the beginning of one day to the end of another. Either may be empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct DayRange {
    pub(crate) since: String,
    pub(crate) until: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl DayRange {
    pub(crate) fn read(fields: &Fields) -> Result<Self, Problem> {
        let (since, until) = (fields.text("since"), fields.text("until"));
        let read = |text: &str, moment: fn(&str) -> Option<Timestamp>| match text {
            "" => Ok(None),
            day => moment(day).map(Some).ok_or_else(|| wrong(day)),
        };
        let (from, to) = (read(since, begin)?, read(until, end)?);
        Ok(Self { since: since.to_owned(), until: until.to_owned(), from, to })
    }

    /// When the first day begins.
    pub(crate) fn from(&self) -> Option<Timestamp> {
        self.from
    }

    /// When the last day ends.
    pub(crate) fn to(&self) -> Option<Timestamp> {
        self.to
    }

    pub(crate) fn is_set(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }
}

fn wrong(text: &str) -> Problem {
    Problem::Invalid(format!("“{text}” should be a day such as 2027-01-31."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_days_belong_to_the_range() {
        let range = DayRange::read(&Fields::parse(b"since=2027-01-30&until=2027-01-31")).unwrap();
        let text = |at: Option<Timestamp>| at.unwrap().to_rfc3339();
        assert_eq!(text(range.from()), "2027-01-30T00:00:00Z");
        assert_eq!(text(range.to()), "2027-02-01T00:00:00Z");
        assert_eq!(day_of(range.from().unwrap()), "2027-01-30");
        assert!(!DayRange::read(&Fields::parse(b"since=")).unwrap().is_set());
        for wrong in ["since=yesterday", "until=2027-02-30", "since=2027-01-31T10:00:00Z%23"] {
            assert!(DayRange::read(&Fields::parse(wrong.as_bytes())).is_err(), "{wrong}");
        }
    }
}
