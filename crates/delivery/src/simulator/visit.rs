//! Actions of a simulated reader: opening a message or clicking a link.

/// Link that a simulated reader opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}
