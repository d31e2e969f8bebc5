//! One DNS look-up, shared by concurrent callers for the same sending server; distinguishes answers from failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use postroad_boxed_futures::boxed_futures;

use super::lookup_permits::{NoAnswer, QUICK_TIME};
use super::{Dns, Inner};
use crate::fair_permits::Tenant;

/// After this time the last known answer is used, if there is one (RFC 8767 5: 1.8 s).
const LAST_KNOWN_AFTER: Duration = Duration::from_millis(1_800);

/// Why there are no records. `NoSuchName` and `NoData` are answers; `Temporary` is a failure. `Busy`: no query was
/// sent, or its answer was not waited for long enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupFailure {
    #[error("the name does not exist")]
    NoSuchName,
    #[error("the name exists, but has no record of this type")]
    NoData,
    #[error("{0}")]
    Temporary(String),
    #[error("too many look-ups of names without an answer are waiting")]
    Busy,
}

/// At least one record, all of the requested type.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) records: Vec<RData>,
    pub(super) ttl: Duration,
    /// Owner of the records: the end of a chain of aliases.
    pub(super) owner: Name,
    /// Whether a trusted resolver has validated the answer by DNSSEC, with all aliases.
    pub(super) is_secure: bool,
}

pub(super) type Outcome = Result<Arc<Answer>, LookupFailure>;

