//! Warnings about the messages of a batch: one for each text, with the first message and the number of others.

/// Maximum number of different texts; warnings with further texts are only counted.
const TEXTS_MAX: usize = 20;

#[derive(Debug, Default)]
pub(super) struct BatchWarnings {
    warnings: Vec<BatchWarning>,
    /// Number of warnings that are not listed, because their texts came after `TEXTS_MAX` others.
    left_out: usize,
}

#[derive(Debug)]
struct BatchWarning {
    text: String,
    /// Index of the first message with this text.
    first: usize,
    /// Number of further warnings with this text.
    others: usize,
}

impl BatchWarnings {
    /// Adds a warning about the message at `index`.
    pub(super) fn add(&mut self, index: usize, text: String) {
        if let Some(known) = self.warnings.iter_mut().find(|known| known.text == text) {
            known.others += 1;
        } else if self.warnings.len() < TEXTS_MAX {
            self.warnings.push(BatchWarning { text, first: index, others: 0 });
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        let text = |BatchWarning { text, first, others }: &BatchWarning| match others {
            0 => format!("{text} (messages/{first})"),
            others => format!("{text} (messages/{first} and {others} more)"),
        };
        let left_out = (self.left_out > 0).then(|| format!("{} more warnings are not listed", self.left_out));
        self.warnings.iter().map(text).chain(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_reported_once_and_the_rest_is_counted() {
        let mut warnings = BatchWarnings::default();
        for index in [3, 4, 9] {
            warnings.add(index, "odd".to_owned());
        }
        for number in 0..TEXTS_MAX + 4 {
            warnings.add(10, format!("name {number}"));
        }
        let texts: Vec<String> = warnings.texts().collect();
        assert_eq!(texts[0], "odd (messages/3 and 2 more)");
        assert_eq!(texts[1], "name 0 (messages/10)");
        assert_eq!(texts[TEXTS_MAX..], ["5 more warnings are not listed"]);
    }
}
