//! Converts header fields with non-ASCII bytes into encoded words (RFC 2047) at acceptance: not every mail server
//! offers SMTPUTF8, and without that extension such a field is invalid. Local parts of addresses stay as they are,
//! because they have no ASCII form.

use std::borrow::Cow;

use postroad_model::DomainName;

use crate::address_list::{AddressListProblem, Kind, Token, Tokens};
use crate::header_block::{Field, unfold};
use crate::header_line::{HeaderLine, clean_decoded};

/// Fields that contain addresses (RFC 5322 3.6.2, 3.6.3, 3.6.6 and similar).
const ADDRESS_FIELDS: [&str; 13] = [
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Bcc",
    "Resent-From",
    "Resent-Sender",
    "Resent-Reply-To",
    "Resent-To",
    "Resent-Cc",
    "Errors-To",
    "Disposition-Notification-To",
];

/// The field in 7 bits, except for local parts of addresses. A value that is not UTF-8 is decoded as ISO 8859-1.
pub(crate) fn encode_field(field: &Field<'_>) -> Vec<u8> {
    let name = String::from_utf8_lossy(field.name);
    let text = match std::str::from_utf8(field.value) {
        Ok(text) => unfold(text.into()),
        Err(_) => unfold(Cow::Owned(field.value.iter().map(|byte| char::from(*byte)).collect())),
    };
    let mut out = Vec::with_capacity(field.value.len() * 2);
    if ADDRESS_FIELDS.into_iter().any(|known| field.is(known)) {
        let mut line = HeaderLine::new(&mut out, &name);
        if write_addresses(&mut line, &text).is_ok() {
            line.finish();
            return out;
        }
        out.clear();
    }
    let mut line = HeaderLine::new(&mut out, &name);
    if field.is("Content-Type") || field.is("Content-Disposition") {
        write_parameters(&mut line, &text);
    } else {
        line.mixed_text(clean_decoded(&text).trim_matches(' '));
    }
    line.finish();
    out
}

/// Fails if the text is not a list of addresses; the line is then incomplete.
fn write_addresses(line: &mut HeaderLine<'_>, text: &str) -> Result<(), AddressListProblem> {
    let mut tokens = Tokens::new(text);
    // The words so far: a display name, or the local part of an address.
    let (mut name, mut last_word, mut word_count) = (String::new(), "", 0);
    while let Some(Token { kind, .. }) = tokens.next()? {
        match kind {
            Kind::Word(text) | Kind::Quoted(text) => {
                if !name.is_empty() {
                    name.push(' ');
                }
                (last_word, word_count) = (text, word_count + 1);
                push_unquoted(&mut name, text);
            }
            Kind::Comment(text) if text.is_ascii() => line.text(text),
            Kind::Comment(text) => {
                let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
                line.encoded_between("(", &clean_decoded(inner), ")");
            }
            Kind::Special(b'<') => {
                write_name(line, &mut name);
                let Some(Kind::Word(local) | Kind::Quoted(local)) = tokens.next()?.map(|token| token.kind)
                else {
                    return Err(AddressListProblem::Syntax);
                };
                expect(&mut tokens, b'@')?;
                let domain = next_domain(&mut tokens)?;
                expect(&mut tokens, b'>')?;
                line.atom(&format!("<{local}@{domain}>"));
            }
            // `Zoë Lee a@x.test` and `x@y@z` are not addresses: no part of them may be lost.
            Kind::Special(b'@') if word_count != 1 => return Err(AddressListProblem::Syntax),
            Kind::Special(b'@') => {
                name.clear();
                let domain = next_domain(&mut tokens)?;
                line.atom(&format!("{last_word}@{domain}"));
            }
            Kind::Special(special @ (b':' | b',' | b';')) => {
                word_count = 0;
                write_name(line, &mut name);
                line.glue(char::from(special).encode_utf8(&mut [0; 4]));
            }
            Kind::Special(_) => return Err(AddressListProblem::Syntax),
        }
    }
    write_name(line, &mut name);
    Ok(())
}

fn write_name(line: &mut HeaderLine<'_>, name: &mut String) {
    let text = clean_decoded(name);
    let text = text.trim_matches(' ');
    if !text.is_empty() {
        line.phrase(text);
    }
    name.clear();
}

fn push_unquoted(name: &mut String, text: &str) {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        None => name.push_str(text),
        Some(inner) => {
            let mut is_escaped = false;
            for c in inner.chars() {
                is_escaped = c == '\\' && !is_escaped;
                if !is_escaped {
                    name.push(c);
                }
            }
        }
    }
}

fn expect(tokens: &mut Tokens<'_>, special: u8) -> Result<(), AddressListProblem> {
    match tokens.next()? {
        Some(Token { kind: Kind::Special(found), .. }) if found == special => Ok(()),
        _ => Err(AddressListProblem::Syntax),
    }
}

