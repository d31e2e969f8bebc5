//! Checks of DNS records: what should be published, what is, and what to change.
//!
//! [`ExpectedRecords`] says what should be there, [`look_up`] asks the DNS, and [`judge`] is a pure function from the
//! answers to a [`RecordCheck`] for each record. Judging drives the asking: whatever `judge` misses is looked up, until
//! it misses nothing or a limit is reached.
//!
//! DNS trouble is never a verdict: a record whose answers did not come is `dns_error`.

mod absence;
mod alias;
mod answers;
mod chain;
mod dkim;
mod dmarc;
mod expected;
mod hosts;
mod installation;
mod judge;
mod look_up;
mod record;
mod reverse_name;
mod service;
mod service_facts;
mod spf;
mod text;
mod versioned_text;
mod zone;

pub use answers::{Answer, DnsAnswers};
pub use expected::{DkimRecord, ExpectedRecords};
pub use judge::judge;
pub use look_up::{check, look_up};
pub use postroad_net::dns::RecordData;
pub use record::{Purpose, RecordCheck, RecordStatus, RecordType, Verdict};
pub use service::{SendingAddress, Service, ServiceConfig};
pub use zone::zone_fragment;
