//! Protects template tags from HTML parsers: each tag is replaced by a word or a comment, and restored afterwards. A
//! comment is allowed between table rows, where a parser would move text elsewhere.

use std::fmt::Write as _;

use minijinja::machinery::{Token, tokenize};

use super::html_state::HtmlState;
use crate::templates::language::{SourcePosition, syntax};

/// A piece of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// Template tags, template comments, and the white space that they remove.
    Tag(&'a str),
}

/// Splits a source text with valid syntax into texts and template tags.
pub(super) fn pieces(source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let begins_in_expression = false;
    for (token, span) in tokenize(source, begins_in_expression, syntax()).flatten() {
        let Token::TemplateData(text) = token else { continue };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        // If the text does not match the span, keep it together with the tags around it.
        if start < at || source.get(start..end) != Some(text) {
            continue;
        }
        if at < start {
            pieces.push(Piece::Tag(&source[at..start]));
        }
        pieces.push(Piece::Text(text));
        at = end;
    }
    if at < source.len() {
        pieces.push(Piece::Tag(&source[at..]));
    }
    pieces
}

/// A source text with its tags replaced.
#[derive(Debug)]
pub(super) struct ProtectedText<'a> {
    pub(super) text: String,
    tags: Vec<&'a str>,
    starts: Vec<PieceStart>,
}

/// Start of a piece, as offsets in the protected text and in the source.
#[derive(Debug)]
struct PieceStart {
    in_text: usize,
    in_source: usize,
    is_tag: bool,
}

/// Line and column of an offset in a source.
pub(super) fn position_of(source: &str, offset: usize) -> SourcePosition {
    let before = &source[..source.floor_char_boundary(offset)];
    let line_at = before.rfind('\n').map_or(0, |end| end + 1);
    SourcePosition { line: before.matches('\n').count() + 1, column: before[line_at..].chars().count() + 1 }
}

const TAG_WORD: &str = "postroadtag";

pub(super) fn protect(source: &str) -> ProtectedText<'_> {
    let mut text = String::with_capacity(source.len() + source.len() / 8);
    let (mut tags, mut starts) = (Vec::new(), Vec::new());
    let mut state = HtmlState::Text;
    let mut in_source = 0;
    for piece in pieces(source) {
        let is_tag = matches!(piece, Piece::Tag(_));
        starts.push(PieceStart { in_text: text.len(), in_source, is_tag });
        match piece {
            Piece::Text(data) => {
                in_source += data.len();
                text.push_str(data);
                state = state.advance(data, |_, _, _| {});
            }
            Piece::Tag(tag) => {
                in_source += tag.len();
                let number = tags.len();
                tags.push(tag);
                let written = match &state {
                    HtmlState::Text => write!(text, "<!--{TAG_WORD}{number}x-->"),
                    HtmlState::Tag(_) => write!(text, " {TAG_WORD}{number}x "),
                    _ => write!(text, "{TAG_WORD}{number}x"),
                };
                written.expect("writing to a String cannot fail");
            }
        }
    }
    ProtectedText { text, tags, starts }
}

impl ProtectedText<'_> {
    /// Maps an offset of the protected text to the source.
    pub(super) fn offset_in_source(&self, at: usize) -> usize {
        let starts_before = self.starts.partition_point(|start| start.in_text <= at);
        match starts_before.checked_sub(1).and_then(|last| self.starts.get(last)) {
            Some(start) if start.is_tag => start.in_source,
            Some(start) => start.in_source + (at - start.in_text),
            None => 0,
        }
    }

    /// Restores the tags in the converted text.
    pub(super) fn restore(&self, converted: &str) -> String {
        let mut out = String::with_capacity(converted.len() + converted.len() / 8);
        let mut rest = converted;
        while let Some(at) = rest.find(TAG_WORD) {
            let after = &rest[at + TAG_WORD.len()..];
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let tag = after[..digits].parse::<usize>().ok().and_then(|number| self.tags.get(number));
            let Some(tag) = tag.filter(|_| after[digits..].starts_with('x')) else {
                out.push_str(&rest[..at + TAG_WORD.len()]);
                rest = after;
                continue;
            };
            let after = &after[digits + 1..];
            let before = &rest[..at];
            // `protect` wrote the tag as a comment, as an attribute without a value, or as a word.
            if let (Some(before), Some(after)) = (before.strip_suffix("<!--"), after.strip_prefix("-->")) {
                out.push_str(before);
                rest = after;
            } else {
                out.push_str(before);
                rest = after.strip_prefix("=\"\"").unwrap_or(after);
            }
            out.push_str(tag);
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_tags_are_replaced_and_restored() {
        let source = "<style>p { color: {{ c }} }</style><table {% if a %}x=1{% endif %}>{% for r in rows %}\
                      <tr><td class=\"{{ r.c }} b\">{{ r.t|default(\"<\") }}</td></tr>{% endfor %}</table>{# note #}\n";
        let protected = protect(source);
        assert!(!protected.text.contains("{{") && !protected.text.contains("{%"), "{}", protected.text);
        assert!(protected.text.contains("<!--postroadtag3x--><tr>"), "{}", protected.text);
        for word in ["<table", "class=", "</table>"] {
            let at = protected.text.find(word).unwrap();
            assert_eq!(Some(protected.offset_in_source(at)), source.find(word), "{word}");
        }
        let restored = protected.restore(&protected.text);
        assert_eq!(
            restored.replace("  ", " ").replace(" {%", "{%").replace("%} ", "%}"),
            source.replace(" {%", "{%").replace("%} ", "%}")
        );
    }
}
