//! A domain as its owner sees it.

use postroad_model::Timestamp;
use postroad_store::{Domain, DomainKey, DomainOwner, KeyAlgorithm, KeyState};
use serde::{Deserialize, Serialize};

use super::check::{DkimRecord, ExpectedRecords, Purpose, RecordCheck, Service, zone_fragment};
use super::link_host::LinkHostCheck;
use crate::App;

/// Maximum number of owners whose facts are kept while a list is built.
const OWNERS_KNOWN_MAX: usize = 100;

/// A record with the verdict of the last check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordView {
    pub check: RecordCheck,
    /// Time since which the record has this status; `None` before the first check.
    pub since: Option<Timestamp>,
    /// Result of the last request to the tracking host; only in the record of that host.
    pub link_host: Option<LinkHostCheck>,
}

/// A record as the last check stored it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRecord {
    #[serde(flatten)]
    pub(super) check: RecordCheck,
    pub(super) since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) link_host: Option<LinkHostCheck>,
}

impl StoredRecord {
    pub(super) fn to_json(records: &[Self]) -> String {
        serde_json::to_string(records).expect("records are texts, flags and lists of texts")
    }

    /// The records that the last check stored. Records in the format of another version are ignored; the next check
    /// writes them again.
    pub(super) fn of(domain: &Domain) -> Vec<Self> {
        serde_json::from_str(&domain.records).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub struct DomainView {
    pub domain: Domain,
    pub records: Vec<RecordView>,
    /// Current domain of the return path.
    pub return_path: String,
    /// Current host of tracking links.
    pub tracking_host: String,
}

impl DomainView {
    /// The records as a fragment of a zone file; records that are in place are comments.
    pub fn zone(&self) -> String {
        let checks: Vec<RecordCheck> = self.records.iter().map(|record| record.check.clone()).collect();
        zone_fragment(&checks)
    }
}

impl App {
    pub(crate) async fn domain_view(&self, domain: Domain) -> DomainView {
        let service = self.service_facts(domain.owner()).await;
        self.view_with(domain, &service)
    }

    pub(crate) async fn domain_views(&self, domains: Vec<Domain>) -> Vec<DomainView> {
        // Most lists have one or two owners.
        let mut known: Vec<(DomainOwner, Service)> = Vec::new();
        let mut views = Vec::with_capacity(domains.len());
        for domain in domains {
            let owner = domain.owner();
            let found = known
                .iter()
                .find(|(known_owner, _)| *known_owner == owner)
                .map(|(_, service)| service.clone());
            let service = if let Some(service) = found {
                service
            } else {
                let service = self.service_facts(owner).await;
                known.truncate(OWNERS_KNOWN_MAX - 1);
                known.push((owner, service.clone()));
                service
            };
            views.push(self.view_with(domain, &service));
        }
        views
    }

    pub(crate) fn view_with(&self, domain: Domain, service: &Service) -> DomainView {
        let (name, host) = (&domain.name, &service.host);
        let return_path =
            if domain.return_path.is_used() { format!("rp.{name}") } else { format!("rp.{host}") };
        let base = self.tracking_base();
        let base = base.split_once("://").map_or(base, |(_, rest)| rest);
        let tracking_host = match &domain.tracking.host {
            Some(host) => host.clone(),
            None if domain.track_host.is_used() => format!("track.{name}"),
            None => base.to_owned(),
        };
        DomainView { records: records(&domain, service), return_path, tracking_host, domain }
    }
}

/// Records to publish, each with the result of the last check.
fn records(domain: &Domain, service: &Service) -> Vec<RecordView> {
    let mut stored = StoredRecord::of(domain);
    let expected = ExpectedRecords::of(&domain.name, service, &dkim_records(&domain.keys));
    let view = |pending: RecordCheck| {
        let known = stored.iter().position(|known| {
            (known.check.purpose, &known.check.name) == (pending.purpose, &pending.name)
                && !(pending.purpose == Purpose::Dkim && is_unchecked(domain, &pending.name))
        });
        match known.map(|at| stored.swap_remove(at)) {
            Some(StoredRecord { check, since, link_host }) => RecordView {
                check: RecordCheck { required: pending.required, ..check },
                since: Some(since),
                link_host,
            },
            None => RecordView { check: pending, since: None, link_host: None },
        }
    };
    expected.pending().into_iter().map(view).collect()
}

/// Whether the key with this record was created after the last check, or nothing was checked yet.
fn is_unchecked(domain: &Domain, record_name: &str) -> bool {
    let has_record_name = |key: &&DomainKey| record_name_of(domain, key) == record_name;
    let key = domain.keys.iter().find(has_record_name);
    key.is_some_and(|key| domain.checked_at.is_none_or(|checked_at| checked_at < key.created_at))
}

pub(super) fn record_name_of(domain: &Domain, key: &DomainKey) -> String {
    format!("{}._domainkey.{}", key.selector, domain.name)
}

/// The DKIM records of the keys. Only the record of the signing RSA key is required; while no RSA key signs, the record
/// of the pending RSA key.
pub(super) fn dkim_records(keys: &[DomainKey]) -> Vec<DkimRecord> {
    let is_rsa = |key: &&DomainKey| key.algorithm == KeyAlgorithm::Rsa;
    let of_state = |state| keys.iter().filter(is_rsa).find(|key| key.state == state);
    let required = of_state(KeyState::Active).or_else(|| of_state(KeyState::Pending)).map(|key| key.id);
    let record = |key: &DomainKey| DkimRecord {
        selector: key.selector.clone(),
        public_spki_der: key.public_spki.clone(),
        required: Some(key.id) == required,
    };
    keys.iter().map(record).collect()
}
