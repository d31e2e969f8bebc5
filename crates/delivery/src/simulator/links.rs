//! Finds the tracking pixel or the first tracked link in a message. Linear in the message's size, whatever is in it.

use super::visit::Visit;

/// Bytes of a text that are searched, from its beginning.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Longest scheme, host and port in front of `/o/` (pixel) or `/c/` (link).
const BASE_BYTES_MAX: usize = 300;
/// Lengths of tracking tokens; shorter and longer texts are not tokens.
const TOKEN_BYTES_MIN: usize = 21;
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The first pixel or tracked link, as `visit` says, in the HTML or else in the plain text.
pub(super) fn find_link(visit: Visit, message: &[u8]) -> Option<String> {
    let view = postroad_mail::view(message);
    let path_start = match visit {
        Visit::Open => "/o/",
        Visit::Click => "/c/",
    };
    [view.html_body, view.plain_body].into_iter().flatten().find_map(|text| find_in(&text, path_start))
}

/// Searches for `path_start`, and looks back at most [`BASE_BYTES_MAX`] from it. Tokens contain no slash, so no token
/// is read twice.
fn find_in(text: &str, path_start: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let bytes = text.as_bytes();
    text.match_indices(path_start).find_map(|(at, _)| {
        let token = &bytes[at + path_start.len()..];
        let token_bytes = token.iter().position(|byte| !is_token(*byte)).unwrap_or(token.len());
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token_bytes) {
            return None;
        }
        let window = &bytes[at.saturating_sub(BASE_BYTES_MAX)..at];
        let base_bytes = window.iter().rev().position(|byte| !is_base(*byte)).unwrap_or(window.len());
        // The base is ASCII, so the slice cuts no character.
        let base = &text[at - base_bytes..at];
        let scheme = &base[..base.rfind("://")?];
        let scheme_bytes = ["https", "http"].into_iter().find(|known| scheme.ends_with(known))?.len();
        let start = at - base.len() + scheme.len() - scheme_bytes;
        Some(text[start..at + path_start.len() + token_bytes].to_owned())
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_base(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b':' | b'/' | b'.' | b'[' | b']')
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_first_tracked_link_is_found() {
        let message = b"Content-Type: text/html\r\n\r\n<a href=\"http://example.com/c/x\">1</a>\
            <a href=\"http://127.0.0.1:8025/c/EQGsAmh0dHBzOi8vZXhhbXBsZS5jb20v_-x\">2</a>\
            <img src=\"https://track.example.net/o/EgNNkM9QMS3uV0p2vcXhxsXIoA\">";
        assert_eq!(
            find_link(Visit::Click, message).as_deref(),
            Some("http://127.0.0.1:8025/c/EQGsAmh0dHBzOi8vZXhhbXBsZS5jb20v_-x")
        );
        assert_eq!(
            find_link(Visit::Open, message).as_deref(),
            Some("https://track.example.net/o/EgNNkM9QMS3uV0p2vcXhxsXIoA")
        );
        assert_eq!(find_link(Visit::Open, b"Subject: x\r\n\r\nhttps://example.com/o/short"), None);
    }

    #[test]
    fn texts_made_of_incomplete_links_are_searched_in_linear_time() {
        let incomplete_links = [
            "http",
            "http://",
            "/o/",
            "http://a/o/",
            "https://track.example.net/o",
            "/o/aaaaaaaaaaaaaaaaaaaaaaaaaaa/",
        ];
        for link in incomplete_links {
            let text = link.repeat((4 << 20) / link.len());
            let started = Instant::now();
            let _ = find_in(&text, "/o/");
            // In quadratic time, this would take hours.
            assert!(started.elapsed() < Duration::from_mins(1), "{link}: {:?}", started.elapsed());
        }
    }
}
