//! Checks a source text: limits, syntax, allowed constructs. Returns the text that minijinja compiles.

use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::lower::{LoweredTemplate, Lowering};
use super::problem::{LineIndex, SourcePosition};

/// Maximum number of tokens in one tag. A longer tag could nest so deeply that recursive code overflows its stack.
const TOKENS_PER_TAG_MAX: usize = 300;
/// Maximum number of `elif` branches in one text; each branch is nested in the preceding branch.
const ELIF_MAX: usize = 100;
/// Maximum number of tags in one text: each tag costs memory when the text is compiled.
const TAGS_MAX: usize = 10_000;

/// Parses a source text. Returns errors with their positions, in the order of the text. An exceeded limit is returned
/// alone, and so is a syntax error, because the rest of the text cannot be interpreted. Otherwise the constructs that
/// are not allowed are returned, up to a maximum number.
pub(crate) fn check(source: &str) -> Result<LoweredTemplate, Vec<(SourcePosition, String)>> {
    let lines = LineIndex::new(source);
    check_limits(source, &lines).map_err(|found| vec![found])?;
    let tree = parse(source, "template", syntax());
    let tree = tree.map_err(|error| vec![syntax_problem(&error, source, &lines)])?;
    let mut lowering = Lowering::new(source, &lines);
    if let Err(found) = lowering.statement(&tree) {
        lowering.record_problem(found);
    }
    lowering.finish()
}

/// Jinja's usual syntax, but the last line break of a text is kept.
pub(crate) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().keep_trailing_newline(true).build().expect("the usual delimiters are valid")
}

fn check_limits(source: &str, lines: &LineIndex<'_>) -> Result<(), (SourcePosition, String)> {
    let (mut tags, mut tokens, mut elifs, mut is_first_in_tag) = (0, 0, 0, false);
    let begins_in_expression = false;
    for token in tokenize(source, begins_in_expression, syntax()) {
        // The parser will report this error.
        let Ok((token, span)) = token else { return Ok(()) };
        let too_many = |items: &str, max: usize| {
            Err((lines.position(span.start_offset), format!("there are more than {max} {items}")))
        };
        match token {
            Token::VariableStart | Token::BlockStart => {
                (tags, tokens, is_first_in_tag) = (tags + 1, 0, true);
                if tags > TAGS_MAX {
                    return too_many("tags in one text", TAGS_MAX);
                }
                continue;
            }
            Token::Ident("elif") if is_first_in_tag => {
                elifs += 1;
                if elifs > ELIF_MAX {
                    return too_many("`elif` in one text", ELIF_MAX);
                }
            }
            _ => {}
        }
        (tokens, is_first_in_tag) = (tokens + 1, false);
        if tokens > TOKENS_PER_TAG_MAX {
            return too_many("words and signs in one tag", TOKENS_PER_TAG_MAX);
        }
    }
    Ok(())
}

fn syntax_problem(error: &minijinja::Error, source: &str, lines: &LineIndex<'_>) -> (SourcePosition, String) {
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let position = match error.range() {
        Some(range) => lines.position(range.start.min(source.len()) as u32),
        None => SourcePosition { line: error.line().unwrap_or(1), column: 1 },
    };
    (position, message)
}
