//! Finds addresses in running text. Looser than RFC 5321: it must find whatever a mail system printed.

/// RFC 5321 4.5.3.1: 64 for the local part, 255 for the domain. Longer words are not addresses.
const ADDRESS_BYTES_MAX: usize = 320;

/// All addresses in a text, in order.
pub(super) fn find_all(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(at) = rest.find('@') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let start = before.rfind(|c| !is_local(c)).map_or(0, |last| last + char_len(before, last));
            let end = at + 1 + after.find(|c| !is_domain(c)).unwrap_or(after.len());
            let found = rest[start..end].trim_end_matches(['.', '-']).trim_start_matches(['\'', '=']);
            rest = &rest[end..];
            if is_address(found) {
                return Some(found);
            }
        }
        None
    })
}

/// Labels that some systems write before the address, in lower case.
const LABELS: [&str; 4] = ["failed recipient", "failed address", "recipient address", "recipient"];

/// The address at the beginning of a line, and the text after it. Skips list and quote marks, labels, and a reply
/// code, which old Sendmail puts there.
pub(super) fn split_leading(line: &str) -> Option<(&str, &str)> {
    let line = skip_label(skip_marks(line));
    let line = skip_marks(skip_codes(line));
    let address = find_all(line).next().filter(|address| line.starts_with(address))?;
    Some((address, &line[address.len()..]))
}

fn skip_marks(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || "<>*\"'-=|#([•・".contains(c))
}

/// Skips the label of `Failed Recipient: jo@example.com`.
fn skip_label(line: &str) -> &str {
    let after = |label: &&str| {
        let start = line.get(..label.len()).filter(|start| start.eq_ignore_ascii_case(label))?;
        let rest = line[start.len()..].trim_start();
        rest.strip_prefix([':', '-']).map(skip_marks)
    };
    LABELS.iter().find_map(after).unwrap_or(line)
}

fn skip_codes(line: &str) -> &str {
    let is_code = |word: &str| {
        word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|digit| digit.is_ascii_digit())
    };
    match line.split_once(' ') {
        Some((word, rest)) if is_code(word) => match rest.split_once(' ') {
            Some((word, after)) if crate::classify::EnhancedCode::parse(word).is_some() => after,
            _ => rest,
        },
        _ => line,
    }
}

pub(super) fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    !local.is_empty()
        && text.len() <= ADDRESS_BYTES_MAX
        && domain.len() > 1
        && domain.starts_with(char::is_alphanumeric)
}

/// Whether an address is one from which mail systems send notices.
pub(super) fn is_daemon(address: &str) -> bool {
    let local = address.split('@').next().unwrap_or(address).to_ascii_lowercase();
    let local: String = local.chars().filter(char::is_ascii_alphanumeric).collect();
    let names = [
        "mailerdaemon",
        "maildaemon",
        "mdaemon",
        "mmdf",
        "postmaster",
        "maildeliverysystem",
        "maildeliverysubsystem",
    ];
    // Exchange appends a long number to this name.
    names.contains(&local.as_str()) || local.starts_with("microsoftexchange")
}

fn char_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// RFC 5322 `atext` and the dot, without characters that more often surround addresses.
fn is_local(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_{}~.".contains(c) || (!c.is_ascii() && c.is_alphanumeric())
}

fn is_domain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || (!c.is_ascii() && c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{find_all, is_daemon, split_leading};

    #[test]
    fn addresses_are_found_between_words() {
        let text = "To: <jo@example.com>, \"x\" (a+b=c@mx.example.org.) no @ here, @b, c@ äö@bücher.example";
        let found: Vec<&str> = find_all(text).collect();
        assert_eq!(found, ["jo@example.com", "a+b=c@mx.example.org", "äö@bücher.example"]);
    }

    #[test]
    fn the_address_at_the_beginning_of_a_line_is_split_off() {
        assert_eq!(split_leading("  <jo@example.com>: host"), Some(("jo@example.com", ">: host")));
        assert_eq!(split_leading(" * \"jo@example.com\" x"), Some(("jo@example.com", "\" x")));
        assert_eq!(split_leading("550 5.1.1 <jo@example.com>... No"), Some(("jo@example.com", ">... No")));
        assert_eq!(split_leading("Failed Recipient: <jo@example.com> x"), Some(("jo@example.com", "> x")));
        assert_eq!(split_leading("FAILED ADDRESS - jo@example.com"), Some(("jo@example.com", "")));
        assert_eq!(split_leading("Message to jo@example.com"), None);
        assert_eq!(split_leading("Recipients jo@example.com"), None);
        assert_eq!(split_leading(""), None);
    }

    #[test]
    fn addresses_of_mail_systems_are_recognised() {
        assert!(is_daemon("MAILER-DAEMON@x.example") && is_daemon("Mail.Delivery.System@x.example"));
        assert!(!is_daemon("jo@postmaster.example"));
    }
}
