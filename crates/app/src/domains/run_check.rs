//! Checking a domain: look up, judge, record.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, Timestamp, WebhookUrl};
use postroad_net::dns::Dns;
use postroad_net::guarded_http::{GuardedHttp, PostFailure};
use postroad_store::{Domain, DomainCheck, KeyAlgorithm, KeyState, StoreError};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::check::{
    ExpectedRecords, Purpose, RecordCheck, RecordStatus, SendingAddress, Service, ServiceConfig, Verdict,
    check,
};
use super::permits::KeyedPermits;
use super::schedule::next_check_at;
use super::view::{DomainView, StoredRecord, dkim_records, record_name_of};
use super::{DomainRefusal, create};
use crate::{App, Caller};

/// Checks of one domain by hand are this far apart (contract 15).
const APART: Duration = Duration::from_secs(10);
/// Checks by hand at the same time, and those of one account.
const BY_HAND_MAX: usize = 32;
const BY_HAND_OF_ACCOUNT_MAX: usize = 4;
/// What the DNS says of this installation is remembered for this long.
const FACTS_KEPT: Duration = Duration::from_secs(30);
const FACTS_TIME_MAX: Duration = Duration::from_secs(5);

/// How the records of domains are looked up. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DomainChecker {
    /// Without a cache: whoever has just published a record wants to see it verified.
    pub(super) dns: Dns,
    /// Asks tracking hosts for their certificates; `None` where links do not lead to customers' names.
    http: Option<GuardedHttp>,
    /// Whether the bounce listener takes reports about domains.
    takes_reports: bool,
    facts: Arc<Mutex<Option<(Instant, Service)>>>,
    by_hand: Arc<KeyedPermits>,
}

impl DomainChecker {
    pub fn new(dns: Dns, http: Option<GuardedHttp>, takes_reports: bool) -> Self {
        let by_hand = KeyedPermits::new(BY_HAND_MAX, BY_HAND_OF_ACCOUNT_MAX);
        Self { dns, http, takes_reports, facts: Arc::default(), by_hand }
    }

    /// Whether the host answers over HTTPS with a certificate that is good for its name. `None` if that cannot be said.
    async fn answers(&self, host: &str) -> Option<bool> {
        let http = self.http.as_ref()?;
        let url = WebhookUrl::parse(&format!("https://{host}/")).ok()?;
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

    pub(super) fn checker(&self) -> Option<&DomainChecker> {
        self.inner.checker.get()
    }

    /// Checks a domain now and shows it; the last result if it was checked a moment ago.
    pub async fn verify_domain(&self, caller: &Caller, name: &str) -> Result<DomainView, DomainRefusal> {
        let name = create::parse_name(name)?;
        let found = self.inner.store.find_domain(caller.server_id, name).await?;
        self.verify(found.ok_or(DomainRefusal::NotFound)?).await
    }

    pub(crate) async fn verify(&self, domain: Domain) -> Result<DomainView, DomainRefusal> {
        let permit = self.checker().and_then(|checker| checker.by_hand.try_acquire(domain.account_id.0));
        if permit.is_none() || !self.inner.store.claim_domain_check(domain.id, APART).await? {
            return Ok(self.domain_view(domain).await);
        }
        self.run_check(domain.id).await?;
        let domain = self.inner.store.find_domain_by_id(domain.id).await?;
        Ok(self.domain_view(domain.ok_or(DomainRefusal::NotFound)?).await)
    }

    /// Looks up, judges and records. `NotFound` if the domain is gone meanwhile.
    pub(super) async fn run_check(&self, id: DomainId) -> Result<(), StoreError> {
        let Some(checker) = self.checker() else { return Ok(()) };
        let domain = self.inner.store.find_domain_by_id(id).await?.ok_or(StoreError::NotFound)?;
        let service = self.service_facts().await;
        let expected = ExpectedRecords::of(&domain.name, &service, &dkim_records(&domain.keys));
        let checks = check(&checker.dns, &expected).await;
        let alias = is_verified(&checks, Purpose::Tracking);
        let host = match alias {
            Some(true) => checker.answers(&format!("track.{}", domain.name)).await,
            other => other,
        };
        let outcome = outcome(&domain, checks, host, self.inner.clock.now());
        tracing::debug!(domain.id = %id, is_good = outcome.is_good, "domain checked");
        if self.inner.store.record_domain_check(outcome).await? {
            self.inner.verified.clear();
        }
        Ok(())
    }

    /// What records depend on; from the DNS, remembered for a moment.
    pub(crate) async fn service_facts(&self) -> Service {
        let (config, has_sources) = self.service_config().await;
        let Some(checker) = self.checker() else { return Service::without_dns(&config) };
        let known = checker.facts.lock().clone();
        if let Some((read_at, service)) = &known
            && read_at.elapsed() < FACTS_KEPT
        {
            return service.clone();
        }
        let found = if has_sources {
            timeout(FACTS_TIME_MAX, Service::look_up(&checker.dns, &config)).await.ok()
        } else {
            None
        };
        if let Some(service) = found.as_ref().filter(|service| service.unknown.is_none()) {
            *checker.facts.lock() = Some((Instant::now(), service.clone()));
            return service.clone();
        }
        // The last good facts serve on. Trouble is not remembered: the next check looks again.
        let reason = || "the installation's own addresses could not be found out".to_owned();
        let known = known.map(|(_, service)| service).or(found);
        known.unwrap_or_else(|| Service::unknown(&config, reason()))
    }

    /// Also whether the source addresses could be read.
    async fn service_config(&self) -> (ServiceConfig, bool) {
        let sources = self.inner.store.list_sources().await;
        let has_sources = sources.is_ok();
        let address =
            |source: postroad_store::Source| SendingAddress { address: source.address, helo: source.helo };
        let config = ServiceConfig {
            host: self.inner.hostname.clone(),
            sources: sources.unwrap_or_default().into_iter().map(address).collect(),
            takes_reports: self.checker().is_some_and(|checker| checker.takes_reports),
        };
        (config, has_sources)
    }
}

/// What a check found about the record of that purpose; `None` if the DNS gave no answer.
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

/// What is recorded of a check. `track_host`: whether the host for links may be used.
fn outcome(
    domain: &Domain,
    mut checks: Vec<RecordCheck>,
    track_host: Option<bool>,
    now: Timestamp,
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
    let key_verdict = |key: &postroad_store::DomainKey| {
        let status = status_of(&checks, &record_name_of(domain, key))?;
        verdict(status).map(|is_good| (key.id, is_good))
    };
    let keys = domain.keys.iter().filter_map(key_verdict).collect();
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
    DomainCheck {
        id: domain.id,
        records: StoredRecord::to_json(&records),
        told_records: serde_json::Value::from(told).to_string(),
        is_good,
        keys,
        has_return_path,
        has_track_alias,
        has_track_host: track_host,
        next_check_at: next_check_at(domain, is_good, now, &mut rand::rng()),
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
