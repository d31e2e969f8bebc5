//! `Content-Type` values that API users give for attachments (RFC 2045 5.1).

/// A valid value, taken apart but not changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ContentType<'a> {
    /// `type/subtype`
    pub(crate) essence: &'a str,
    /// Each `name=value` as it was written.
    pub(crate) parameters: Vec<&'a str>,
}

/// Longest value. A parameter is written on one line, so it must stay well below 998 bytes.
pub(crate) const CONTENT_TYPE_BYTES_MAX: usize = 512;

impl<'a> ContentType<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > CONTENT_TYPE_BYTES_MAX {
            return None;
        }
        let mut pieces = split_outside_quotes(text).into_iter();
        let essence = pieces.next()?;
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let parameters: Vec<&str> = pieces.collect();
        parameters.iter().all(|parameter| is_parameter(parameter)).then_some(Self { essence, parameters })
    }

    pub(crate) fn is_multipart(&self) -> bool {
        self.has_kind("multipart")
    }

    pub(crate) fn is_message(&self) -> bool {
        self.has_kind("message")
    }

    pub(crate) fn is_rfc822(&self) -> bool {
        self.essence.eq_ignore_ascii_case("message/rfc822")
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.essence.split('/').next().is_some_and(|own_kind| own_kind.eq_ignore_ascii_case(kind))
    }
}

/// The name of a parameter that `is_parameter` accepted.
pub(crate) fn parameter_name(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or(parameter)
}

/// The trimmed pieces between semicolons; an empty last piece (`text/plain;`) is left out.
fn split_outside_quotes(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                pieces.push(text[start..at].trim_matches([' ', '\t']));
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim_matches([' ', '\t']);
    if !last.is_empty() {
        pieces.push(last);
    }
    pieces
}

fn is_parameter(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=') else { return false };
    let is_quoted = |value: &str| {
        value.len() >= 2
            && value.starts_with('"')
            && value.ends_with('"')
            && value.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
            && has_no_bare_quote(&value[1..value.len() - 1])
    };
    is_token(name) && (is_token(value) || is_quoted(value))
}

fn has_no_bare_quote(content: &str) -> bool {
    let mut bytes = content.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'"' || (byte == b'\\' && bytes.next().is_none()) {
            return false;
        }
    }
    true
}

/// RFC 2045 5.1 `token`.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_kept_as_written() {
        let parsed = ContentType::parse("text/csv; charset=utf-8 ;header=\"a;b\\\"c\";").unwrap();
        assert_eq!(parsed.essence, "text/csv");
        assert_eq!(parsed.parameters, ["charset=utf-8", "header=\"a;b\\\"c\""]);
    }

    #[test]
    fn text_that_is_no_content_type_is_refused() {
        for bad in [
            "",
            "text",
            "text/",
            "/plain",
            "text/plain/x",
            "text/plain x",
            "text/plain; charset",
            "text/plain; =x",
            "text/plain; a=\"b",
            "text/plain; a=\"b\"c\"",
            "text/plain; a=\"b\\\"",
            "text/plain\r\nBcc: x@x.test",
            "text/plain; a=\"b\r\nBcc: x@x.test\"",
            "text/pläin",
            "text/plain; a=ä",
            "text/plain;; a=b",
        ] {
            assert_eq!(ContentType::parse(bad), None, "{bad:?}");
        }
    }
}
