//! Why one text of a template could not be rendered.

use super::language::SourcePosition;

/// Why a text could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextFailure {
    VariableMissing { variable: String, position: SourcePosition, nearest: Option<String> },
    Failed { line: usize, message: String },
}
