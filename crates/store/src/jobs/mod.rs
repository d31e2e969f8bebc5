//! Jobs: work on many messages of a server, done in steps by one node at a time, across restarts.

mod job;
mod store;

pub use job::{JobKind, JobPart, JobProblem, JobState, JobStep, MessageJob, NewJob};
