//! Character references in an attribute's value (HTML standard 13.2.5.72), as far as URLs need them.

use std::borrow::Cow;

/// Names that are references even without a semicolon, except before a letter, a digit or `=`: in `?a=1&lt=2`, `&lt` is
/// plain text.
const LEGACY_REFERENCES: [(&str, char); 4] = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"')];

/// Names that occur in URLs. If another name with a semicolon occurs, `decode` gives up.
const NAMED_REFERENCES: [(&str, char); 31] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lbrack", '['),
    ("lsqb", '['),
    ("rbrack", ']'),
    ("rsqb", ']'),
    ("lowbar", '_'),
    ("hyphen", '\u{2010}'),
    ("nbsp", '\u{a0}'),
];

/// All names outside `LEGACY_REFERENCES` that browsers accept without a semicolon, sorted (HTML standard 13.5). In a
/// URL such a name is probably not meant as a reference.
const DOUBTFUL_NAMES: [&str; 102] = [
    "AElig", "AMP", "Aacute", "Acirc", "Agrave", "Aring", "Atilde", "Auml", "COPY", "Ccedil", "ETH",
    "Eacute", "Ecirc", "Egrave", "Euml", "GT", "Iacute", "Icirc", "Igrave", "Iuml", "LT", "Ntilde", "Oacute",
    "Ocirc", "Ograve", "Oslash", "Otilde", "Ouml", "QUOT", "REG", "THORN", "Uacute", "Ucirc", "Ugrave",
    "Uuml", "Yacute", "aacute", "acirc", "acute", "aelig", "agrave", "aring", "atilde", "auml", "brvbar",
    "ccedil", "cedil", "cent", "copy", "curren", "deg", "divide", "eacute", "ecirc", "egrave", "eth", "euml",
    "frac12", "frac14", "frac34", "iacute", "icirc", "iexcl", "igrave", "iquest", "iuml", "laquo", "macr",
    "micro", "middot", "nbsp", "not", "ntilde", "oacute", "ocirc", "ograve", "ordf", "ordm", "oslash",
    "otilde", "ouml", "para", "plusmn", "pound", "raquo", "reg", "sect", "shy", "sup1", "sup2", "sup3",
    "szlig", "thorn", "times", "uacute", "ucirc", "ugrave", "uml", "uuml", "yacute", "yen", "yuml",
];

/// Decodes references; `None` if a name is not in our tables or is doubtful, or if a number is that of a character that
/// browsers replace.
pub(super) fn decode(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains('&') {
        return Some(Cow::Borrowed(value));
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(&rest[1..])?;
        out.push(character);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The character at an `&` and the length of the reference, including the `&`.
fn reference(after: &str) -> Option<(char, usize)> {
    let bare = Some(('&', 1));
    if let Some(digits) = after.strip_prefix('#') {
        return numeric(digits);
    }
    let end = after.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(after.len());
    let (name, after_name) = after.split_at(end);
    if name.is_empty() {
        return bare;
    }
    if after_name.starts_with(';') {
        let (_, character) = NAMED_REFERENCES.iter().find(|(known, _)| *known == name)?;
        return Some((*character, name.len() + 2));
    }
    if after_name.starts_with('=') {
        return bare;
    }
    if let Some((_, character)) = LEGACY_REFERENCES.iter().find(|(known, _)| *known == name) {
        return Some((*character, name.len() + 1));
    }
    if DOUBTFUL_NAMES.binary_search(&name).is_ok() { None } else { bare }
}

fn numeric(digits: &str) -> Option<(char, usize)> {
    let (digits, radix, skipped) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 3),
        None => (digits, 10, 2),
    };
    let end = digits.bytes().position(|b| !char::from(b).is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        // `&#` and `&#x` alone are text.
        return Some(('&', 1));
    }
    let character = u32::from_str_radix(&digits[..end], radix).ok().and_then(char::from_u32)?;
    let semicolon = usize::from(digits[end..].starts_with(';'));
    // Code points that browsers replace (HTML standard 13.2.5.80).
    let is_plain = !matches!(character, '\0' | '\u{80}'..='\u{9f}');
    is_plain.then_some((character, skipped + end + semicolon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_browsers_read_them() {
        for (input, expected) in [
            ("a?b=1&amp;c=2", "a?b=1&c=2"),
            ("a?b=1&c=2", "a?b=1&c=2"),
            ("a?b=1&#38;c=2&#x26;d&#X26xe", "a?b=1&c=2&d&xe"),
            ("a?b=1&amp", "a?b=1&"),
            ("a?x=1&copy=2&amp=3", "a?x=1&copy=2&amp=3"),
            ("a?x=1&copyright&ampere", "a?x=1&copyright&ampere"),
            ("a&&b&", "a&&b&"),
            ("a&#;b&#x;", "a&#;b&#x;"),
            ("https&colon;&sol;&sol;x", "https://x"),
            ("&quot;&apos;&lt;", "\"'<"),
        ] {
            assert_eq!(decode(input).as_deref(), Some(expected), "{input}");
        }
    }

    #[test]
    fn unknown_and_doubtful_references_are_not_decoded() {
        for input in ["a&unknown;b", "a?x&copy&y", "a&copy;", "a&#0;", "a&#x110000;", "a&#150;"] {
            assert_eq!(decode(input), None, "{input}");
        }
    }

    #[test]
    fn every_name_without_a_semicolon_is_known() {
        assert!(DOUBTFUL_NAMES.is_sorted());
        // 106 names in the HTML standard.
        let legacy = LEGACY_REFERENCES.iter().filter(|(name, _)| !DOUBTFUL_NAMES.contains(name));
        assert_eq!(legacy.count() + DOUBTFUL_NAMES.len(), 106);
        for name in DOUBTFUL_NAMES {
            for input in [format!("?a&{name}"), format!("?a&{name}&b=1"), format!("?a&{name}_id=1")] {
                assert_eq!(decode(&input), None, "{input}");
            }
            for input in [format!("?a&{name}=1"), format!("?a&{name}x")] {
                assert_eq!(decode(&input).as_deref(), Some(input.as_str()));
            }
        }
    }
}
