//! Adds a domain.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName};
use postroad_store::{AuditSubject, DomainOwner, KeyAlgorithm, NewDomain, StoreError};
use tokio::time::timeout;

use super::check::{ExpectedRecords, Purpose, check};
use super::view::{DomainView, StoredRecord};
use super::{DkimKeyRequest, DomainRefusal, dkim_keys};
use crate::access::Operation;
use crate::accounts::{Created, CreationKey, Requester};
use crate::{App, FieldProblem};

/// Timeout for looking up existing records. Without an answer, records are suggested as if none existed.
const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(5);

#[boxed_futures]
impl App {
    /// Adds a domain with its own RSA key, and an Ed25519 key if the request or the configuration wants one.
    pub(crate) async fn create_domain_of(
        &self,
        by: &Requester,
        owner: DomainOwner,
        name: DomainName,
        key: DkimKeyRequest,
        creation: Option<CreationKey>,
    ) -> Result<Created<DomainView>, DomainRefusal> {
        // Two servers of an account may use the same idempotency key for different domains.
        let creation = match owner {
            DomainOwner::Server(id) => creation.map(|key| key.of_server(id)),
            DomainOwner::Account(_) => creation,
        };
        // These checks come before the slow work: generating keys and DNS look-ups.
        let limits = &self.inner.domain_limits;
        let owned = self.inner.store.read_owner_domains(owner, name.clone(), limits.per_owner_max).await?;
        if let Some(earlier) = self.find_domain_created_before(owned.account_id, creation.as_ref()).await? {
            return Ok(earlier);
        }
        if owned.has_name {
            return Err(DomainRefusal::Exists);
        }
        if owned.count >= limits.per_owner_max {
            return Err(DomainRefusal::TooMany { domains_max: limits.per_owner_max });
        }
        let _permit = limits.begin_change(owned.account_id)?;
        let subject = AuditSubject::NewDomain(owner, name.clone());
        let is_verified = false;
        let new = self.new_domain(owner, name, key, is_verified).await?;
        let operation = Operation::DomainsCreate;
        let key = creation.as_ref().map(|key| (owned.account_id, key));
        let created = self.audited_store_for_creation(by, operation, subject, key).create_domain(new).await;
        // A concurrent call with the same idempotency key may have created the domain. Then the name exists, or the
        // ceiling is reached, because of that call.
        let is_refused = matches!(
            created,
            Err(StoreError::Conflict | StoreError::LimitReached | StoreError::CeilingReached { .. })
        );
        if is_refused
            && let Some(earlier) =
                self.find_domain_created_before(owned.account_id, creation.as_ref()).await?
        {
            return Ok(earlier);
        }
        let domain = created.map_err(|error| match error {
            StoreError::LimitReached => DomainRefusal::TooMany { domains_max: limits.per_owner_max },
            other => other.into(),
        })?;
        self.inner.verified_domains.clear();
        Ok(Created { value: self.domain_view(domain).await, is_replay: false })
    }

    /// The domain that an earlier call with the same idempotency key created.
    async fn find_domain_created_before(
        &self,
        account_id: AccountId,
        creation: Option<&CreationKey>,
    ) -> Result<Option<Created<DomainView>>, DomainRefusal> {
        let Some(id) = self.find_created_id(Some(account_id), creation).await? else { return Ok(None) };
        let domain =
            self.inner.store.find_domain_by_id(DomainId(id)).await?.ok_or(DomainRefusal::NotFound)?;
        Ok(Some(Created { value: self.domain_view(domain).await, is_replay: true }))
    }

    /// The domain to store. Unless `is_verified`, its current SPF and DMARC records are looked up, so that the
    /// suggested records replace them and nobody publishes a second one. DKIM keys and aliases are not looked up yet:
    /// resolvers would cache that these do not exist.
    pub(crate) async fn new_domain(
        &self,
        owner: DomainOwner,
        name: DomainName,
        key: DkimKeyRequest,
        is_verified: bool,
    ) -> Result<NewDomain, DomainRefusal> {
        let limits = &self.inner.domain_limits;
        let mut keys = vec![dkim_keys::import_or_generate(limits, &name, key).await?];
        if keys[0].algorithm == KeyAlgorithm::Ed25519 {
            // An Ed25519 key is used only in addition to RSA, which every receiver can verify.
            keys.insert(0, dkim_keys::generate_with_new_selector(limits, KeyAlgorithm::Rsa).await?);
        } else if self.inner.dkim_ed25519 {
            keys.push(dkim_keys::generate_with_new_selector(limits, KeyAlgorithm::Ed25519).await?);
        }
        let records = if is_verified { Vec::new() } else { self.look_up_existing(owner, &name).await };
        let next_check_at = self.inner.clock.now().plus(self.inner.check_intervals.shortest);
        Ok(NewDomain {
            owner,
            name,
            is_verified,
            keys,
            next_check_at,
            records: StoredRecord::to_json(&records),
            per_owner_max: limits.per_owner_max,
        })
    }

    async fn look_up_existing(&self, owner: DomainOwner, name: &DomainName) -> Vec<StoredRecord> {
        let Some(checker) = self.checker() else { return Vec::new() };
        let service = self.service_facts(owner).await;
        let mut expected = ExpectedRecords::of(name, &service, &[]);
        expected.retain_purposes(|purpose| matches!(purpose, Purpose::Spf | Purpose::Dmarc));
        let found = timeout(LOOK_UP_TIME_MAX, check(&checker.dns, &expected)).await.unwrap_or_default();
        let now = self.inner.clock.now();
        found.into_iter().map(|check| StoredRecord { check, since: now, link_host: None }).collect()
    }
}

pub(super) fn parse_name(text: &str) -> Result<DomainName, DomainRefusal> {
    let problem = |error| FieldProblem::new("/name", format!("`name`: {error}"));
    DomainName::parse_entered(text).map_err(|error| DomainRefusal::Validation(vec![problem(error)]))
}
