//! Phases of stopping the relay; sessions watch them.

/// Running, or stage of stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// Messages in progress may finish.
    Stopping,
    /// The time to finish is over: all sessions are cut off.
    CuttingOff,
}
