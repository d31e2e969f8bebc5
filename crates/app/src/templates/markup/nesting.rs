//! Checks that HTML is well nested. The parsers of `inline.rs` and `mjml.rs` recurse, or take unlimited time to repair
//! misnested HTML. So they only get HTML that needs no repair and is nested no deeper than in usual mails.
//!
//! HTML that parsers could interpret differently counts as misnested.

/// Number of elements in well-nested HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nesting {
    pub(super) elements: usize,
}

/// Maximum number of open elements.
const DEPTH_MAX: usize = 100;
/// Elements without an end tag.
const VOID_ELEMENTS: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
/// Elements whose content is parsed by special rules and that no mail needs.
const UNSUPPORTED_ELEMENTS: [&str; 16] = [
    "script",
    "plaintext",
    "xmp",
    "noembed",
    "noframes",
    "noscript",
    "iframe",
    "textarea",
    "svg",
    "math",
    "select",
    "frameset",
    "template",
    "object",
    "applet",
    "marquee",
];
/// Elements whose content is text.
const RAW_TEXT_ELEMENTS: [&str; 2] = ["style", "title"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Html,
    /// MJML: every element has an end tag or ends with `/>`, and there are no special parsing rules.
    Mjml,
}

/// Counts the elements. Fails with the offset of a tag that is misnested, not closed, nested too deeply, or unusual.
pub(super) fn check_nesting(text: &str, syntax: Syntax) -> Result<Nesting, usize> {
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut elements = 0;
    let mut rest = text;
    while let Some(found) = rest.find('<') {
        let at = text.len() - rest.len() + found;
        rest = &rest[found + 1..];
        let next = *rest.as_bytes().first().unwrap_or(&b' ');
        if next == b'!' {
            rest = skip_declaration(&rest[1..]).ok_or(at)?;
        } else if next == b'/' {
            let end = rest.find('>').ok_or(at)?;
            let name = rest[1..end].trim_end().to_ascii_lowercase();
            if !is_name(&name) || open.pop().is_none_or(|(opened, _)| opened != name) {
                return Err(at);
            }
            rest = &rest[end + 1..];
        } else if next.is_ascii_alphabetic() {
            let (name, is_closed, after) = read_tag(rest).ok_or(at)?;
            rest = after;
            elements += 1;
            if syntax == Syntax::Html && UNSUPPORTED_ELEMENTS.contains(&name.as_str()) {
                return Err(at);
            }
            let is_void = syntax == Syntax::Html && VOID_ELEMENTS.contains(&name.as_str());
            if is_void || (is_closed && syntax == Syntax::Mjml) {
                continue;
            }
            if syntax == Syntax::Html && RAW_TEXT_ELEMENTS.contains(&name.as_str()) {
                rest = skip_raw(rest, &name).ok_or(at)?;
                continue;
            }
            open.push((name, at));
            if open.len() > DEPTH_MAX {
                return Err(at);
            }
        } else if next == b'?' {
            return Err(at);
        }
    }
    match open.pop() {
        Some((_, at)) => Err(at),
        None => Ok(Nesting { elements }),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':'))
}

/// Skips a comment or document type; starts after `<!`.
fn skip_declaration(text: &str) -> Option<&str> {
    if let Some(comment) = text.strip_prefix("--") {
        // Browsers take `<!-->` and `<!--->` for complete comments.
        if comment.starts_with('>') || comment.starts_with("->") {
            return None;
        }
        let end = comment.find("-->")?;
        if comment[..end].contains("--!>") {
            return None;
        }
        return Some(&comment[end + 3..]);
    }
    let end = text.find('>')?;
    let is_doctype = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("doctype"));
    is_doctype.then(|| &text[end + 1..])
}

/// The text after the end of a `<style>` or `<title>` element.
fn skip_raw<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut from = 0;
    loop {
        let at = text[from..].find("</")? + from;
        let after = &text[at + 2..];
        if after.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name)) {
            let end = after.find('>')?;
            return (after[name.len()..end].trim().is_empty()).then(|| &after[end + 1..]);
        }
        from = at + 2;
    }
}

/// Parses a start tag from its name on. Returns the name, whether the tag ends with `/`, and the text after the tag.
fn read_tag(text: &str) -> Option<(String, bool, &str)> {
    let bytes = text.as_bytes();
    let name_end = bytes.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))?;
    let name = text[..name_end].to_ascii_lowercase();
    if !is_name(&name) {
        return None;
    }
    let mut at = name_end;
    let mut is_closed = false;
    loop {
        match bytes.get(at)? {
            b'>' => return Some((name, is_closed, &text[at + 1..])),
            b'/' => (is_closed, at) = (true, at + 1),
            byte if byte.is_ascii_whitespace() => at += 1,
            b'"' | b'\'' | b'=' | b'<' => return None,
            _ => {
                is_closed = false;
                at = read_attribute(bytes, at)?;
            }
        }
    }
}

/// Offset of an attribute's end.
fn read_attribute(bytes: &[u8], mut at: usize) -> Option<usize> {
    while !matches!(bytes.get(at)?, b'=' | b'/' | b'>') && !bytes[at].is_ascii_whitespace() {
        if matches!(bytes[at], b'"' | b'\'' | b'<') {
            return None;
        }
        at += 1;
    }
    let skip_space = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let equals = skip_space(at);
    if bytes.get(equals) != Some(&b'=') {
        return Some(at);
    }
    at = skip_space(equals + 1);
    match bytes.get(at)? {
        quote @ (b'"' | b'\'') => {
            let length = bytes[at + 1..].iter().position(|byte| byte == quote)?;
            Some(at + 1 + length + 1)
        }
        b'>' => None,
        _ => {
            while !matches!(bytes.get(at)?, b'>') && !bytes[at].is_ascii_whitespace() {
                if matches!(bytes[at], b'"' | b'\'' | b'<' | b'=' | b'`') {
                    return None;
                }
                at += 1;
            }
            Some(at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_elements_are_counted_and_misnested_or_unsupported_ones_refused() {
        let elements = |text: &str| check_nesting(text, Syntax::Html).ok().map(|nesting| nesting.elements);
        assert_eq!(
            elements(
                "<!DOCTYPE html><html><head><title>a < b</title><style>p > a { }</style></head><body class=x id='y'><p>x<br>y<img src=\"a>b\"/></p><!--[if mso]><p><![endif]--></body></html>"
            ),
            Some(8)
        );
        assert_eq!(elements("1 < 2 <p>x</p>"), Some(1));
        for odd in [
            "<p>",
            "</p>",
            "<b><i></b></i>",
            "<!--><b>-->",
            "<!---><b>-->",
            "<script></script>",
            "<p \"><b>\"></p>",
            "<p ='x'></p>",
            "<p a=b\"c></p>",
            "<![CDATA[x]]>",
            "<?xml?>",
            "<p",
            "<title>x",
        ] {
            assert_eq!(elements(odd), None, "{odd}");
        }
        assert_eq!(elements(&"<b>".repeat(50_000)), None);
        assert_eq!(
            check_nesting("<mjml><mj-body><mj-image src=\"x\" /></mj-body></mjml>", Syntax::Mjml),
            Ok(Nesting { elements: 3 })
        );
        assert_eq!(check_nesting("<mjml><mj-body><mj-text></mj-body></mjml>", Syntax::Mjml), Err(24));
        assert_eq!(check_nesting("<mjml><mj-body>", Syntax::Mjml), Err(6));
    }
}
