//! The queue: claims, beginning to send, scheduled messages, listing, and changes to waiting messages.

mod admin;
mod backlogs;
mod begin;
mod claimed;
mod claims;
mod due_holds;
mod expiry;
mod holds;
mod listing;
mod release;
mod retried;
pub(crate) mod scheduled;
mod scheduled_changes;
pub(crate) mod waiting;

pub use admin::{Cancelled, WaitingFor};
pub use backlogs::Backlog;
pub use begin::{Begin, Begun};
pub use claimed::{ClaimSkips, Claimed};
pub use listing::{QueueEntry, QueueFilter, QueueStats, ServerQueue};
pub use retried::Retried;
pub use scheduled_changes::{Reschedule, ScheduleChange, ScheduleChanged, ScheduledOf, ScheduledPage};
