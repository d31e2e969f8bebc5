//! The variables that a template reads: where, and what they seem to be.

use super::problem::Place;

/// One step from the model to a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Segment {
    Name(String),
    /// Any entry of a list.
    Entry,
}

/// Use of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    Any,
    Number,
    Date,
    List,
    Map,
}

/// One use of a variable.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    /// From the model on; `None` if it is made inside of the template.
    pub(crate) path: Option<Vec<Segment>>,
    /// As it is written.
    pub(crate) text: String,
    pub(crate) place: Place,
    /// The line where its tag begins: what minijinja says of a failure.
    pub(crate) tag_line: usize,
    /// Whether the template says what happens without it: `is defined`, `default`.
    pub(crate) is_optional: bool,
    pub(crate) hint: Hint,
}
