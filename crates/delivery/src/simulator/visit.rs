//! The two things that a simulated reader does.

/// Link that a simulated reader opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}