#[boxed_futures]
impl Dns {
    /// TXT records of a name, each with its strings joined (RFC 7208 3.3).
    pub async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, LookupFailure> {
        let answer = self.ask(name, RecordType::TXT).await?;
        let texts = answer.records.iter().filter_map(|record| match record {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
        Ok(texts.collect())
    }

    pub(super) async fn ask(&self, name: &str, record_type: RecordType) -> Outcome {
        let Ok(mut name) = Name::from_ascii(name) else {
            return Err(LookupFailure::NoSuchName);
        };
        // Never use the system's search list: it could send mail to a neighbour with a similar name.
        name.set_fqdn(true);
        let name = name.to_lowercase();
        let (inner, tenant) = (Arc::clone(&self.inner), self.tenant);
        let question = (name.clone(), record_type);
        let lookup = self.inner.lookups.join((tenant, question.clone()), || async move {
            inner.look_up(name, record_type, tenant).await
        });
        let aborted = || LookupFailure::Temporary("the DNS lookup was aborted".to_owned());
        let lookup = async { lookup.await.unwrap_or_else(|| Err(aborted())) };
        let last_known = self.inner.last_known.as_ref().and_then(|known| known.find(&question));
        let Some(last_known) = last_known else { return lookup.await };
        match tokio::time::timeout(LAST_KNOWN_AFTER, lookup).await {
            Ok(outcome @ (Ok(_) | Err(LookupFailure::NoSuchName | LookupFailure::NoData))) => outcome,
            // The look-up continues for later callers if it has no answer yet.
            Ok(Err(LookupFailure::Temporary(_) | LookupFailure::Busy)) | Err(_) => last_known,
        }
    }
}

impl Inner {
    async fn look_up(&self, name: Name, record_type: RecordType, tenant: Tenant) -> Outcome {
        let temporary = |reason: String| {
            let name = name.to_ascii();
            LookupFailure::Temporary(format!(
                "{record_type} lookup of {}: {reason}",
                name.trim_end_matches('.')
            ))
        };
        let was_slow = AtomicBool::new(true);
        let lookup = || async {
            let begun = Instant::now();
            let outcome = match self.resolver.lookup(name.clone(), record_type).await {
                Ok(found) => {
                    let is_secure = self.trusts_ad && is_authentic(&found, &name);
                    answer_of(&found, record_type, is_secure)
                        .ok_or_else(|| temporary("malformed answer".to_owned()))
                }
                Err(NetError::Dns(DnsError::NoRecordsFound(absence))) => {
                    Err(self.meaning_of(&absence).await.unwrap_or_else(temporary))
                }
                Err(error) => Err(temporary(reason_of(&error))),
            };
            was_slow.store(begun.elapsed() >= QUICK_TIME, Ordering::Relaxed);
            outcome
        };
        let question = (name.clone(), record_type);
        let outcome =
            match self.lookup_permits.run_lookup(&question, tenant, self.lookup_timeout, lookup).await {
                Ok(outcome) => outcome,
                Err(NoAnswer::Late) => {
                    was_slow.store(true, Ordering::Relaxed);
                    Err(temporary(format!("no answer within {} s", self.lookup_timeout.as_secs_f32())))
                }
                Err(NoAnswer::Busy) => return Err(LookupFailure::Busy),
            };
        // A quick failure counts as answered: it delays no other look-up.
        let is_answered =
            !matches!(outcome, Err(LookupFailure::Temporary(_))) || !was_slow.load(Ordering::Relaxed);
        self.lookup_permits.note_result(&question, is_answered);
        if let Some(last_known) = &self.last_known {
            last_known.note(&question, &outcome);
        }
        outcome
    }

    /// Meaning of an empty answer; `Err` if it is a failure of the DNS instead.
    async fn meaning_of(&self, absence: &NoRecords) -> Result<LookupFailure, String> {
        match absence.response_code {
            ResponseCode::NXDomain => return Ok(LookupFailure::NoSuchName),
            ResponseCode::NoError if absence.soa.is_some() => return Ok(LookupFailure::NoData),
            ResponseCode::NoError => {}
            code => return Err(describe_code(code)),
        }
        // RFC 2308 2.2: an answer with NS records and without an SOA is a referral, not a denial.
        if absence.ns.is_some() {
            return Err("the name server referred to others".to_owned());
        }
        // hickory ends a loop of aliases with an empty answer. If the chain really ends, its last name is not an alias.
        let end = absence.query.name().clone();
        match self.resolver.lookup(end, RecordType::CNAME).await {
            Ok(found) if answer_of(&found, RecordType::CNAME, false).is_some() => {
                Err("too many aliases (CNAME), or a loop of them".to_owned())
            }
            Ok(_) | Err(NetError::Dns(DnsError::NoRecordsFound(_))) => Ok(LookupFailure::NoData),
            Err(error) => Err(reason_of(&error)),
        }
    }
}

/// Whether the AD bit covers the whole answer (RFC 6840 5.8). hickory follows the rest of a chain of aliases with
/// separate queries, whose bit says nothing about the earlier aliases.
fn is_authentic(found: &Lookup, name: &Name) -> bool {
    found.message().metadata.authentic_data && found.query().name() == name
}

fn answer_of(found: &Lookup, record_type: RecordType, is_secure: bool) -> Option<Arc<Answer>> {
    let wanted = || found.answers().iter().filter(|record| record.record_type() == record_type);
    // Aliases count too: the answer is valid for the shortest TTL in it.
    let ttl_secs = found.answers().iter().map(|record| record.ttl).min()?;
    let owner = wanted().next()?.name.to_lowercase();
    let records = wanted().map(|record| record.data.clone()).collect();
    Some(Arc::new(Answer { records, ttl: Duration::from_secs(u64::from(ttl_secs)), owner, is_secure }))
}

fn reason_of(error: &NetError) -> String {
    match error {
        NetError::Dns(DnsError::ResponseCode(code)) => describe_code(*code),
        NetError::Timeout => "the name server did not answer in time".to_owned(),
        NetError::NoConnections => "no name server could be reached".to_owned(),
        other => other.to_string(),
    }
}

fn describe_code(code: ResponseCode) -> String {
    match code {
        ResponseCode::ServFail => "the name server answered SERVFAIL".to_owned(),
        ResponseCode::Refused => "the name server answered REFUSED".to_owned(),
        other => format!("the name server answered \"{other}\""),
    }
}
