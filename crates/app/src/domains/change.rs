//! Deletes domains, adds DKIM keys to them, and lists the records that `postroad dev` publishes.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, Timestamp};
use postroad_store::{AuditSubject, Domain, DomainKey, KeyState, StoreError};

use super::check::RecordCheck;
use super::create::parse_name;
use super::view::DomainView;
use super::{DkimKeyRequest, DomainRefusal, dkim_keys};
use crate::access::Operation;
use crate::accounts::Requester;
use crate::{App, FieldProblem};

/// How long links in sent mail keep working if no retention period limits how long mail is kept.
const LINK_LIFETIME_DEFAULT: Duration = Duration::from_hours(24 * 365 * 10);

#[boxed_futures]
impl App {
    /// The records of a domain with this name, whoever owns it; for the DNS server of `postroad dev`.
    pub async fn records_to_publish(&self, name: &str) -> Result<Vec<RecordCheck>, DomainRefusal> {
        let name = parse_name(name)?;
        let found = self.inner.store.find_domains_named(name, 1).await?.pop();
        let view = self.domain_view(found.ok_or(DomainRefusal::NotFound)?).await;
        Ok(view.records.into_iter().map(|record| record.check).collect())
    }

    /// Deletes a domain; the caller has checked the permission.
    pub(crate) async fn delete_domain_by_id(
        &self,
        by: &Requester,
        id: DomainId,
    ) -> Result<(), DomainRefusal> {
        let store = self.audited_store(by, Operation::DomainsDelete, AuditSubject::Domain(id));
        store.delete_domain(id, self.links_until()).await?;
        self.inner.verified_domains.clear();
        Ok(())
    }

    /// Time until which links in mail sent so far must keep working: as long as the mail itself is kept.
    pub(crate) fn links_until(&self) -> Timestamp {
        self.inner.clock.now().plus(self.inner.retention.messages.unwrap_or(LINK_LIFETIME_DEFAULT))
    }

    /// Adds a DKIM key to a domain; the caller has checked the permission.
    pub(crate) async fn rotate_dkim_of(
        &self,
        by: &Requester,
        domain: Domain,
        key: DkimKeyRequest,
    ) -> Result<DomainView, DomainRefusal> {
        let selector_taken = || {
            let message = "`selector` belongs to another key of the domain: choose another";
            DomainRefusal::Validation(vec![FieldProblem::new("/selector", message)])
        };
        let _permit = self.inner.domain_limits.begin_change(domain.account_id)?;
        let wanted = key.selector.as_deref().map(dkim_keys::normalise_selector);
        let is_taken =
            |known: &DomainKey| known.state != KeyState::Pending && Some(&known.selector) == wanted.as_ref();
        if domain.keys.iter().any(is_taken) {
            return Err(selector_taken());
        }
        let key = dkim_keys::import_or_generate(&self.inner.domain_limits, &domain.name, key).await?;
        let next_check_at = self.inner.clock.now().plus(self.inner.check_intervals.shortest);
        let store = self.audited_store(by, Operation::DomainsRotateDkim, AuditSubject::Domain(domain.id));
        let rotated = store.rotate_domain_key(domain.id, key, next_check_at).await;
        rotated.map_err(|error| match error {
            StoreError::Conflict => selector_taken(),
            other => other.into(),
        })?;
        let domain = self.inner.store.find_domain_by_id(domain.id).await?;
        Ok(self.domain_view(domain.ok_or(DomainRefusal::NotFound)?).await)
    }
}
