//! Suppressions: addresses to which a server no longer sends.

pub(crate) mod add;
pub(crate) mod last_suppressed;
pub(crate) mod lookup;
pub(crate) mod record;
mod remove;

pub use record::{AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter};
