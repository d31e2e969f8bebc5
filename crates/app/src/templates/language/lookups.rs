//! The variables that a template uses: their paths, positions and apparent kinds.

use std::ops::Range;

use super::problem::SourcePosition;

/// One step from the model to a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Segment {
    Name(String),
    /// Any entry of a list.
    Entry,
}

/// Kind of value that the use of a variable suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    Any,
    Number,
    Date,
    List,
    Map,
}

/// One use of a variable.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    /// Path from the model; `None` if the value is computed inside the template.
    pub(crate) path: Option<Vec<Segment>>,
    /// The variable as the source text writes it.
    pub(crate) text: String,
    pub(crate) position: SourcePosition,
    /// Line at which the tag of this use begins. minijinja reports this line for a failure.
    pub(crate) tag_line: usize,
    /// Offset in the lowered text at which that tag begins.
    pub(crate) tag_start: usize,
    /// Byte range of this use in the lowered text.
    pub(crate) range: Range<usize>,
    /// Whether the template handles an absent value, with `is defined` or `default`.
    pub(crate) is_optional: bool,
    pub(crate) hint: InputKind,
}
