//! Changes of messages: of one, of a list, or of all that a search finds. The last kind is a job, which runs in the
//! background and continues after a restart.

mod action;
mod create;
mod erase;
mod job_task;

pub use action::{ActionFailure, MessageAction};
pub use create::{JobRefusal, StartedJob};
pub use job_task::JobTask;
