//! Erasure of personal data: of one message, and of an address. Ids, statuses, codes and counters stay.
//!
//! On SQLite `Store::scrub` then overwrites what unused parts of the file still hold of the address. PostgreSQL keeps old
//! versions of rows until a vacuum reuses their room.

mod address;
mod event_data;
pub(crate) mod message;
mod scrub;

pub use message::{ERASED_ADDRESS, Erased};
