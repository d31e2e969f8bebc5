//! Rendering error of one text, before its part (subject, body) is known; `RenderFailure` adds the part.

use super::language::SourcePosition;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextFailure {
    VariableMissing { variable: String, position: SourcePosition, nearest: Option<String> },
    Failed { line: usize, message: String },
}
