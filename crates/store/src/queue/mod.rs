//! The queue: claims, beginning, scheduled messages, listing, and what operators do with waiting messages.

mod admin;
mod begin;
mod claimed;
mod claims;
mod expiry;
mod holds;
mod listing;
mod release;
mod retried;
pub(crate) mod scheduled;
mod scheduled_changes;
pub(crate) mod waiting;

pub use admin::{Cancelled, WaitingFor};
pub use begin::{Begin, Begun};
pub use claimed::Claimed;
pub use listing::{QueueEntry, QueueFilter, QueueStats, ServerQueue};
pub use retried::Retried;
pub use scheduled_changes::{ScheduleChange, ScheduleChanged, ScheduledOf, ScheduledPage};
