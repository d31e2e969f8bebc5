//! The page's query, read from the query string of its URL: range, time zone, filters, and the dimension of the table.

use postroad_app::analytics::{
    Dimension, DimensionValue, Filter, Granularity, METRICS, Metric, SummaryQuery, TimeseriesQuery, TopBy,
    TopQuery, Zone,
};
use postroad_model::Timestamp;

use super::range::{Range, granularity_for};
use crate::fields::Fields;
use crate::query::query;

/// Maximum number of rows of the table.
const TOP_ROWS: usize = 25;
/// Value of a filter that selects messages without a tag, template and so on.
pub(super) const NONE: &str = "(none)";
/// Name of the table by recipient domain, which is not a dimension.
pub(super) const RECIPIENT_DOMAIN: &str = "recipient_domain";

const GRANULARITIES: [(&str, Granularity); 4] = [
    ("minute", Granularity::Minute),
    ("hour", Granularity::Hour),
    ("day", Granularity::Day),
    ("month", Granularity::Month),
];

#[derive(Debug, Clone)]
pub(super) struct AnalyticsQuery {
    pub(super) range: Range,
    /// First and last day, each empty if not chosen. Without a first day, `range` ends on the last day; without a last
    /// day, the period ends now.
    pub(super) since: String,
    pub(super) until: String,
    /// Time zone as typed; empty for the reader's.
    pub(super) zone_name: String,
    pub(super) zone: Zone,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Granularity as chosen; empty if it follows from the range.
    pub(super) granularity_name: String,
    pub(super) granularity: Granularity,
    pub(super) by: TopBy,
    /// Second dimension of the CSV file.
    pub(super) also: Option<Dimension>,
    /// Metric that the table is sorted by; `None` if it was not chosen.
    pub(super) metric: Option<Metric>,
    /// Values as typed, separated by commas; a value in quotes may contain commas.
    pub(super) filters: Vec<(Dimension, String)>,
    pub(super) include_bots: bool,
}

impl AnalyticsQuery {
    /// Reads the query. An invalid field gets its default; for days and the time zone, the problem to show is returned
    /// too.
    pub(super) fn read(fields: &Fields, now: Timestamp, own_zone: &Zone) -> (Self, Option<String>) {
        let mut problem = None;
        let zone_name = fields.text("zone").to_owned();
        let zone = match zone_name.as_str() {
            "" => own_zone.clone(),
            name => Zone::parse(name).unwrap_or_else(|| {
                problem = Some(format!("“{name}” is not a time zone, such as Europe/Berlin."));
                own_zone.clone()
            }),
        };
        let range = Range::parse(fields.text("range"));
        let (mut from, mut to) = (now.minus(range.length()), now);
        // Choosing another range (`was` is the previous one) discards the chosen days.
        let has_new_range = fields.filled("was").is_some_and(|was| was != fields.text("range"));
        let day = |name: &str| fields.text(name).to_owned();
        let (mut since, mut until) = (day("since"), day("until"));
        if has_new_range {
            (since, until) = (String::new(), String::new());
        }
        for text in [&since, &until] {
            if !text.is_empty() && zone.day_begin(text).is_none() {
                problem = Some(format!("“{text}” should be a day such as 2027-01-31."));
            }
        }
        if let Some(end) = zone.day_end(&until) {
            (from, to) = (end.minus(range.length()), end);
        }
        if let Some(begin) = zone.day_begin(&since) {
            from = begin;
        }
        if from >= to {
            problem = Some("The period should end after it begins.".to_owned());
            (since, until, from, to) = (String::new(), String::new(), now.minus(range.length()), now);
        }
        let granularity_name = fields.text("granularity");
        let granularity = GRANULARITIES.into_iter().find(|(name, _)| *name == granularity_name);
        let by = match fields.text("by") {
            RECIPIENT_DOMAIN => TopBy::RecipientDomain,
            name => TopBy::Dimension(Dimension::parse(name).unwrap_or(Dimension::Domain)),
        };
        let metric = fields.text("metric");
        let filter = |dimension: Dimension| Some((dimension, fields.filled(dimension.as_str())?.to_owned()));
        let query = Self {
            range,
            since,
            until,
            zone_name,
            zone,
            from,
            to,
            granularity_name: granularity.map_or("", |(name, _)| name).to_owned(),
            granularity: granularity.map_or_else(|| granularity_for(to.since(from)), |(_, grain)| grain),
            by,
            also: Dimension::parse(fields.text("also")).filter(|also| by != TopBy::Dimension(*also)),
            metric: METRICS.into_iter().find(|known| known.as_str() == metric),
            filters: Dimension::ALL.into_iter().filter_map(filter).collect(),
            include_bots: fields.is_ticked("bots"),
        };
        (query, problem)
    }

