//! The two actions of a simulated reader.

/// Link that a simulated reader opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}
