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
    /// As it is written.
    pub(crate) text: String,
    pub(crate) position: SourcePosition,
    /// The line where its tag begins, which minijinja reports for a failure.
    pub(crate) tag_line: usize,
    /// Where its tag begins in the lowered text.
    pub(crate) tag_start: usize,
    /// Its bytes in the lowered text.
    pub(crate) range: Range<usize>,
    /// Whether the template handles its absence: `is defined`, `default`.
    pub(crate) is_optional: bool,
    pub(crate) hint: InputKind,
}
