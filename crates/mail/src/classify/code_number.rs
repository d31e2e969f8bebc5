//! Numbers in enhanced status codes.

/// Parses a number of one to three digits (RFC 3463 section 2).
pub(super) fn parse_number(text: &str) -> Option<u16> {
    let is_number = (1..=3).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
