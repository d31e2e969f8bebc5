//! Suppressions: addresses that a server sends no more mail to.

pub(crate) mod add;
pub(crate) mod last_suppressed;
pub(crate) mod lookup;
pub(crate) mod record;
mod remove;

pub use record::{AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter};
