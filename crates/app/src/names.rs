//! Checks of the names of accounts, servers and pools, and of the reasons of suspensions and slow-downs.

const SERVICE_NAME: &str = "postroad";

/// Problem of a name; `None` if the name is valid. The returned text continues a sentence that begins with the name of
/// the field.
pub(crate) fn find_problem(name: &str) -> Option<&'static str> {
    let name = name.trim();
    // A slash would make `ACCOUNT/NAME` ambiguous.
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(|c| c.is_control() || c == '/') {
        return Some("should have 1 to 100 characters, and neither `/` nor control characters");
    }
    // Commands accept an id wherever they accept a name.
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("should not consist of digits only, which could be taken for an id");
    }
    None
}

/// Problem of an account name; `None` if the name is valid. Reserves the name of the service, so that no customer's
/// mail or invitation seems to come from it.
pub(crate) fn find_account_problem(name: &str) -> Option<&'static str> {
    let is_reserved = name.trim().eq_ignore_ascii_case(SERVICE_NAME);
    find_problem(name).or(is_reserved.then_some("should be another one: this one is the service's own"))
}

/// Problem of the reason of a suspension or slow-down; `None` if the reason is valid.
pub(crate) fn find_reason_problem(reason: &str) -> Option<&'static str> {
    let is_valid = !reason.trim().is_empty() && reason.chars().count() <= 500;
    (!is_valid).then_some("should have 1 to 500 characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_account_takes_the_name_of_the_service() {
        assert!(find_account_problem(" Postroad ").is_some() && find_account_problem("7").is_some());
        assert_eq!(find_account_problem("postroad shop"), None);
        assert_eq!(find_problem("postroad"), None, "a server may have this name");
    }

    #[test]
    fn a_reason_is_measured_in_characters() {
        assert_eq!(find_reason_problem(&"ü".repeat(500)), None);
        assert!(find_reason_problem(&"ü".repeat(501)).is_some() && find_reason_problem(" ").is_some());
    }

    #[test]
    fn a_name_is_short_and_neither_a_path_nor_an_id() {
        for good in ["shop", " shop ", "Ünicode 7", "7th", "1.5", &"ü".repeat(100)] {
            assert_eq!(find_problem(good), None, "{good}");
        }
        for bad in ["", "  ", "a/b", "a\nb", "\u{1b}[2J", "7", " 0042 ", &"x".repeat(101)] {
            assert!(find_problem(bad).is_some(), "{bad:?}");
        }
    }
}
