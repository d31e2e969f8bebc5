//! Progress of an attempt to connect. The schedule uses it to share connections between sites.

/// How far an attempt to connect has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum ConnectProgress {
    #[default]
    Nothing,
    /// An address is known and is being dialled.
    Dialling,
    /// A host has sent its first bytes.
    Greeting,
}

impl ConnectProgress {
    /// Raises the progress to `to`; it never goes back. Returns whether it changed.
    pub(super) fn raise(&mut self, to: Self) -> bool {
        let is_further = to > *self;
        *self = to.max(*self);
        is_further
    }
}
