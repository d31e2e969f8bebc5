//! Erasure of personal data, of a message or an address. Ids, statuses, codes and counters stay.
//!
//! On SQLite `Store::scrub` then overwrites remains of the address in unused parts of the file. PostgreSQL keeps old
//! row versions until other rows reuse their space, or until `VACUUM FULL`.

mod address;
mod event_data;
pub(crate) mod message;
mod scrub;
mod searches;
mod spellings;
mod tags;

pub use message::{ERASED_ADDRESS, EraseResult};
