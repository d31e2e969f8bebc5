//! Splits Rust source into code, comments and string literals, so that a check can search one of these kinds. Knows
//! only as much of Rust's grammar as the splitting needs.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    Comment,
    Text,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    /// Number of the piece's first line in the source.
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// Splits source into pieces. Understands nested block comments, raw and byte strings, and quotes of characters or
/// lifetimes.
pub(super) fn split(source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut line, mut code_start, mut at) = (1, 0, 0);
    while at < source.len() {
        let rest = &source[at..];
        let found = match rest.as_bytes()[0] {
            b'/' if rest.starts_with("//") => Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len()))),
            b'/' if rest.starts_with("/*") => Some((Kind::Comment, block_comment_length(rest))),
            b'"' => Some((Kind::Text, string_length(rest))),
            b'r' if !ends_with_word(&source[code_start..at]) => {
                raw_string_length(rest).map(|length| (Kind::Text, length))
            }
            _ => None,
        };
        let Some((kind, length)) = found else {
            at += if rest.starts_with('\'') { quote_length(rest) } else { char_length(rest) };
            continue;
        };
        let (code, text) = (&source[code_start..at], &source[at..at + length]);
        for (kind, text) in [(Kind::Code, code), (kind, text)] {
            if !text.is_empty() {
                pieces.push(Piece { kind, line, text });
            }
            line += text.matches('\n').count();
        }
        at += length;
        code_start = at;
    }
    if code_start < source.len() {
        pieces.push(Piece { kind: Kind::Code, line, text: &source[code_start..] });
    }
    pieces
}

fn char_length(rest: &str) -> usize {
    rest.chars().next().map_or(1, char::len_utf8)
}

/// Whether the code ends with an identifier to which a following `r` belongs, as in `str"`. The prefixes `b` and `c` do
/// not count: `br"…"` is a raw string.
fn ends_with_word(code: &str) -> bool {
    let word = code.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    !matches!(word, "" | "b" | "c")
}

fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (index, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let body = rest[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or(rest.len(), |at| 2 + hashes + at + end.len()))
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest.as_bytes()[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.as_bytes()[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a character literal, so that `'"'` opens no string; 1 for a lifetime's quote.
fn quote_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((after, escaped))) => {
            let from = after + escaped.len_utf8();
            rest[from..].find('\'').map_or(1, |at| from + at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_cut_where_the_compiler_cuts_it() {
        let source = "let a = \"x // \\\" y\"; // c \"\n/* /* n */ */ b'\"' '\\'' <'a> r#\"raw \" text\"# br\"b\" for\"z\n\"";
        let found: Vec<(Kind, usize, &str)> = split(source)
            .iter()
            .filter(|piece| piece.kind != Kind::Code)
            .map(|piece| (piece.kind, piece.line, piece.text))
            .collect();
        assert_eq!(
            found,
            [
                (Kind::Text, 1, "\"x // \\\" y\""),
                (Kind::Comment, 1, "// c \""),
                (Kind::Comment, 2, "/* /* n */ */"),
                (Kind::Text, 2, "r#\"raw \" text\"#"),
                (Kind::Text, 2, "r\"b\""),
                (Kind::Text, 2, "\"z\n\""),
            ]
        );
        assert_eq!(split(source).iter().map(|piece| piece.text).collect::<String>(), source);
    }
}
