//! Checks of DNS records: which ones should be published, which ones are, and what to change.
//!
//! [`ExpectedRecords`] lists the records that should exist. [`judge`] is a pure function from DNS answers to a
//! [`RecordCheck`] for each record. [`look_up`] runs the same rules, asks the DNS for the answers that they lack, and
//! repeats this until none is lacking or a limit is reached.
//!
//! A DNS failure is never a verdict: a record whose look-up failed gets the status `dns_error`.

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
