//! Limits the text from outside in one list, so that pages stay small however long the texts are.

use crate::display::{beginning_on_page, escaped_bytes_of_char};

/// Maximum bytes of texts from outside in one list, escaped.
const BYTES_MAX: usize = 35_000;

pub(crate) struct TextBudget {
    left: usize,
}

impl Default for TextBudget {
    fn default() -> Self {
        Self { left: BYTES_MAX }
    }
}

impl TextBudget {
    /// The beginning of a text, at most `bytes_max` bytes after escaping, plus "…" if it was cut; and whether it is the
    /// whole text.
    pub(crate) fn take(&mut self, text: &str, bytes_max: usize) -> (String, bool) {
        let shown = beginning_on_page(text, bytes_max.min(self.left));
        if shown.len() == text.len() {
            self.left -= escaped_bytes(shown);
            return (shown.to_owned(), true);
        }
        let shown = format!("{shown}…");
        self.left = self.left.saturating_sub(escaped_bytes(&shown));
        (shown, false)
    }

    /// Like `take`, without telling whether the text was cut.
    pub(crate) fn cut(&mut self, text: &str, bytes_max: usize) -> String {
        self.take(text, bytes_max).0
    }
}

/// Bytes of a text after HTML escaping.
pub(crate) fn escaped_bytes(text: &str) -> usize {
    text.chars().map(escaped_bytes_of_char).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_one_by_one_and_all_together() {
        let mut budget = TextBudget { left: 40 };
        assert_eq!(budget.take("short", 20), ("short".to_owned(), true));
        assert_eq!(budget.take("<<<<<", 20), ("<<<<…".to_owned(), false));
        assert_eq!(budget.take(&"a".repeat(100), 20), (format!("{}…", "a".repeat(12)), false));
        assert_eq!(budget.take("b", 20), ("…".to_owned(), false));
        assert_eq!(budget.cut("", 20), "");
    }
}
