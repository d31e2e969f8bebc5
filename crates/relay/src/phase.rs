//! Stopping: sessions watch this phase.

/// How far the relay is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// Messages under way may finish.
    Stopping,
    /// Everything ends now.
    Gone,
}
