//! Sentences of the service, in which times are shown in the reader's time zone. Everything else in them is escaped,
//! because they may quote strangers.

use std::fmt;

use askama::filters::{Escaper as _, Html, HtmlSafe};
use postroad_model::Timestamp;

use crate::display::When;

/// Bytes of a date, such as `2026-11-15`.
const DATE_BYTES: usize = 10;
/// Maximum bytes of the part after the date, with its `T` and `Z`; nanoseconds need 20.
const TIME_BYTES_MAX: usize = 21;

#[derive(Debug, Clone)]
pub(crate) struct Sentence(pub(crate) String);

impl HtmlSafe for Sentence {}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_str();
        while let Some((before, at, after)) = split_at_moment(rest) {
            Html.write_escaped_str(&mut *f, before)?;
            When(at).fmt(f)?;
            rest = after;
        }
        Html.write_escaped_str(f, rest)
    }
}

/// The text before the first time in RFC 3339 and UTC, the time, and the text after it.
fn split_at_moment(text: &str) -> Option<(&str, Timestamp, &str)> {
    text.match_indices('T').find_map(|(middle, _)| {
        let begin = middle.checked_sub(DATE_BYTES)?;
        let before = text.get(..begin)?;
        let length = text[middle..].bytes().take(TIME_BYTES_MAX).position(|byte| byte == b'Z')?;
        let (moment, after) = text.get(begin..)?.split_at_checked(DATE_BYTES + length + 1)?;
        let is_whole = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        let at = Timestamp::parse_rfc3339(moment).filter(|_| is_whole)?;
        Some((before, at, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Sentence(text.to_owned()).to_string()
    }

    #[test]
    fn moments_become_times_and_the_rest_is_escaped() {
        let text =
            "It waits because <b>it</b> is due at 2026-11-15T03:00:00.25Z; again at 2026-11-16T03:00:00Z.";
        let found = shown(text);
        assert!(
            found.starts_with("It waits because &#60;b&#62;it&#60;/b&#62; is due at <time datetime=\""),
            "{found}"
        );
        assert_eq!(found.matches("<time ").count(), 2, "{found}");
        assert!(found.contains("2026-11-15T03:00:00.250Z") && found.ends_with("UTC</time>."), "{found}");
    }

    #[test]
    fn text_that_only_looks_like_a_time_stays_text() {
        for text in [
            "",
            "T",
            "2026-11-15",
            "2026-13-15T03:00:00Z",
            "x2026-11-15T03:00:00Z",
            "2026-11-15T03:00:00Zx",
            "ééééé-T03:00:00Z",
            "2026-11-15T03:00:00.12345678901234567890Z",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
