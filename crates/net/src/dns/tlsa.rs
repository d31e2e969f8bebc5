//! TLSA records of a mail host, if they are secured by DNSSEC (RFC 7672 2.2).

use std::time::Duration;

use hickory_resolver::proto::rr::{RData, RecordType};
use postroad_boxed_futures::boxed_futures;

use super::Dns;
use super::question::{LookupFailure, Outcome};

/// Maximum number of records of one host that are read.
const RECORDS_MAX: usize = 64;
/// Longer data is cut.
const DATA_BYTES_MAX: usize = 16 << 10;
const VALID_MIN: Duration = Duration::from_mins(1);
const VALID_MAX: Duration = Duration::from_hours(1);

/// One TLSA record (RFC 6698 2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsaRecord {
    pub usage: u8,
    pub selector: u8,
    pub matching: u8,
    pub data: Vec<u8>,
}

/// Requirements on the TLS of a host, secured by DNSSEC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostTlsa {
    /// No requirement: there are no records, or the names are not signed.
    Absent,
    /// At least one record. `base` is the name they are published under.
    Secure { base: String, records: Vec<TlsaRecord> },
    /// Unknown at the moment. The host must not be used: an attacker may be hiding its records.
    Unknown(String),
    /// Not looked up, or given up early, because too many look-ups wait for an answer.
    Busy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsaAnswer {
    pub tlsa: HostTlsa,
    /// Time for which the answer may be cached: from one minute to one hour.
    pub valid_for: Duration,
}

/// Result for one name.
enum TlsaLookup {
    Records(Vec<TlsaRecord>, Duration),
    Nothing(Duration),
    Failure(LookupFailure),
}

#[boxed_futures]
impl Dns {
    /// Looks up `_<port>._tcp.<host>`, if the host's addresses are secure (RFC 7672 2.2.2). For an alias, its target is
    /// looked up first.
    pub async fn tlsa(&self, host: &str, port: u16) -> TlsaAnswer {
        let (base, address_ttl) = match self.secure_base(host).await {
            Ok(Some(base)) => base,
            Ok(None) => return answer(HostTlsa::Absent, VALID_MAX),
            Err(LookupFailure::Busy) => return answer(HostTlsa::Busy, VALID_MIN),
            Err(failure) => return answer(HostTlsa::Unknown(failure.to_string()), VALID_MIN),
        };
        let mut valid_for = address_ttl;
        let names = [Some(base.as_str()).filter(|base| *base != host), Some(host)];
        for name in names.into_iter().flatten() {
            match self.records_at(name, port).await {
                TlsaLookup::Records(records, ttl) => {
                    let tlsa = HostTlsa::Secure { base: name.to_owned(), records };
                    return answer(tlsa, valid_for.min(ttl));
                }
                TlsaLookup::Nothing(ttl) => valid_for = valid_for.min(ttl),
                TlsaLookup::Failure(LookupFailure::Busy) => return answer(HostTlsa::Busy, VALID_MIN),
                TlsaLookup::Failure(failure) => {
                    return answer(HostTlsa::Unknown(failure.to_string()), VALID_MIN);
                }
            }
        }
        answer(HostTlsa::Absent, valid_for)
    }

    /// TLSA base domain (RFC 7672 2.2): the end of the host's aliases, if all answers with addresses are secure.
    async fn secure_base(&self, host: &str) -> Result<Option<(String, Duration)>, LookupFailure> {
        let families = if self.inner.ipv6 {
            let (v6, v4) = self.ask_both_families(host).await;
            vec![v6, v4]
        } else {
            vec![self.ask(host, RecordType::A).await]
        };
        let answers: Vec<_> = families.iter().flatten().collect();
        let Some(first) = answers.first() else {
            return find_failure(families).map_or(Ok(None), Err);
        };
        if !answers.iter().all(|answer| answer.is_secure) {
            return Ok(None);
        }
        let ttl = answers.iter().map(|answer| answer.ttl).min().unwrap_or(VALID_MIN);
        let base = first.owner.to_ascii();
        Ok(Some((base.trim_end_matches('.').to_owned(), ttl)))
    }

    async fn records_at(&self, name: &str, port: u16) -> TlsaLookup {
        match self.ask(&format!("_{port}._tcp.{name}"), RecordType::TLSA).await {
            Ok(answer) if answer.is_secure => {
                let records = answer.records.iter().take(RECORDS_MAX).filter_map(record_of).collect();
                TlsaLookup::Records(records, answer.ttl)
            }
            // Unsigned records do not count.
            Ok(answer) => TlsaLookup::Nothing(answer.ttl),
            Err(LookupFailure::NoSuchName | LookupFailure::NoData) => TlsaLookup::Nothing(VALID_MAX),
            Err(failure) => TlsaLookup::Failure(failure),
        }
    }
}

fn answer(tlsa: HostTlsa, valid_for: Duration) -> TlsaAnswer {
    TlsaAnswer { tlsa, valid_for: valid_for.clamp(VALID_MIN, VALID_MAX) }
}

/// A failure among answers without an address. `None` if the host simply has no address.
fn find_failure(families: Vec<Outcome>) -> Option<LookupFailure> {
    let is_failure =
        |failure: &LookupFailure| matches!(failure, LookupFailure::Temporary(_) | LookupFailure::Busy);
    families.into_iter().filter_map(Result::err).find(is_failure)
}

fn record_of(record: &RData) -> Option<TlsaRecord> {
    let RData::TLSA(tlsa) = record else { return None };
    let mut data = tlsa.cert_data.clone();
    // Truncated data matches nothing, but still counts as a record.
    data.truncate(DATA_BYTES_MAX);
    let (usage, selector, matching) = (tlsa.cert_usage.into(), tlsa.selector.into(), tlsa.matching.into());
    Some(TlsaRecord { usage, selector, matching, data })
}
