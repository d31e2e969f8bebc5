//! Finds URLs in plain text as mail clients do.

use std::ops::Range;

use memchr::memmem::Finder;

use super::Insertion;
use super::settings::{LINKS_MAX, LinkRules};
use super::target::tracked_target;
use crate::track::TARGET_BYTES_MAX;

/// Finds links in a text whose charset is a superset of ASCII.
pub(super) fn find_insertions(text: &[u8], rules: &LinkRules) -> Vec<(Range<usize>, Insertion)> {
    let links = find_urls(text).filter_map(|range| {
        // Lossless, because `find_urls` finds only ASCII.
        let target = tracked_target(&String::from_utf8_lossy(&text[range.clone()]), rules)?;
        Some((range, Insertion::Link(target)))
    });
    links.take(LINKS_MAX).collect()
}

/// Positions of URLs in a text.
pub(super) fn find_urls(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let separator = Finder::new(b"://");
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(at) = separator.find(&text[from..]).map(|at| from + at) {
            from = at + 3;
            let Some(start) = scheme_start(text, at) else { continue };
            // Whether or not the URL is valid, its bytes are not scanned again.
            let run = run_length(&text[from..]);
            let (run_start, run_end) = (from, from + run);
            from = run_end;
            if let Some(end) = url_end(text, start, run_start..run_end) {
                return Some(start..end);
            }
        }
        None
    })
}

/// Start of `http` or `https` before the `://`, if it is a separate word.
fn scheme_start(text: &[u8], separator: usize) -> Option<usize> {
    let scheme = [&b"https"[..], b"http"].into_iter().find(|scheme| {
        text[..separator].len() >= scheme.len()
            && text[separator - scheme.len()..separator].eq_ignore_ascii_case(scheme)
    })?;
    let start = separator - scheme.len();
    let before = text[..start].last();
    let is_in_word =
        before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'/' | b'+' | b'-' | b'.'));
    (!is_in_word).then_some(start)
}

/// Number of bytes at the beginning that can be part of a URL.
fn run_length(text: &[u8]) -> usize {
    let is_part = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'<' | b'>' | b'"' | b'`');
    text.iter().position(|b| !is_part(b)).unwrap_or(text.len())
}

/// End of a URL. `None` if the end is uncertain (a non-ASCII character may belong to the URL or to the next word), or
/// if the URL is too long or has nothing after `://`.
fn url_end(text: &[u8], start: usize, run: Range<usize>) -> Option<usize> {
    if run.len() > TARGET_BYTES_MAX || text.get(run.end).is_some_and(|b| !b.is_ascii()) {
        return None;
    }
    let mut open = [(b'(', b')'), (b'[', b']'), (b'{', b'}')].map(|(opening, closing)| {
        let difference = |sum: i64, b: &u8| sum + i64::from(*b == opening) - i64::from(*b == closing);
        (closing, text[start..run.end].iter().fold(0, difference))
    });
    // Punctuation at the end belongs to the sentence; so does a closing bracket that was opened before the URL.
    let mut end = run.end;
    while end > run.start {
        let last = text[end - 1];
        let is_outside = match open.iter_mut().find(|(closing, _)| *closing == last) {
            Some((_, difference)) if *difference < 0 => {
                *difference += 1;
                true
            }
            Some(_) => false,
            None => b".,;:!?'*_~|".contains(&last),
        };
        if !is_outside {
            break;
        }
        end -= 1;
    }
    (end > run.start).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let rules = LinkRules::new("https://track.example.net", &[], Vec::new());
        find_insertions(text.as_bytes(), &rules)
            .into_iter()
            .map(|(range, _)| text[range].to_owned())
            .collect()
    }

    #[test]
    fn urls_end_where_a_reader_would_say() {
        for (text, expected) in [
            ("See https://example.com/a.", "https://example.com/a"),
            ("(https://example.com/a)", "https://example.com/a"),
            ("https://example.com/a_(b)", "https://example.com/a_(b)"),
            ("(see https://example.com/a_(b)).", "https://example.com/a_(b)"),
            ("<https://example.com/a>", "https://example.com/a"),
            ("\"https://example.com/a\", he said", "https://example.com/a"),
            ("[1]: https://example.com/a?b=c&d#e\r\n", "https://example.com/a?b=c&d#e"),
            ("*https://example.com*", "https://example.com"),
            ("Really?! HTTP://EXAMPLE.com/?!", "HTTP://EXAMPLE.com/"),
            ("äöü https://example.com/ ä", "https://example.com/"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn ambiguous_urls_and_other_texts_are_left_alone() {
        for text in [
            "",
            "://",
            "xhttps://example.com",
            "ftp://example.com",
            "https://",
            "https://.",
            "https://example.com/über",
            "詳細はhttps://example.com/をご覧",
            "mailto:a@example.com",
            "www.example.com",
            // Unsubscribe links are never tracked.
            "https://example.com/unsubscribe?x",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_url_inside_a_url_is_not_a_second_link() {
        let text = "https://example.com/?to=https://other.example/x https://b.example";
        assert_eq!(found(text), ["https://example.com/?to=https://other.example/x", "https://b.example"]);
    }

    /// Would take very long if the time were quadratic.
    #[test]
    fn millions_of_bytes_of_urls_take_linear_time() {
        for piece in ["(https://", "https://a)", "https://a)))))))))))))))))))))", "https://"] {
            found(&piece.repeat(4_000_000 / piece.len()));
        }
    }

    #[test]
    fn links_beyond_the_limit_are_not_tracked() {
        assert_eq!(found(&"https://example.com/ ".repeat(LINKS_MAX + 5)).len(), LINKS_MAX);
    }
}
