//! Shortens and cleans text from other people's DNS records for display.

/// Maximum number of texts, or items of a list, that are shown.
const SHOWN_MAX: usize = 5;
const SHOWN_CHARS_MAX: usize = 500;

/// The first few of the found texts, shortened.
pub(super) fn display_texts<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    texts.take(SHOWN_MAX).map(display_text).collect()
}

pub(super) fn display_names<T: ToString>(names: impl Iterator<Item = T>) -> Vec<String> {
    names.take(SHOWN_MAX).map(|name| display_text(name.to_string().as_bytes())).collect()
}

/// One line of at most 500 characters; `…` follows if the text is longer. Control characters and invalid UTF-8 become
/// `�`.
pub(super) fn display_text(text: &[u8]) -> String {
    // A character has four bytes at most: the rest would be cut anyway.
    let text = &text[..text.len().min(4 * SHOWN_CHARS_MAX + 4)];
    let text = String::from_utf8_lossy(text);
    let mut characters = text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    let mut line: String = characters.by_ref().take(SHOWN_CHARS_MAX).collect();
    if characters.next().is_some() {
        line.push('…');
    }
    line
}

/// Joins the items, as in `a, b and 3 more`.
pub(super) fn join_items(items: &[String]) -> String {
    match items {
        [head @ .., last] if items.len() <= SHOWN_MAX => {
            if head.is_empty() {
                last.clone()
            } else {
                format!("{} and {last}", head.join(", "))
            }
        }
        [] => String::new(),
        _ => format!("{} and {} more", items[..SHOWN_MAX].join(", "), items.len() - SHOWN_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_other_people_is_shortened_to_one_line() {
        assert_eq!(display_text(b"a\r\nb\x1b[31m\xff"), "a��b�[31m�");
        let long = display_text("x".repeat(100_000).as_bytes());
        assert_eq!((long.chars().count(), long.ends_with("x…")), (SHOWN_CHARS_MAX + 1, true));
        assert_eq!(display_texts([b"x".as_slice(); 50].into_iter()).len(), SHOWN_MAX);
    }

    #[test]
    fn items_are_joined_as_in_a_sentence() {
        let items: Vec<String> = (1..=7).map(|number| number.to_string()).collect();
        assert_eq!(join_items(&items[..1]), "1");
        assert_eq!(join_items(&items[..3]), "1, 2 and 3");
        assert_eq!(join_items(&items), "1, 2, 3, 4, 5 and 2 more");
    }
}
