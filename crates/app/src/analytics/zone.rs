//! Time zones: starts of hours, days and months, and local times as text. Days on which clocks change are shorter or
//! longer than 24 hours.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use postroad_model::Timestamp;

const HOUR: i64 = 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    Minute,
    Hour,
    Day,
    Month,
}

/// Time zone, by its IANA name.
#[derive(Debug, Clone)]
pub struct Zone {
    rules: TimeZone,
}

impl Zone {
    pub fn utc() -> Self {
        Self { rules: TimeZone::UTC }
    }

    /// Accepts IANA names such as `Europe/Berlin`, in any letter case.
    pub fn parse(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(|rules| Self { rules })
    }

    pub fn name(&self) -> &str {
        self.rules.iana_name().unwrap_or("UTC")
    }

    /// First moment of a local day such as `2027-01-31`; `None` if the text is no day.
    pub fn day_begin(&self, day: &str) -> Option<Timestamp> {
        self.start_of_day(parse_day(day)?).map(|seconds| Timestamp::from_micros(seconds * 1_000_000))
    }

    /// First moment after a local day.
    pub fn day_end(&self, day: &str) -> Option<Timestamp> {
        let next = parse_day(day)?.checked_add(1.day()).ok()?;
        self.start_of_day(next).map(|seconds| Timestamp::from_micros(seconds * 1_000_000))
    }

    /// Local date and minute, such as `2027-01-31T09:00`.
    pub fn local(&self, at: Timestamp) -> String {
        self.at(at.as_secs()).map(|local| local.strftime("%Y-%m-%dT%H:%M").to_string()).unwrap_or_default()
    }

    /// Borders of all spans that the range from `from` to `to` touches, in seconds since 1970: one more than there are
    /// spans. `None` for more than `spans_max` spans.
    pub(crate) fn borders(
        &self,
        from: Timestamp,
        to: Timestamp,
        granularity: Granularity,
        spans_max: usize,
    ) -> Option<Vec<i64>> {
        let mut border = self.start(from.as_secs(), granularity)?;
        let mut borders = vec![border];
        while border * 1_000_000 < to.as_micros() {
            if borders.len() > spans_max {
                return None;
            }
            border = self.next(border, granularity)?;
            borders.push(border);
        }
        Some(borders)
    }

    /// Start of the span that contains a time.
    fn start(&self, seconds: i64, granularity: Granularity) -> Option<i64> {
        let local = self.at(seconds)?;
        match granularity {
            Granularity::Minute => Some(seconds - seconds.rem_euclid(60)),
            Granularity::Hour => Some(seconds - since_full_hour(&local)),
            Granularity::Day => local.start_of_day().ok().map(|day| day.timestamp().as_second()),
            Granularity::Month => self.start_of_day(local.datetime().first_of_month()),
        }
    }

    /// Start of the span that follows the span beginning at `start`.
    fn next(&self, start: i64, granularity: Granularity) -> Option<i64> {
        let local = self.at(start)?;
        match granularity {
            Granularity::Minute => Some(start + 60),
            // Up to the next full hour: after a clock change of half an hour, the span is shorter.
            Granularity::Hour => Some(start + HOUR - since_full_hour(&local)),
            Granularity::Day => self.start_of_day(local.datetime().checked_add(1.day()).ok()?),
            Granularity::Month => {
                self.start_of_day(local.datetime().first_of_month().checked_add(1.month()).ok()?)
            }
        }
    }

    fn at(&self, seconds: i64) -> Option<Zoned> {
        Some(jiff::Timestamp::from_second(seconds).ok()?.to_zoned(self.rules.clone()))
    }

    /// First second of a local day; later than midnight if clocks skip midnight.
    fn start_of_day(&self, day: DateTime) -> Option<i64> {
        let noon = day.date().at(12, 0, 0, 0).to_zoned(self.rules.clone()).ok()?;
        noon.start_of_day().ok().map(|day| day.timestamp().as_second())
    }
}

fn parse_day(text: &str) -> Option<DateTime> {
    // Shorter and longer texts could be other forms of a date.
    let is_day = text.len() == "2027-01-31".len();
    let day = is_day.then(|| text.parse::<jiff::civil::Date>().ok()).flatten()?;
    Some(day.at(0, 0, 0, 0))
}

