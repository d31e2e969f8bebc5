//! Check of account and server names.

/// Problem of a name; `None` if it is valid. The text follows "a name" or the field's name.
pub(crate) fn find_problem(name: &str) -> Option<&'static str> {
    let name = name.trim();
    // A slash would make `ACCOUNT/NAME` ambiguous.
    if name.is_empty() || name.len() > 100 || name.chars().any(|c| c.is_control() || c == '/') {
        return Some("should have 1 to 100 characters and no `/`");
    }
    // Commands accept an id wherever they accept a name.
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("should not be a number, which could be taken for an id");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_neither_a_path_nor_an_id() {
        for good in ["shop", " shop ", "Ünicode 7", "7th", "1.5", &"x".repeat(100)] {
            assert_eq!(find_problem(good), None, "{good}");
        }
        for bad in ["", "  ", "a/b", "a\nb", "\u{1b}[2J", "7", " 0042 ", &"x".repeat(101)] {
            assert!(find_problem(bad).is_some(), "{bad:?}");
        }
    }
}
