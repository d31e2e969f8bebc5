//! An SMTP reply quoted in running text: `host mx.example.com said: 550 5.1.1 User unknown (in reply to …)`.

use crate::classify::EnhancedCode;

/// A refusal found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuotedReply<'a> {
    pub(super) code: u16,
    /// Text after the code, up to the end of the paragraph.
    pub(super) text: &'a str,
    /// Whether an enhanced code other than x.0.x follows, so this is certainly a reply.
    is_sure: bool,
}

/// The reply that a text quotes: the first with an enhanced code other than x.0.x, else the first permanent one, else
/// the first.
pub(super) fn find_reply(text: &str) -> Option<QuotedReply<'_>> {
    let all: Vec<QuotedReply<'_>> = replies(text).take(16).collect();
    let sure = all.iter().find(|reply| reply.is_sure);
    let permanent = all.iter().find(|reply| reply.code >= 500);
    sure.or(permanent).or(all.first()).copied()
}

fn replies(text: &str) -> impl Iterator<Item = QuotedReply<'_>> {
    let bytes = text.as_bytes();
    let starts = (0..bytes.len()).filter(|at| is_code_at(bytes, *at));
    starts.map(|at| {
        let code = bytes[at..at + 3].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        let rest = paragraph(&text[at + 3..]);
        let rest = rest.trim_start_matches(['-', ':', ' ', '\'', ',']);
        let is_sure = find_enhanced(first_words(rest)).is_some_and(|code| code.subject != 0);
        QuotedReply { code, text: rest, is_sure }
    })
}

/// Whether a reply code begins at `at`: a separate word of three digits, the first 4 or 5, the second from 0 to 7.
fn is_code_at(bytes: &[u8], at: usize) -> bool {
    let Some(code) = bytes.get(at..at + 3) else { return false };
    let is_code =
        matches!(code[0], b'4' | b'5') && matches!(code[1], b'0'..=b'7') && code[2].is_ascii_digit();
    if !is_code {
        return false;
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let is_begun = match before {
        None => true,
        // `…/DOC-1369#550` is a URL.
        Some(b'#') => at < 2 || !bytes[at - 2].is_ascii_alphanumeric(),
        Some(before) => before.is_ascii_whitespace() || b"([<:'\";,|>".contains(&before),
    };
    let is_ended = match bytes.get(at + 3) {
        None => true,
        // The first digits of a telephone number are not a code.
        Some(b'-') => !bytes.get(at + 4..at + 6).is_some_and(|next| next.iter().all(u8::is_ascii_digit)),
        Some(after) => after.is_ascii_whitespace() || b":,)'\">".contains(after),
    };
    is_begun && is_ended
}

/// The text up to the next empty line.
fn paragraph(text: &str) -> &str {
    let ends = ["\n\n", "\r\n\r\n", "\n \n"].into_iter().filter_map(|end| text.find(end));
    &text[..ends.min().unwrap_or(text.len())]
}

fn first_words(text: &str) -> &str {
    &text[..text.floor_char_boundary(24)]
}

/// The first enhanced code in a text: `5.1.1`, also as `(#5.1.1)`, but not part of an address or a version.
pub(super) fn find_enhanced(text: &str) -> Option<EnhancedCode> {
    let bytes = text.as_bytes();
    let is_begun =
        |at: usize| at == 0 || bytes[at - 1].is_ascii_whitespace() || b"(#'\"[<:-".contains(&bytes[at - 1]);
    let starts = (0..bytes.len()).filter(|at| matches!(bytes[*at], b'4' | b'5') && is_begun(*at));
    starts.into_iter().find_map(|at| {
        let word = &text[at..];
        let end = word.find(|c: char| c != '.' && !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        EnhancedCode::parse(word[..end].trim_end_matches('.'))
    })
}

/// The first enhanced code after ` #`, as in `<mx.example.com #5.1.1>`: Exchange's status in the text for people.
pub(super) fn find_hash_marked(text: &str) -> Option<EnhancedCode> {
    text.match_indices(" #").find_map(|(at, _)| {
        let word = &text[at + 2..];
        let end = word.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(word.len());
        EnhancedCode::parse(&word[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::{find_enhanced, find_reply};

    #[track_caller]
    fn check(text: &str, code: u16, starts_with: &str) {
        let found = find_reply(text).expect("a reply");
        assert_eq!(found.code, code, "{text}");
        assert!(found.text.starts_with(starts_with), "{found:?}");
    }

    #[test]
    fn replies_are_found_in_sentences() {
        check("host mx.example.com[192.0.2.1] said: 550 5.1.1 No (in reply to RCPT)", 550, "5.1.1 No");
        check("#550 5.1.1 RESOLVER.ADR.RecipNotFound", 550, "5.1.1 RES");
        check("returned '550 5.7.1 no'", 550, "5.7.1 no");
        check("550-5.7.26 Unauthenticated\n550 5.7.26 mail", 550, "5.7.26 Un");
        check("421 first\n<<< 550 then", 550, "then");
        check("554 5.0.0 Service unavailable; 552 5.2.2 full", 552, "5.2.2 full");
        check("ERROR_CODE :550, ERROR_CODE :5.1.1 x", 550, "ERROR");
    }

    #[test]
    fn numbers_are_no_replies() {
        for text in [
            "192.0.2.550",
            "call 555-1234",
            "answer=550",
            "DOC-1369#550",
            "id 4550 5",
            "unable in 5500 s",
            "199 x",
        ] {
            assert_eq!(find_reply(text), None, "{text}");
        }
    }

    #[test]
    fn enhanced_codes_are_found_as_separate_words() {
        assert_eq!(find_enhanced("no mailbox (#5.1.1 - chkusr)").expect("one").to_string(), "5.1.1");
        assert_eq!(find_enhanced("x 5.2.2 <jo@example.com>... full").expect("one").to_string(), "5.2.2");
        for text in ["5.1.1.2", "v5.1.1", "4.8.5.36", "5.1", "15.1.112.19"] {
            assert_eq!(find_enhanced(text), None, "{text}");
        }
    }
}
