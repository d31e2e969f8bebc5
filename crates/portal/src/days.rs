//! Days in forms and searches, such as `2027-01-31`. Forms take days in UTC, searches days in the reader's time zone.

use std::time::Duration;

use postroad_app::analytics::Zone;
use postroad_model::Timestamp;

use crate::fields::Fields;
use crate::problem::Problem;

const DAY: Duration = Duration::from_hours(24);

/// The moment when a day begins in UTC; `None` if the text is not a day.
pub(crate) fn begin(day: &str) -> Option<Timestamp> {
    // A longer text could already contain a time.
    (day.len() == "2027-01-31".len()).then(|| Timestamp::parse_rfc3339(&format!("{day}T00:00:00Z")))?
}

/// The moment when a day ends in UTC; `None` if the text is not a day.
pub(crate) fn end(day: &str) -> Option<Timestamp> {
    begin(day).map(|begin| begin.plus(DAY))
}

/// The day in UTC that contains a moment.
pub(crate) fn day_of(at: Timestamp) -> String {
    at.to_rfc3339().chars().take("2027-01-31".len()).collect()
}

/// The fields `since` and `until` of a search: from the beginning of one day to the end of another. Either may be
/// empty.
///
/// A text that is not a day is ignored, and `problem` says so; the other filters still apply.
#[derive(Debug, Clone, Default)]
pub(crate) struct DayRange {
    pub(crate) since: String,
    pub(crate) until: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Name of the days' time zone.
    pub(crate) zone: String,
    pub(crate) problem: Option<String>,
}

impl DayRange {
    pub(crate) fn read(fields: &Fields, zone: &Zone) -> Self {
        let mut problem = None;
        let mut read = |name: &str, moment: fn(&Zone, &str) -> Option<Timestamp>| {
            let day = fields.filled(name)?;
            let at = moment(zone, day);
            if at.is_none() {
                problem = Some(format!("“{day}” should be a day such as 2027-01-31. It was left out."));
            }
            Some((day.to_owned(), at?))
        };
        let (since, until) = (read("since", Zone::day_begin).unzip(), read("until", Zone::day_end).unzip());
        Self {
            since: since.0.unwrap_or_default(),
            until: until.0.unwrap_or_default(),
            from: since.1,
            to: until.1,
            zone: zone.name().to_owned(),
            problem,
        }
    }

    /// Refuses a text that is not a day. For downloads, which cannot show `problem`.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.problem.clone().map_or(Ok(()), |text| Err(Problem::Invalid(text)))
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

    /// Whether the section with the days is shown open.
    pub(crate) fn is_open(&self) -> bool {
        self.is_set() || self.problem.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_days_belong_to_the_range() {
        let utc = Zone::utc();
        let range = DayRange::read(&Fields::parse(b"since=2027-01-30&until=2027-01-31"), &utc);
        let text = |at: Option<Timestamp>| at.unwrap().to_rfc3339();
        assert_eq!(text(range.from()), "2027-01-30T00:00:00Z");
        assert_eq!(text(range.to()), "2027-02-01T00:00:00Z");
        assert_eq!(day_of(range.from().unwrap()), "2027-01-30");
        assert!(!DayRange::read(&Fields::parse(b"since="), &utc).is_open());
        for wrong in ["since=yesterday", "until=2027-02-30", "since=2027-01-31T10:00:00Z%23"] {
            let range = DayRange::read(&Fields::parse(wrong.as_bytes()), &utc);
            assert!(!range.is_set() && range.is_open() && range.check().is_err(), "{wrong}");
        }
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let range = DayRange::read(&Fields::parse(b"since=2027-01-30&until=2027-01-31"), &berlin);
        assert_eq!(text(range.from()), "2027-01-29T23:00:00Z");
        assert_eq!(
            (text(range.to()), range.zone.as_str()),
            ("2027-01-31T23:00:00Z".to_owned(), "Europe/Berlin")
        );
    }
}
