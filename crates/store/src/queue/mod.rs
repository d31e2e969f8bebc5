//! The queue: claims, beginning to send, scheduled messages, listing, and changes to waiting messages.

mod admin;
mod backlogs;
mod begin;
mod claimed_entry;
mod claims;
mod due_holds;
mod expiry;
mod holds;
mod listing;
mod release;
mod retry_result;
pub(crate) mod scheduled;
mod scheduled_changes;
pub(crate) mod waiting;

pub use admin::{CancelResult, WaitingFor};
pub use backlogs::Backlog;
pub use begin::{BeginRequest, BeginResult};
pub use claimed_entry::{ClaimSkips, ClaimedEntry};
pub use listing::{QueueEntry, QueueFilter, QueueStats, ServerQueue};
pub use retry_result::RetryResult;
pub use scheduled_changes::{Reschedule, ScheduleChange, ScheduleChangeResult, ScheduledOf, ScheduledPage};
