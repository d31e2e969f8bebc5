//! Checking a domain: look up, judge, record.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, DomainKeyId, Timestamp, WebhookUrl};
use postroad_net::dns::Dns;
use postroad_net::guarded_http::{GuardedHttp, PostFailure};
use postroad_store::{Domain, DomainCheck, DomainKey, KeyAlgorithm, KeyState, StoreError};
use serde_json::json;

use super::DomainRefusal;
use super::check::{ExpectedRecords, Purpose, RecordCheck, RecordStatus, Verdict, check};
use super::facts::KnownFacts;
use super::schedule::{CheckIntervals, Findings, next_check_at};
use super::view::{DomainView, StoredRecord, dkim_records, record_name_of};
use crate::App;

/// Checks of one domain by hand are this far apart (contract 15).
const APART: Duration = Duration::from_secs(10);
const HTTPS_PORT: u16 = 443;

/// How the records of domains are looked up. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DomainChecker {
    /// Without a cache: whoever has just published a record wants to see it verified.
    pub(super) dns: Dns,
    /// Asks tracking hosts for their certificates; `None` where links do not lead to customers' names.
    http: Option<GuardedHttp>,
    /// Whether the bounce listener takes reports about domains.
    pub(super) takes_reports: bool,
    pub(super) facts: Arc<KnownFacts>,
    tracking_port: u16,
}

impl DomainChecker {
    pub fn new(dns: Dns, http: Option<GuardedHttp>, takes_reports: bool) -> Self {
        Self { dns, http, takes_reports, facts: Arc::default(), tracking_port: HTTPS_PORT }
    }

    /// Where tracking hosts answer, if it is not the port of HTTPS.
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

    /// Whether the host answers over HTTPS with a certificate that is good for its name. `None` if that cannot be said.
    async fn answers(&self, host: &str) -> Option<bool> {
        let http = self.http.as_ref()?;
        let url = WebhookUrl::parse(&format!("{}/", self.tracking_base(host))).ok()?;
        match http.reach(&url).await {
            Ok(status) => Some(status < 500),
            // Trouble of the DNS is no verdict.
            Err(PostFailure::Dns(_)) => None,
            Err(error) => {
                tracing::debug!(host, %error, "tracking host is not used");
                Some(false)
            }
        }
    }
}

#[boxed_futures]
impl App {
    /// How domains are checked. Said once, when the process starts.
    pub fn set_domain_checker(&self, checker: DomainChecker) {
        // A second one would ask the same DNS: the first stays.
        let _ = self.inner.checker.set(checker);
    }

    pub(crate) fn checker(&self) -> Option<&DomainChecker> {
        self.inner.checker.get()
    }

    /// How long until a domain is checked by hand again; zero if it is checked at once.
    pub fn verify_again_in(&self, domain: &Domain) -> Duration {
        let again = domain.checked_at.map(|checked_at| checked_at.plus(APART));
        again.map_or(Duration::ZERO, |again| again.since(self.inner.clock.now()))
    }

    pub(crate) async fn verify(&self, domain: Domain) -> Result<DomainView, DomainRefusal> {
        if self.checker().is_none() {
            return Ok(self.domain_view(domain).await);
        }
        let _permit = self.inner.domain_limits.begin_check(domain.account_id)?;
        if !self.inner.store.claim_domain_check(domain.id, APART).await? {
            return Ok(self.domain_view(domain).await);
        }
        self.run_check(domain.id).await?;
        let domain = self.inner.store.find_domain_by_id(domain.id).await?;
        Ok(self.domain_view(domain.ok_or(DomainRefusal::NotFound)?).await)
    }

    /// Looks up, judges and records. `NotFound` if the domain is gone meanwhile.
    pub(super) async fn run_check(&self, id: DomainId) -> Result<(), StoreError> {
        let Some(checker) = self.checker() else { return Ok(()) };
        let begun_at = self.inner.clock.now();
        let domain = self.inner.store.find_domain_by_id(id).await?.ok_or(StoreError::NotFound)?;
        let service = self.service_facts(domain.owner()).await;
        let expected = ExpectedRecords::of(&domain.name, &service, &dkim_records(&domain.keys));
        let checks = check(&checker.dns, &expected).await;
        let alias = is_verified(&checks, Purpose::Tracking);
        let host = match alias {
            Some(true) => checker.answers(&format!("track.{}", domain.name)).await,
            other => other,
        };
        let (intervals, now) = (self.inner.check_intervals, self.inner.clock.now());
        let outcome = outcome(&domain, checks, host, intervals, begun_at..now);
        tracing::debug!(domain.id = %id, is_good = outcome.is_good, "domain checked");
        if self.inner.store.record_domain_check(outcome).await? {
            self.inner.verified.clear();
        }
        Ok(())
    }
}

/// Result of a check for the record of that purpose; `None` if the DNS gave no answer.
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

/// The stored outcome of a check. `track_host`: whether the host for links may be used.
fn outcome(
    domain: &Domain,
    mut checks: Vec<RecordCheck>,
    track_host: Option<bool>,
    intervals: CheckIntervals,
    Range { start: begun_at, end: now }: Range<Timestamp>,
) -> DomainCheck {
    let status_of = |checks: &[RecordCheck], name: &str| {
        checks
            .iter()
            .find(|check| check.purpose == Purpose::Dkim && check.name == name)
            .map(|check| check.status)
    };
    // A key whose record is there takes over now: the record of the one before may be gone.
    let takes_over = domain.keys.iter().find(|key| {
        (key.algorithm, key.state) == (KeyAlgorithm::Rsa, KeyState::Pending)
            && status_of(&checks, &record_name_of(domain, key)) == Some(RecordStatus::Verified)
    });
    if let Some(key) = takes_over {
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
    let waiting_key = domain.keys.iter().filter(waits).map(|key| key.created_at).max();
    let are_verified = checks.iter().all(|check| check.status == RecordStatus::Verified);
    // The certificate of a new host for links may come a little later.
    let is_complete = are_verified && track_host != Some(false);
    let told: Vec<_> = checks
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
    let has_track_alias = is_verified(&checks, Purpose::Tracking);
    let records: Vec<StoredRecord> = checks.into_iter().map(|check| stored(check, &before, now)).collect();
    let failing_name = [(has_return_path, domain.return_path), (track_host, domain.track_host)]
        .into_iter()
        .filter(|(verdict, name)| *verdict == Some(false) && name.is_used())
        .map(|(_, name)| name.fails_since.unwrap_or(now))
        .max();
    let findings = Findings { is_good, is_complete, waiting_key, failing_name };
    DomainCheck {
        id: domain.id,
        begun_at,
        records: StoredRecord::to_json(&records),
        told_records: serde_json::Value::from(told).to_string(),
        is_good,
        keys,
        has_return_path,
        has_track_alias,
        has_track_host: track_host,
        next_check_at: next_check_at(domain, findings, intervals, now, &mut rand::rng()),
    }
}

/// A status that was there before is older than this check.
fn stored(check: RecordCheck, before: &[StoredRecord], now: Timestamp) -> StoredRecord {
    let is_same = |known: &&StoredRecord| {
        (known.check.purpose, &known.check.name, known.check.status)
            == (check.purpose, &check.name, check.status)
    };
    let since = before.iter().find(is_same).map_or(now, |known| known.since);
    StoredRecord { check, since }
}