/// Seconds since the last full local hour.
fn since_full_hour(local: &Zoned) -> i64 {
    i64::from(local.minute()) * 60 + i64::from(local.second())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    /// Length of each span in hours.
    fn hours(zone: &str, from: &str, to: &str, granularity: Granularity) -> Vec<f64> {
        let borders = Zone::parse(zone).unwrap().borders(at(from), at(to), granularity, 1_000).unwrap();
        borders.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 3_600.0).collect()
    }

    #[test]
    fn days_have_23_or_25_hours_when_clocks_change() {
        let berlin = |from, to| hours("Europe/Berlin", from, to, Granularity::Day);
        assert_eq!(berlin("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"), [24.0, 23.0, 24.0]);
        assert_eq!(berlin("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"), [24.0, 25.0, 24.0]);
        // Clocks in Egypt skip midnight when summer time begins.
        let cairo = hours("Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-25T12:00:00Z", Granularity::Day);
        assert_eq!(cairo, [24.0, 23.0, 24.0]);
    }

    #[test]
    fn days_begin_and_end_in_their_zone() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let day = |text: &str| (berlin.day_begin(text), berlin.day_end(text));
        assert_eq!(day("2026-03-29"), (Some(at("2026-03-28T23:00:00Z")), Some(at("2026-03-29T22:00:00Z"))));
        assert_eq!(berlin.local(at("2026-03-29T22:00:00Z")), "2026-03-30T00:00");
        for wrong in ["", "today", "2026-02-30", "20260329", "2026-03-29T10:00"] {
            assert_eq!(day(wrong), (None, None), "{wrong}");
        }
    }

    #[test]
    fn months_and_hours_are_exact_at_odd_offsets() {
        let months =
            hours("America/New_York", "2026-02-15T00:00:00Z", "2026-04-01T04:00:00Z", Granularity::Month);
        assert_eq!(months, [28.0 * 24.0, 31.0 * 24.0 - 1.0]);
        let nepal = Zone::parse("asia/kathmandu").unwrap();
        assert_eq!(nepal.name(), "Asia/Kathmandu");
        let borders = nepal
            .borders(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:30:00Z"), Granularity::Hour, 9)
            .unwrap();
        assert_eq!(
            borders,
            [
                at("2025-12-31T23:15:00Z").as_secs(),
                at("2026-01-01T00:15:00Z").as_secs(),
                at("2026-01-01T01:15:00Z").as_secs()
            ]
        );
        // Clocks on Lord Howe Island skip half an hour.
        let howe =
            hours("Australia/Lord_Howe", "2026-10-03T14:00:00Z", "2026-10-03T17:00:00Z", Granularity::Hour);
        assert!(howe.contains(&0.5) && howe.iter().all(|hours| [0.5, 1.0].contains(hours)), "{howe:?}");
    }

    #[test]
    fn every_zone_begins_its_spans_on_a_quarter_of_an_hour() {
        let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        assert!(names.len() > 400, "the tables are compiled in: {}", names.len());
        for name in names {
            let Some(zone) = Zone::parse(&name) else { continue };
            let (from, to) = (at("2025-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
            for granularity in [Granularity::Day, Granularity::Month] {
                let borders = zone.borders(from, to, granularity, 1_000).unwrap();
                assert!(borders.iter().all(|border| border % 900 == 0), "{name}");
            }
        }
    }

    #[test]
    fn unknown_names_and_too_many_spans_are_refused() {
        assert!(Zone::parse("Europe/Atlantis").is_none() && Zone::parse("").is_none());
        let (from, to) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
        assert!(Zone::utc().borders(from, to, Granularity::Minute, 1_439).is_none());
        assert_eq!(Zone::utc().borders(from, to, Granularity::Minute, 1_440).unwrap().len(), 1_441);
    }

    proptest! {
        #[test]
        fn spans_are_ascending_and_cover_the_range(from in 0..63_000_000_i64, length in 1..2_000_000_i64, zone in 0..5_usize) {
            let zone = ["UTC", "Europe/London", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"][zone];
            let start = at("2025-01-01T00:00:00Z").as_micros() / 1_000_000 + from;
            let (from, to) = (Timestamp::from_micros(start * 1_000_000), Timestamp::from_micros((start + length) * 1_000_000));
            for granularity in [Granularity::Hour, Granularity::Day, Granularity::Month] {
                let borders = Zone::parse(zone).unwrap().borders(from, to, granularity, 1_000).unwrap();
                prop_assert!(borders.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(borders[0] <= start && borders[1] > start);
                let last = borders.len() - 1;
                prop_assert!(borders[last] >= start + length && borders[last - 1] < start + length);
            }
        }
    }
}