    pub(super) fn has_days(&self) -> bool {
        !self.since.is_empty() || !self.until.is_empty()
    }

    /// Whether the section *Filters, days and time zone* has a value, so it is shown open.
    pub(super) fn has_rare_options(&self) -> bool {
        let is_filled = |text: &str| !text.is_empty();
        self.has_days()
            || is_filled(&self.zone_name)
            || is_filled(&self.granularity_name)
            || self.also.is_some()
            || self.metric.is_some()
            || !self.filters.is_empty()
            || self.include_bots
    }

    /// This query for the period of the same length right before.
    pub(super) fn previous_period(&self) -> Self {
        let length = self.to.since(self.from);
        Self { from: self.from.minus(length), to: self.from, ..self.clone() }
    }

    pub(super) fn by_name(&self) -> &'static str {
        match self.by {
            TopBy::Dimension(dimension) => dimension.as_str(),
            TopBy::RecipientDomain => RECIPIENT_DOMAIN,
        }
    }

    fn filters(&self) -> Vec<Filter> {
        let filter = |(dimension, text): &(Dimension, String)| Filter {
            dimension: *dimension,
            values: split(text).iter().map(|value| filter_value(*dimension, value)).collect(),
        };
        self.filters.iter().map(filter).collect()
    }

    pub(super) fn summary(&self) -> SummaryQuery {
        let (from, to) = (Some(self.from), Some(self.to));
        SummaryQuery { from, to, filters: self.filters(), include_bots: self.include_bots }
    }

    pub(super) fn timeseries(&self, dimensions: Vec<Dimension>) -> TimeseriesQuery {
        TimeseriesQuery {
            from: Some(self.from),
            to: Some(self.to),
            granularity: self.granularity,
            zone: self.zone.clone(),
            dimensions,
            filters: self.filters(),
            include_bots: self.include_bots,
        }
    }

    pub(super) fn top(&self) -> TopQuery {
        let default_metric = match self.by {
            // Accepted messages have no bounce class, so sort by temporary failures.
            TopBy::Dimension(Dimension::BounceClass) => Metric::SoftFail,
            _ => Metric::Accepted,
        };
        TopQuery {
            from: Some(self.from),
            to: Some(self.to),
            by: self.by,
            metric: self.metric.unwrap_or(default_metric),
            filters: self.filters(),
            include_bots: self.include_bots,
            limit: TOP_ROWS,
        }
    }

    /// This query as the query string of the page's URL; parts with their default are left out.
    pub(super) fn query(&self) -> String {
        let range = if self.range == Range::parse("") { "" } else { self.range.name };
        let by = if self.by == TopBy::Dimension(Dimension::Domain) { "" } else { self.by_name() };
        let mut pairs = vec![
            ("range", range),
            ("by", by),
            ("since", &self.since),
            ("until", &self.until),
            ("zone", &self.zone_name),
            ("granularity", &self.granularity_name),
            ("also", self.also.map_or("", Dimension::as_str)),
            ("metric", self.metric.map_or("", Metric::as_str)),
            ("bots", if self.include_bots { "1" } else { "" }),
        ];
        pairs.extend(self.filters.iter().map(|(dimension, text)| (dimension.as_str(), text.as_str())));
        query(&pairs)
    }

    /// Query string with the filter of `dimension` set to `value`, or removed if `value` is empty.
    pub(super) fn query_with(&self, dimension: Dimension, value: &str) -> String {
        let mut filters: Vec<(Dimension, String)> =
            self.filters.iter().filter(|(known, _)| *known != dimension).cloned().collect();
        if !value.is_empty() {
            filters.push((dimension, quoted(value)));
        }
        let query = Self { filters, ..self.clone() }.query();
        // An empty `href` would keep the current query string.
        if query.is_empty() { "?".to_owned() } else { query }
    }
}

