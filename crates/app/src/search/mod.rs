//! Message search: the query language, pages of messages, and the task that maintains the index.

mod index_task;
mod messages;
mod query;
mod query_problem;
mod query_text;

pub use index_task::IndexTask;
pub use messages::SearchRequest;
pub(crate) use messages::parse_query;
pub use query::parse_status;
