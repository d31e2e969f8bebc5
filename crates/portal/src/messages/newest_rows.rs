//! Long lists in time order, shown from their newest end: as many rows as a page has room for, and a link to older
//! ones.

use askama::filters::{Escaper as _, Html};

/// Maximum bytes of the rows of one page, escaped.
const ROWS_BYTES_MAX: usize = 50_000;
/// Estimated bytes of markup for one row.
const MARKUP_BYTES: usize = 500;
/// Longer texts are cut.
const TEXT_CHARS_MAX: usize = 1_000;

pub(crate) struct NewestRows<T> {
    pub(crate) rows: Vec<T>,
    /// Value of `skipped` for the link to older rows; `None` if there are none.
    pub(crate) older: Option<usize>,
    /// Whether newer rows were left out.
    pub(crate) has_newer: bool,
}

impl<T> Default for NewestRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), older: None, has_newer: false }
    }
}

impl<T> NewestRows<T> {
    /// Skips the newest `skipped` rows and keeps the next ones that fit on a page, at least one.
    pub(crate) fn new(mut rows: Vec<T>, skipped: usize, bytes_of: impl Fn(&T) -> usize) -> Self {
        let skipped = skipped.min(rows.len().saturating_sub(1));
        rows.truncate(rows.len() - skipped);
        let mut bytes = 0;
        let fitting = rows.iter().rev().take_while(|row| {
            let is_first = bytes == 0;
            bytes += MARKUP_BYTES + bytes_of(row);
            is_first || bytes <= ROWS_BYTES_MAX
        });
        let shown = fitting.count();
        let older = (shown < rows.len()).then_some(skipped + shown);
        rows.drain(..rows.len() - shown);
        Self { rows, older, has_newer: skipped > 0 }
    }
}

/// Bytes of a text in HTML.
pub(crate) fn escaped_bytes(text: &str) -> usize {
    let mut escaped = String::new();
    // Writing to a string does not fail.
    let _ = Html.write_escaped_str(&mut escaped, text);
    escaped.len()
}

/// The text, cut if it is long.
pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_long_list_have_every_row_once() {
        let rows: Vec<usize> = (0..1_000).collect();
        let (mut seen, mut skipped) = (Vec::new(), 0);
        loop {
            let page = NewestRows::new(rows.clone(), skipped, |_| 300);
            assert_eq!(page.has_newer, skipped > 0);
            assert!(page.rows.len() <= ROWS_BYTES_MAX / 800, "{}", page.rows.len());
            seen.splice(0..0, page.rows);
            match page.older {
                Some(older) => skipped = older,
                None => break,
            }
        }
        assert_eq!(seen, rows);
        assert_eq!(NewestRows::new(vec![1], 7, |_| 1_000_000).rows, [1], "one is always shown");
        assert!(NewestRows::new(Vec::<u8>::new(), 0, |_| 1).rows.is_empty());
        assert_eq!((escaped_bytes("a<b"), shortened("é".repeat(2_000)).chars().count()), (7, 1_001));
    }
}
