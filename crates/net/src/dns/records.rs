//! Records of a name as published, for checks of domains.

use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RData, RecordType};
use postroad_boxed_futures::boxed_futures;

use super::question::LookupFailure;
use super::{Dns, DnsSettings, DnsSetupError};

/// Maximum number of records of one name that are read.
const RECORDS_MAX: usize = 256;
/// Longer texts are cut: no policy or key is longer.
pub const TEXT_BYTES_MAX: usize = 4_096;
const CHECK_TIMEOUT_MAX: Duration = Duration::from_secs(3);
const CHECK_ATTEMPTS_MAX: usize = 2;

/// Content of one record. Names are lower case, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordData {
    Address(IpAddr),
    /// Target of CNAME, NS and PTR.
    Name(String),
    Mx {
        preference: u16,
        host: String,
    },
    /// Strings of one TXT record, joined (RFC 7208 3.3).
    Text(Vec<u8>),
}

#[boxed_futures]
impl Dns {
    /// Resolver for checks: caches no answers, so that a repaired record is seen at once, and has short
    /// timeouts, because somebody may be waiting.
    pub fn for_checks(settings: &DnsSettings) -> Result<Self, DnsSetupError> {
        Self::new(&DnsSettings {
            timeout: settings.timeout.min(CHECK_TIMEOUT_MAX),
            attempts: settings.attempts.min(CHECK_ATTEMPTS_MAX),
            cache_entries_max: 0,
            ..settings.clone()
        })
    }

    /// Returns 1 to 256 records. Follows aliases (CNAME), unless they are requested.
    pub async fn records(
        &self,
        name: &str,
        record_type: RecordType,
    ) -> Result<Vec<RecordData>, LookupFailure> {
        let answer = self.ask(name, record_type).await?;
        Ok(answer.records.iter().take(RECORDS_MAX).filter_map(data_of).collect())
    }
}

fn data_of(record: &RData) -> Option<RecordData> {
    Some(match record {
        RData::A(address) => RecordData::Address(IpAddr::V4(address.0)),
        RData::AAAA(address) => RecordData::Address(IpAddr::V6(address.0)),
        RData::CNAME(name) => RecordData::Name(text_of(&name.0)),
        RData::NS(name) => RecordData::Name(text_of(&name.0)),
        RData::PTR(name) => RecordData::Name(text_of(&name.0)),
        RData::MX(mx) => RecordData::Mx { preference: mx.preference, host: text_of(&mx.exchange) },
        RData::TXT(text) => {
            let mut text = text.txt_data.concat();
            text.truncate(TEXT_BYTES_MAX);
            RecordData::Text(text)
        }
        _ => return None,
    })
}

fn text_of(name: &Name) -> String {
    let mut text = name.to_lowercase().to_ascii();
    if text.ends_with('.') {
        text.pop();
    }
    text
}
