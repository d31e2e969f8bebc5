//! Checks of DNS records: what should be published, what is, and what to change.
//!
//! [`ExpectedRecords`] says what should be there, `look_up` asks the DNS, and `judge` is a pure function from the
//! answers to a [`RecordCheck`] for each record. Judging drives the asking: whatever `judge` misses is looked up, until
//! it misses nothing or a limit is reached.
//!
//! DNS trouble is never a verdict: a record whose answers did not come is `dns_error`.

mod expected;
mod record;
mod service;

pub use expected::{DkimRecord, ExpectedRecords};
pub use record::{Purpose, RecordCheck, RecordStatus, RecordType, Verdict};
pub use service::{SendingAddress, Service, ServiceConfig};
