//! Actions of a simulated reader: opening a message or clicking a link.

/// Whether a simulated reader fetches the pixel or follows the first link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}