/// The domain in its ASCII form, which every mail server accepts.
fn next_domain<'a>(tokens: &mut Tokens<'a>) -> Result<Cow<'a, str>, AddressListProblem> {
    match tokens.next()?.map(|token| token.kind) {
        Some(Kind::Word(text)) if text.is_ascii() => Ok(text.into()),
        Some(Kind::Word(text)) => match DomainName::parse(text) {
            Ok(domain) => Ok(domain.as_str().to_owned().into()),
            Err(_) => Err(AddressListProblem::Syntax),
        },
        _ => Err(AddressListProblem::Syntax),
    }
}

/// `type; name=value; …`. Non-ASCII values become encoded words between quotes, which mail programs accept although RFC
/// 2047 5 (3) forbids them.
fn write_parameters(line: &mut HeaderLine<'_>, text: &str) {
    let mut rest = Some(text);
    let mut is_first = true;
    while let Some(text) = rest {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_quoted => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                b';' if !is_quoted => return true,
                _ => {}
            }
            false
        });
        rest = end.map(|end| &text[end + 1..]);
        let piece = text[..end.unwrap_or(text.len())].trim_matches([' ', '\t']);
        if !std::mem::take(&mut is_first) {
            line.glue(";");
        }
        match piece.split_once('=') {
            Some((name, value)) if !value.is_ascii() && name.is_ascii() => {
                let mut plain = String::new();
                push_unquoted(&mut plain, value.trim_matches([' ', '\t']));
                line.encoded_between(&format!("{}=\"", name.trim_end()), &clean_decoded(&plain), "\"");
            }
            _ => match clean_decoded(piece).trim_matches(' ') {
                // Some parsers take a line of blanks for the end of the headers.
                "" => {}
                text => line.mixed_text(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header_block::HeaderBlock;

    fn encoded(field: &[u8]) -> String {
        let field = [field, b"\r\n"].concat();
        let field = HeaderBlock::new(&field).next().unwrap();
        String::from_utf8(encode_field(&field)).unwrap()
    }

    #[test]
    fn every_kind_of_field_is_put_into_encoded_words() {
        for (input, expected) in [
            ("Subject: Grüße aus Rom", "Subject: =?utf-8?B?R3LDvMOfZQ==?= aus Rom"),
            ("Subject: =?utf-8?q?a?= ü", "Subject: a =?utf-8?B?w7w=?="),
            ("X-Note: ü", "X-Note: =?utf-8?B?w7w=?="),
            ("From: Zoë <a@x.test>", "From: =?utf-8?Q?Zo=C3=AB?= <a@x.test>"),
            ("From: \"Lee, Zoë\" <a@x.test>", "From: =?utf-8?B?TGVlLCBab8Or?= <a@x.test>"),
            ("To: Ann <a@x.test>, Zoë <b@y.test>", "To: Ann <a@x.test>, =?utf-8?Q?Zo=C3=AB?= <b@y.test>"),
            ("To: a@bücher.test", "To: a@xn--bcher-kva.test"),
            ("To: <a@bücher.test>", "To: <a@xn--bcher-kva.test>"),
            ("Cc: Téam: a@x.test, b@y.test;", "Cc: =?utf-8?B?VMOpYW0=?=: a@x.test, b@y.test;"),
            ("To: a@x.test (Zoë)", "To: a@x.test (=?utf-8?Q?Zo=C3=AB?=)"),
            (
                "Content-Type: text/csv; name=\"ü.csv\"; x=y",
                "Content-Type: text/csv; name=\"=?utf-8?B?w7wuY3N2?=\"; x=y",
            ),
            (
                "Content-Disposition: attachment; filename=ü",
                "Content-Disposition: attachment;\r\n filename=\"=?utf-8?B?w7w=?=\"",
            ),
        ] {
            assert_eq!(encoded(input.as_bytes()), format!("{expected}\r\n"), "{input}");
        }
    }

    #[test]
    fn only_local_parts_stay_non_ascii() {
        assert_eq!(encoded("To: Zoë <zoë@x.test>".as_bytes()), "To: =?utf-8?Q?Zo=C3=AB?= <zoë@x.test>\r\n");
        // Not lists of addresses: they are encoded as text, and no word (here: `Lee`) is lost.
        for text in ["To: Zoë Lee a@x.test", "To: ü <q@q.test>, x@y@z"] {
            assert!(
                !encoded(text.as_bytes()).contains("=?= a@x") && encoded(text.as_bytes()).is_ascii(),
                "{text}"
            );
        }
        // Not a list of addresses, so there is none to keep.
        assert!(encoded("To: Zoë <zoë@x.test".as_bytes()).is_ascii());
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_read_as_latin_1() {
        assert_eq!(encoded(b"Subject: J\xfcrgen"), "Subject: =?utf-8?Q?J=C3=BCrgen?=\r\n");
        assert_eq!(encoded(b"From: J\xfcrgen <a@x.test>"), "From: =?utf-8?Q?J=C3=BCrgen?= <a@x.test>\r\n");
    }

    #[test]
    fn long_fields_are_folded() {
        let text = encoded(format!("Subject: {}", "Grüße ".repeat(200)).as_bytes());
        assert!(text.split("\r\n").all(|line| line.len() <= 76), "{text}");
    }
}
