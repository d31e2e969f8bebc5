//! Limits the text from outside on one page, so that the page stays small however long the texts are.

use crate::shown::beginning_on_page;

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
    /// The beginning of a text, at most `bytes_max` bytes in the page, and whether it is the whole text.
    pub(crate) fn take(&mut self, text: &str, bytes_max: usize) -> (String, bool) {
        let shown = beginning_on_page(text, bytes_max.min(self.left));
        if shown.len() == text.len() {
            self.left -= bytes_in_page(shown);
            return (shown.to_owned(), true);
        }
        let shown = format!("{shown}…");
        self.left = self.left.saturating_sub(bytes_in_page(&shown));
        (shown, false)
    }

    /// Like `take`, without telling whether the text was cut.
    pub(crate) fn cut(&mut self, text: &str, bytes_max: usize) -> String {
        self.take(text, bytes_max).0
    }
}

/// Bytes of a text as a page has it.
pub(crate) fn bytes_in_page(text: &str) -> usize {
    text.chars().map(crate::shown::bytes_on_page).sum()
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
