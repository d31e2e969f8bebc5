//! Errors in style sheets, with their positions. The inliner drops rules that it cannot parse, and mail programs ignore
//! everything after an unclosed brace or quote.

use std::ops::Range;

use super::html_state::HtmlState;
use super::protect::{position_of, protect};
use crate::templates::language::SourcePosition;

/// Finds the first comment, quote, `url(` or brace without its counterpart in the `<style>` and `<mj-style>` elements
/// of a source.
pub(crate) fn check_css(source: &str) -> Result<(), (SourcePosition, String)> {
    let protected = protect(source);
    for sheet in style_sheets(&protected.text) {
        let start = sheet.start;
        if let Err((at, problem)) = scan(&protected.text.as_bytes()[sheet]) {
            let position = position_of(source, protected.offset_in_source(start + at));
            return Err((position, format!("this is not valid CSS: {problem}")));
        }
    }
    Ok(())
}

/// Position of the first style sheet.
pub(crate) fn position_of_styles(source: &str) -> SourcePosition {
    let protected = protect(source);
    let start = style_sheets(&protected.text).first().map_or(0, |sheet| sheet.start);
    position_of(source, protected.offset_in_source(start))
}

fn style_sheets(text: &str) -> Vec<Range<usize>> {
    let mut sheets: Vec<Range<usize>> = Vec::new();
    HtmlState::Text.advance(text, |state, at, _| {
        if !matches!(state, HtmlState::Inside("style" | "mj-style")) {
            return;
        }
        match sheets.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => sheets.push(at..at + 1),
        }
    });
    sheets
}

/// Returns the offset of the first problem, and its description.
fn scan(sheet: &[u8]) -> Result<(), (usize, &'static str)> {
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(&byte) = sheet.get(at) {
        let rest = &sheet[at..];
        match byte {
            b'/' if rest.starts_with(b"/*") => {
                let end = rest[2..].windows(2).position(|two| two == b"*/");
                at += end.ok_or((at, "a comment does not end"))? + 3;
            }
            b'"' | b'\'' => {
                at += quoted_bytes(rest, byte).ok_or((at, "a quoted text does not end on its line"))?;
            }
            // An escaped character neither quotes nor opens or closes anything.
            b'\\' => at += 1,
            b'(' if is_bare_url(&sheet[..at], &rest[1..]) => {
                at += rest.iter().position(|byte| *byte == b')').ok_or((at, "`url(` does not end"))?;
            }
            b'{' => open.push(at),
            b'}' if open.pop().is_none() => return Err((at, "`}` without `{`")),
            _ => {}
        }
        at += 1;
    }
    open.pop().map_or(Ok(()), |at| Err((at, "`{` without `}`")))
}

/// Length of a quoted text without its closing quote; `None` if the text does not end on its line.
fn quoted_bytes(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'\n' => return None,
            b'\\' => at += 2,
            byte if *byte == quote => return Some(at),
            _ => at += 1,
        }
    }
}

/// Whether the `(` between `before` and `after` begins a `url(…)` without quotes around the URL: such a URL may contain
/// quotes.
fn is_bare_url(before: &[u8], after: &[u8]) -> bool {
    let is_url = before.len() >= 3 && before[before.len() - 3..].eq_ignore_ascii_case(b"url");
    is_url && !matches!(after.trim_ascii_start().first(), Some(b'"' | b'\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_css_is_reported_with_its_position() {
        for (source, line, column, words) in [
            ("<style>p { color: red }\n}</style>", 2, 1, "`}` without"),
            ("<style>p { color: red\n td { color: blue }</style>", 1, 10, "`{` without"),
            ("<p>{{ a }}</p>\n<style>.{{ name }} { font: 'Arial }</style>", 2, 28, "quoted text"),
            ("<style>/* a\n</style>", 1, 8, "comment"),
            ("<mj-style>a{b:c}}</mj-style>", 1, 17, "`}` without"),
        ] {
            let (position, message) = check_css(source).unwrap_err();
            assert_eq!((position.line, position.column), (line, column), "{source}: {message}");
            assert!(message.contains(words), "{source}: {message}");
        }
    }

    #[test]
    fn valid_styles_pass() {
        for source in [
            "<p>}</p><style>p { color: {{ colour }} } /* it's } */ .a\\{ { content: \"}\\\"\" }</style>",
            "<style>@media print { p { background: url(http://x/it's.png) } }</style>{ not css",
            "<style>p { background: url( \"a)b\" ) }{% if x %} td { color: red }{% endif %}</style>",
            "<!--[if mso]><style>}</style><![endif]-->",
        ] {
            assert!(check_css(source).is_ok(), "{source}: {:?}", check_css(source));
        }
    }
}
