//! Checks a domain: looks up its records, judges them and stores the result.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainKeyId, Timestamp};
use postroad_net::dns::Dns;
use postroad_net::guarded_http::GuardedHttp;
use postroad_store::{Domain, DomainCheck, DomainKey, KeyAlgorithm, KeyState, StoreError};
use serde_json::json;

use super::DomainRefusal;
use super::check::{ExpectedRecords, Purpose, RecordCheck, RecordStatus, Verdict, check};
use super::facts::FactsCache;
use super::link_host::LinkHostCheck;
use super::schedule::{CheckIntervals, Findings, next_check_at};
use super::view::{DomainView, StoredRecord, dkim_records, record_name_of};
use crate::App;

/// Minimum time from any check of a domain to the next manual check.
const MANUAL_CHECK_INTERVAL: Duration = Duration::from_secs(10);
const HTTPS_PORT: u16 = 443;

/// Clients and settings of domain checks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DomainChecker {
    /// DNS client without a cache of its own, so that a published record is seen soon.
    pub(super) dns: Dns,
    /// Checks the certificates of tracking hosts; `None` if links never use customers' host names.
    http: Option<GuardedHttp>,
    /// Whether the bounce listener accepts reports about domains.
    pub(super) takes_reports: bool,
    pub(super) facts: Arc<FactsCache>,
    tracking_port: u16,
}

impl DomainChecker {
    pub fn new(dns: Dns, http: Option<GuardedHttp>, takes_reports: bool) -> Self {
        Self { dns, http, takes_reports, facts: Arc::default(), tracking_port: HTTPS_PORT }
    }

    /// Sets the port of tracking hosts; the default is 443.
    #[must_use]
    pub fn with_tracking_port(self, tracking_port: u16) -> Self {
        Self { tracking_port, ..self }
    }

    /// Base URL of links on a customer's tracking host.
    pub(crate) fn tracking_base(&self, host: &str) -> String {
        match self.tracking_port {
            HTTPS_PORT => format!("https://{host}"),
            port => format!("https://{host}:{port}"),
        }
    }

    /// Sends a request to a customer's tracking host. `None` if the host cannot be checked.
    async fn request_tracking_host(&self, host: &str) -> Option<LinkHostCheck> {
        LinkHostCheck::request(self.http.as_ref()?, host, &self.tracking_base(host)).await
    }
}

#[boxed_futures]
impl App {
    /// Sets how domains are checked; called once when the process starts.
    pub fn set_domain_checker(&self, checker: DomainChecker) {
        // A second checker would use the same DNS: keep the first.
        let _ = self.inner.domain_checker.set(checker);
    }

    pub(crate) fn checker(&self) -> Option<&DomainChecker> {
        self.inner.domain_checker.get()
    }

    /// Time until a manual check may run again; zero if it may run now.
    pub fn verify_again_in(&self, domain: &Domain) -> Duration {
        let again = domain.checked_at.map(|checked_at| checked_at.plus(MANUAL_CHECK_INTERVAL));
        again.map_or(Duration::ZERO, |again| again.since(self.inner.clock.now()))
    }

    /// Checks a domain now, unless another check began only seconds ago; returns the domain with the last result.
    pub(crate) async fn verify(&self, domain: Domain) -> Result<DomainView, DomainRefusal> {
        if self.checker().is_none() {
            return Ok(self.domain_view(domain).await);
        }
        let _permit = self.inner.domain_limits.begin_check(domain.account_id)?;
        if !self.inner.store.claim_domain_check(domain.id, MANUAL_CHECK_INTERVAL).await? {
            return Ok(self.domain_view(domain).await);
        }
        self.run_check(domain.id).await?;
        let domain = self.inner.store.find_domain_by_id(domain.id).await?;
        Ok(self.domain_view(domain.ok_or(DomainRefusal::NotFound)?).await)
    }

    /// Looks up the domain's records, judges them and stores the result. `NotFound` if the domain was deleted
    /// meanwhile.
    pub(super) async fn run_check(&self, id: DomainId) -> Result<(), StoreError> {
        let Some(checker) = self.checker() else { return Ok(()) };
        let begun_at = self.inner.clock.now();
        let domain = self.inner.store.find_domain_by_id(id).await?.ok_or(StoreError::NotFound)?;
        let service = self.service_facts(domain.owner()).await;
        let expected = ExpectedRecords::of(&domain.name, &service, &dkim_records(&domain.keys));
        let mut checks = check(&checker.dns, &expected).await;
        let has_alias = is_verified(&checks, Purpose::Tracking);
        let host_check = match has_alias {
            Some(true) => checker.request_tracking_host(&format!("track.{}", domain.name)).await,
            _ => None,
        };
        if let Some(host_check) = &host_check {
            host_check.explain(&mut checks, &service.tracking_name());
        }
        let (intervals, now) = (self.inner.check_intervals, self.inner.clock.now());
        let outcome = outcome(&domain, checks, (has_alias, host_check), intervals, begun_at..now);
        tracing::debug!(domain.id = %id, is_good = outcome.is_good, "domain checked");
        if self.inner.store.record_domain_check(outcome).await? {
            self.inner.verified_domains.clear();
        }
        Ok(())
    }
}

