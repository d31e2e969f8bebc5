//! Rust source as words and punctuation, without comments, strings and test code.

use super::super::rust_text::{self, Kind};

/// Words, `::`, and single characters of everything else; code under `#[cfg(test)]` is left out.
pub(super) fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for piece in rust_text::split(source).iter().filter(|piece| piece.kind == Kind::Code) {
        let mut rest = piece.text.trim_start();
        while !rest.is_empty() {
            let length = match rest.find(|c: char| !c.is_alphanumeric() && c != '_') {
                Some(0) if rest.starts_with("::") => 2,
                Some(0) => rest.chars().next().map_or(1, char::len_utf8),
                Some(length) => length,
                None => rest.len(),
            };
            tokens.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
    }
    without_tests(&tokens)
}

fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            at += item_length(&tokens[at + 7..]) + 7;
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Number of tokens up to the `;` or the closing brace that ends the item.
fn item_length(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(*token, ";" | "}") {
            return index + 1;
        }
    }
    tokens.len()
}
