//! The delivery engine: everything that is queued reaches its destination, or the sender learns why not.

pub mod journal;
pub mod pacing;
pub mod providers;
pub mod signing;
