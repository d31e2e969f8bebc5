//! The two things that a simulated reader does.

/// What a reader looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}