/// Whether the record with this purpose is verified; `None` if there is no verdict on it.
fn is_verified(checks: &[RecordCheck], purpose: Purpose) -> Option<bool> {
    checks.iter().find(|check| check.purpose == purpose).and_then(|check| verdict(check.status))
}

fn verdict(status: RecordStatus) -> Option<bool> {
    match status {
        RecordStatus::Verified => Some(true),
        RecordStatus::Missing | RecordStatus::Mismatch | RecordStatus::Multiple => Some(false),
        RecordStatus::Pending | RecordStatus::DnsError => None,
    }
}

/// The outcome of a check, to be stored. `has_alias` says whether the domain's tracking host is an alias of ours;
/// `host_check` is the result of a request to that host.
fn outcome(
    domain: &Domain,
    mut checks: Vec<RecordCheck>,
    (has_alias, host_check): (Option<bool>, Option<LinkHostCheck>),
    intervals: CheckIntervals,
    Range { start: begun_at, end: now }: Range<Timestamp>,
) -> DomainCheck {
    // Whether links can use the tracking host: it is an alias of ours, and it answers over HTTPS.
    let has_track_host = match has_alias {
        Some(true) => host_check.as_ref().map(LinkHostCheck::is_good),
        other => other,
    };
    let status_of = |checks: &[RecordCheck], name: &str| {
        checks
            .iter()
            .find(|check| check.purpose == Purpose::Dkim && check.name == name)
            .map(|check| check.status)
    };
    // A pending key whose record is published becomes the signing key now. Only its record is required: the record of
    // the old key may already be gone.
    let successor = domain.keys.iter().find(|key| {
        (key.algorithm, key.state) == (KeyAlgorithm::Rsa, KeyState::Pending)
            && status_of(&checks, &record_name_of(domain, key)) == Some(RecordStatus::Verified)
    });
    if let Some(key) = successor {
        let name = record_name_of(domain, key);
        for check in checks.iter_mut().filter(|check| check.purpose == Purpose::Dkim) {
            check.required = check.name == name;
        }
    }
    let is_good = match Verdict::of(&checks) {
        Verdict::Verified => Some(true),
        Verdict::Failing => Some(false),
        Verdict::Unknown => None,
    };
    let key_verdict = |key: &DomainKey| {
        let status = status_of(&checks, &record_name_of(domain, key))?;
        verdict(status).map(|is_good| (key.id, is_good))
    };
    let keys: Vec<(DomainKeyId, bool)> = domain.keys.iter().filter_map(key_verdict).collect();
    let waits = |key: &&DomainKey| key.state == KeyState::Pending && !keys.contains(&(key.id, true));
    let key_waits_since = domain.keys.iter().filter(waits).map(|key| key.created_at).max();
    let are_all_verified = checks.iter().all(|check| check.status == RecordStatus::Verified);
    // Not complete while the tracking host fails: the host's certificate may take a little longer.
    let is_complete = are_all_verified && has_track_host != Some(false);
    let event_records: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "purpose": check.purpose,
                "name": check.name,
                "required": check.required,
                "status": check.status,
                "hint": check.hint,
            })
        })
        .collect();
    let before = StoredRecord::of(domain);
    let has_return_path = is_verified(&checks, Purpose::ReturnPath);
    let mut records: Vec<StoredRecord> =
        checks.into_iter().map(|check| stored_record(check, &before, now)).collect();
    if let Some(record) = records.iter_mut().find(|record| record.check.purpose == Purpose::Tracking) {
        record.link_host = host_check;
    }
    let host_fails_since = [(has_return_path, domain.return_path), (has_track_host, domain.track_host)]
        .into_iter()
        .filter(|(verdict, host_use)| *verdict == Some(false) && host_use.is_used())
        .map(|(_, host_use)| host_use.fails_since.unwrap_or(now))
        .max();
    let findings = Findings { is_good, is_complete, key_waits_since, host_fails_since };
    DomainCheck {
        id: domain.id,
        begun_at,
        records: StoredRecord::to_json(&records),
        event_records: serde_json::Value::from(event_records).to_string(),
        is_good,
        keys,
        has_return_path,
        has_track_alias: has_alias,
        has_track_host,
        next_check_at: next_check_at(domain, findings, intervals, now, &mut rand::rng()),
    }
}

/// The record to store; an unchanged status keeps its `since`.
fn stored_record(check: RecordCheck, before: &[StoredRecord], now: Timestamp) -> StoredRecord {
    let is_same = |known: &&StoredRecord| {
        (known.check.purpose, &known.check.name, known.check.status)
            == (check.purpose, &check.name, check.status)
    };
    let since = before.iter().find(is_same).map_or(now, |known| known.since);
    StoredRecord { check, since, link_host: None }
}