/// Values of a filter as typed: separated by commas, as in a line of a CSV file.
fn split(text: &str) -> Vec<String> {
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut rest = text.chars().peekable();
    let mut was_quoted = false;
    while let Some(next) = rest.next() {
        match next {
            '"' if is_quoted && rest.next_if_eq(&'"').is_some() => value.push('"'),
            '"' if is_quoted => is_quoted = false,
            '"' if value.trim().is_empty() && !was_quoted => {
                value.clear();
                (is_quoted, was_quoted) = (true, true);
            }
            ',' if !is_quoted => {
                let text = std::mem::take(&mut value);
                values.push(if was_quoted { text } else { text.trim().to_owned() });
                was_quoted = false;
            }
            // Spaces between the closing quote and the comma.
            ' ' if was_quoted && !is_quoted => {}
            other => value.push(other),
        }
    }
    values.push(if was_quoted { value } else { value.trim().to_owned() });
    values
}

/// The value in quotes if `split` would otherwise change or divide it.
fn quoted(value: &str) -> String {
    let is_plain = !value.contains(',') && !value.starts_with('"') && value.trim() == value;
    if is_plain { value.to_owned() } else { format!("\"{}\"", value.replace('"', "\"\"")) }
}

fn filter_value(dimension: Dimension, text: &str) -> DimensionValue {
    DimensionValue::of_text(dimension, if text == NONE { "" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> (AnalyticsQuery, Option<String>) {
        let now = Timestamp::parse_rfc3339("2027-03-10T12:00:00Z").unwrap();
        AnalyticsQuery::read(&Fields::parse(text.as_bytes()), now, &Zone::utc())
    }

    #[test]
    fn days_are_those_of_the_time_zone() {
        let (parsed, problem) = query("range=week&since=2027-03-01&until=2027-03-02&zone=Europe/Berlin");
        assert_eq!(problem, None);
        assert_eq!(parsed.from.to_rfc3339(), "2027-02-28T23:00:00Z");
        assert_eq!(parsed.to.to_rfc3339(), "2027-03-02T23:00:00Z");
        assert_eq!(parsed.granularity, Granularity::Hour);
        assert_eq!(parsed.previous_period().to, parsed.from);
        let (week, _) = query("range=month&was=week&since=2027-03-01");
        assert_eq!((week.has_days(), week.range.name), (false, "month"), "another range was chosen");
        for wrong in ["zone=Atlantis", "since=soon", "since=2027-03-02&until=2027-03-01"] {
            assert!(query(wrong).1.is_some(), "{wrong}");
        }
    }

    #[test]
    fn links_keep_filter_values_with_commas() {
        for value in ["a,b", "a", "\"a\"", "a \"b\", c", " a ", "a\"b", "(none)"] {
            assert_eq!(split(&quoted(value)), [value], "{value}");
        }
        assert_eq!(split("a, \"b,c\" ,d"), ["a", "b,c", "d"]);
        let followed = query("by=tag").0.query_with(Dimension::Tag, "news, weekly");
        let (parsed, _) = query(&followed[1..]);
        assert_eq!(parsed.filters()[0].values, [DimensionValue::Text("news, weekly".to_owned())]);
    }

    #[test]
    fn a_query_is_read_back_from_its_query_string() {
        let text = "?range=month&by=tag&metric=sent&bots=1&domain=a.example%2Cb.example&tag=%28none%29";
        let (parsed, _) = query(&text[1..]);
        assert_eq!(parsed.query(), text);
        let filters = parsed.filters();
        assert_eq!(filters[0].values.len(), 2);
        assert_eq!(filters[1].values, [DimensionValue::None]);
        assert!(!parsed.query_with(Dimension::Tag, "").contains("tag=%28"));
        assert_eq!(query("").0.query_with(Dimension::Tag, ""), "?");
    }
}
