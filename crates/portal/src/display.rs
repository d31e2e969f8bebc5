//! Values formatted for pages: times, sizes, statuses. Also cuts text from outside to a size; templates escape it.

use std::fmt;

use askama::filters::HtmlSafe;
use postroad_model::{Status, Timestamp};

/// A time in UTC, which the script turns into the reader's time zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When(pub(crate) Timestamp);

impl HtmlSafe for When {}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iso = self.0.to_rfc3339_millis();
        let (day, time) = iso.split_once('T').unwrap_or((&iso, ""));
        let second = time.get(..8).unwrap_or(time);
        write!(f, r#"<time datetime="{iso}" title="{iso}">{day} {second} UTC</time>"#)
    }
}

/// A status in words and colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusBadge(pub(crate) Status);

impl HtmlSafe for StatusBadge {}

impl fmt::Display for StatusBadge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tone = match self.0 {
            Status::Sent => "good",
            Status::Pending | Status::Scheduled => "calm",
            Status::Held | Status::SoftFail => "warn",
            Status::HardFail | Status::Bounced => "bad",
            Status::HoldCancelled | Status::Cancelled => "off",
        };
        write!(f, r#"<span class="badge {tone}">{}</span>"#, status_words(self.0))
    }
}

pub(crate) fn status_words(status: Status) -> &'static str {
    match status {
        Status::Pending => "Queued",
        Status::Scheduled => "Scheduled",
        Status::Held => "Held",
        Status::SoftFail => "Delayed",
        Status::Sent => "Delivered",
        Status::HardFail => "Failed",
        Status::Bounced => "Bounced",
        Status::HoldCancelled => "Hold cancelled",
        Status::Cancelled => "Cancelled",
    }
}

/// A number of bytes with its unit.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// A duration with the unit that fits.
pub(crate) fn duration(micros: i64) -> String {
    match micros {
        ..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..120_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        120_000_000..7_200_000_000 => format!("{} min", micros / 60_000_000),
        7_200_000_000..172_800_000_000 => format!("{} h", micros / 3_600_000_000),
        _ => format!("{} days", micros / 86_400_000_000),
    }
}

/// The time since a moment.
pub(crate) fn elapsed(since: Timestamp, now: Timestamp) -> String {
    duration(i64::try_from(now.since(since).as_micros()).unwrap_or(i64::MAX))
}

/// A rate in percent.
pub(crate) fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.2} %", rate * 100.0))
}

/// A number with thin spaces between its thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of things: "1 report", "2 reports".
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// The beginning of a text, at most `bytes_max` bytes.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// The beginning of a text that takes at most `bytes_max` bytes in a page, where askama writes some characters as
/// references such as `&#60;`.
pub(crate) fn beginning_on_page(text: &str, bytes_max: usize) -> &str {
    let mut left = bytes_max;
    for (at, one) in text.char_indices() {
        match left.checked_sub(escaped_bytes_of_char(one)) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// Bytes of a character after askama has escaped it.
pub(crate) fn escaped_bytes_of_char(one: char) -> usize {
    if matches!(one, '<' | '>' | '&' | '"' | '\'') { "&#60;".len() } else { one.len_utf8() }
}

/// The first headers, cut to about `bytes_max` bytes in a page, and whether anything was left out.
pub(crate) fn first_headers(
    headers: impl IntoIterator<Item = (String, String)>,
    bytes_max: usize,
) -> (Vec<(String, String)>, bool) {
    /// Bytes of the row around a header.
    const ROW_BYTES: usize = 100;
    let (mut shown, mut left) = (Vec::new(), bytes_max);
    for (name, value) in headers {
        let Some(rest) = left.checked_sub(ROW_BYTES + name.len()) else { return (shown, true) };
        let part = beginning_on_page(&value, rest);
        let is_cut = part.len() < value.len();
        left = rest.saturating_sub(part.chars().map(escaped_bytes_of_char).sum());
        shown.push((name, part.to_owned()));
        if is_cut {
            return (shown, true);
        }
    }
    (shown, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_their_size_on_the_page() {
        assert_eq!(beginning_on_page("abc", 3), "abc");
        assert_eq!(beginning_on_page("a<b", 5), "a");
        assert_eq!(beginning_on_page("äö", 3), "ä");
        let header = |value: &str| ("x".to_owned(), value.to_owned());
        let (shown, is_cut) = first_headers([header("abc"), header("def"), header("g")], 207);
        assert_eq!((shown, is_cut), (vec![header("abc"), header("de")], true));
        assert_eq!(first_headers([header("abc")], 1_000), (vec![header("abc")], false));
    }

    #[test]
    fn values_have_units() {
        assert_eq!(
            (bytes(999), bytes(1_500), bytes(2_500_000)),
            ("999 B".into(), "1.5 kB".into(), "2.5 MB".into())
        );
        assert_eq!(
            (duration(900), duration(1_500), duration(2_500_000)),
            ("900 µs".into(), "1 ms".into(), "2.5 s".into())
        );
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!((counted(1, "report"), counted(0, "report")), ("1 report".into(), "0 reports".into()));
        let when = When(Timestamp::from_micros(1_794_711_600_250_000));
        assert_eq!(
            when.to_string(),
            r#"<time datetime="2026-11-15T03:00:00.250Z" title="2026-11-15T03:00:00.250Z">2026-11-15 03:00:00 UTC</time>"#
        );
    }
}
