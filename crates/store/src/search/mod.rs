//! Message search: an index of tokens for each block of messages, built some time after the messages are accepted, and
//! searches page by page through the index.
//!
//! FTS5 and pg_trgm were rejected: neither index is keyed by server, so one server's search would walk the entries of
//! all others. FTS5 and pg_trgm also need every insert in the accepting transaction or a second copy of the texts. A
//! hosted PostgreSQL may lack the extension pg_trgm. Tokens are hashes, so no text is stored twice.

mod blocks;
mod build;
mod candidates;
mod filter;
mod find;
pub(crate) mod forget;
mod late;
mod locate;
mod merge;
mod messages;
mod plan;
mod postings;
mod remove;
mod statements;
mod tokens;

pub use blocks::BLOCKS_PER_MERGE;
pub use build::IndexProgress;
pub use filter::{FilterTerm, Matcher, Needle, SearchFilter};
pub use find::SearchPage;
pub use locate::MessageName;
pub use messages::SearchItem;
