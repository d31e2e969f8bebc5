//! Why one text of a template could not be rendered.

use super::language::Place;

/// Why a text could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextFailure {
    Missing { variable: String, place: Place, nearest: Option<String> },
    Failed { line: usize, message: String },
}
