//! Records, failures and query counters of the DNS server.

use std::collections::{BTreeMap, HashMap};

use hickory_proto::op::{Query, ResponseCode};
use hickory_proto::rr::rdata::{NS, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use super::failure::Failure;

/// Maximum number of aliases followed in one answer; ends loops.
const ALIASES_MAX: usize = 12;
const TTL_SECS: u32 = 300;

#[derive(Debug)]
pub(super) struct Zone {
    pub(super) record_ttl_secs: u32,
    pub(super) negative_ttl_secs: u32,
    pub(super) is_validating: bool,
    pub(super) unsigned: Vec<Name>,
    records: BTreeMap<Name, Vec<Record>>,
    failures: HashMap<(Name, Option<RecordType>), Failure>,
    query_counts: HashMap<(Name, RecordType), QueryCounts>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct QueryCounts {
    pub(super) udp: usize,
    pub(super) tcp: usize,
}

/// Parts of a response that depend on the query.
#[derive(Debug)]
pub(super) struct DnsResponse {
    pub(super) code: ResponseCode,
    pub(super) answers: Vec<Record>,
    pub(super) authorities: Vec<Record>,
}

impl Default for Zone {
    fn default() -> Self {
        Self {
            record_ttl_secs: TTL_SECS,
            negative_ttl_secs: TTL_SECS,
            is_validating: false,
            unsigned: Vec::new(),
            records: BTreeMap::new(),
            failures: HashMap::new(),
            query_counts: HashMap::new(),
        }
    }
}

impl Zone {
    pub(super) fn add(&mut self, name: Name, data: RData) {
        let record = Record::from_rdata(name.clone(), self.record_ttl_secs, data);
        self.records.entry(name).or_default().push(record);
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.records.remove(name);
    }

    pub(super) fn fail(&mut self, name: Name, record_type: Option<RecordType>, failure: Failure) {
        self.failures.insert((name, record_type), failure);
    }

    pub(super) fn clear_failures(&mut self, name: &Name) {
        self.failures.retain(|(failing, _), _| failing != name);
    }

    pub(super) fn query_counts(&self, name: &Name, record_type: RecordType) -> QueryCounts {
        self.query_counts.get(&(name.clone(), record_type)).copied().unwrap_or_default()
    }

    /// Counter of the queries with this name and type.
    pub(super) fn counter(&mut self, question: &Query) -> &mut QueryCounts {
        self.query_counts.entry((question.name().clone(), question.query_type())).or_default()
    }

    /// Whether the server validates, and the names of the question and of all answers are signed.
    pub(super) fn is_secure(&self, question: &Query, reply: &DnsResponse) -> bool {
        let names = reply.answers.iter().map(|record| &record.name).chain([question.name()]);
        let is_signed = |name: &Name| !self.unsigned.iter().any(|unsigned| unsigned.zone_of(name));
        self.is_validating && names.into_iter().all(is_signed)
    }

    pub(super) fn failure(&self, question: &Query) -> Option<Failure> {
        let find_failure = |record_type| self.failures.get(&(question.name().clone(), record_type)).copied();
        find_failure(Some(question.query_type())).or_else(|| find_failure(None))
    }

    pub(super) fn reply(&self, question: &Query) -> DnsResponse {
        let mut answers = Vec::new();
        let mut name = question.name().clone();
        for _ in 0..ALIASES_MAX {
            let records = self.records_of(&name);
            let wanted = records.iter().filter(|record| record.record_type() == question.query_type());
            let count_before = answers.len();
            answers.extend(wanted.cloned());
            if answers.len() > count_before {
                return DnsResponse { code: ResponseCode::NoError, answers, authorities: Vec::new() };
            }
            let alias = records.iter().find_map(|record| match &record.data {
                RData::CNAME(target) => Some((record, target.0.clone())),
                _ => None,
            });
            let Some((record, target)) = alias else {
                let is_known = self.exists(&name) || !records.is_empty();
                let code = if is_known { ResponseCode::NoError } else { ResponseCode::NXDomain };
                return DnsResponse { code, answers, authorities: vec![self.soa()] };
            };
            answers.push(record.clone());
            name = target;
        }
        DnsResponse { code: ResponseCode::NoError, answers, authorities: Vec::new() }
    }

    /// Records of the name, or of the wildcard at its closest existing ancestor (RFC 4592).
    fn records_of(&self, name: &Name) -> Vec<Record> {
        if self.exists(name) {
            return self.records.get(name).cloned().unwrap_or_default();
        }
        let mut parent = name.base_name();
        while !parent.is_root() && !self.exists(&parent) {
            parent = parent.base_name();
        }
        let wildcard = parent.prepend_label("*").expect("a parent has room for a label");
        let mut records = self.records.get(&wildcard).cloned().unwrap_or_default();
        for record in &mut records {
            record.name = name.clone();
        }
        records
    }

    pub(super) fn referral() -> DnsResponse {
        let elsewhere = Name::from_ascii("ns.elsewhere.test.").expect("a constant that is a name");
        let ns = Record::from_rdata(Name::root(), TTL_SECS, RData::NS(NS(elsewhere)));
        DnsResponse { code: ResponseCode::NoError, answers: Vec::new(), authorities: vec![ns] }
    }

    /// Whether the name or a name below it has records (RFC 8020: an empty non-terminal exists).
    fn exists(&self, name: &Name) -> bool {
        // Names are in canonical order (RFC 4034 6.1): those below a name follow it.
        self.records.range(name..).next().is_some_and(|(known, _)| name.zone_of(known))
    }

    fn soa(&self) -> Record {
        let ttl = self.negative_ttl_secs;
        let soa = SOA::new(Name::root(), Name::root(), 1, 3_600, 600, 86_400, ttl);
        Record::from_rdata(Name::root(), ttl, RData::SOA(soa))
    }
}
