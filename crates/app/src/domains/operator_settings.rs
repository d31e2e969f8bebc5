//! Settings of a domain that only the operator changes: tracking, and whether it is verified without a DNS check.

use postroad_boxed_futures::boxed_futures;
use postroad_model::DomainName;
use postroad_store::{AuditSubject, Domain, DomainTracking};

use super::view::DomainView;
use super::{DomainRefusal, NamedOwner};
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester};
use crate::{App, FieldProblem};

#[boxed_futures]
impl App {
    /// Sets whether a domain is verified, without a DNS check.
    pub async fn set_domain_verified_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        verified: bool,
    ) -> Result<DomainView, DomainRefusal> {
        let operation = Operation::DomainsSetVerified;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        self.set_verified_of(by, &domain, verified).await
    }

    async fn set_verified_of(
        &self,
        by: &Requester,
        domain: &Domain,
        verified: bool,
    ) -> Result<DomainView, DomainRefusal> {
        let verified_at = verified.then(|| self.inner.clock.now());
        let store = self.audited_store(by, Operation::DomainsSetVerified, AuditSubject::Domain(domain.id));
        store.set_domain_verified(domain.id, verified_at, self.links_until()).await?;
        self.forget_setup();
        let domain = self.inner.store.find_domain_by_id(domain.id).await?;
        Ok(self.domain_view(domain.ok_or(DomainRefusal::NotFound)?).await)
    }

    /// Sets whether opens and clicks of the domain's mail are tracked, and the host of tracked links.
    pub async fn set_domain_tracking_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        tracking: DomainTracking,
    ) -> Result<(), DomainRefusal> {
        let operation = Operation::DomainsSetTracking;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        let host = tracking.host.as_deref().filter(|host| !host.is_empty());
        let host = host.map(DomainName::parse).transpose().map_err(|error| {
            let message = format!("`host` is not a host name: {error}");
            DomainRefusal::Validation(vec![FieldProblem::new("/host", message)])
        })?;
        let host = host.map(|host| host.as_str().to_owned());
        self.set_tracking_of(by, &domain, DomainTracking { host, ..tracking }).await
    }

    /// Stores the settings; refuses this service's own name as host. `tracking.host` is a host name in DNS form.
    async fn set_tracking_of(
        &self,
        by: &Requester,
        domain: &Domain,
        tracking: DomainTracking,
    ) -> Result<(), DomainRefusal> {
        let own = self.inner.hostname.as_str();
        if tracking.host.as_deref() == Some(own) {
            let message = format!(
                "`{own}` is the name of this service itself: take one of the customer's, such as track.{}",
                domain.name
            );
            return Err(DomainRefusal::Validation(vec![FieldProblem::new("/host", message)]));
        }
        let store = self.audited_store(by, Operation::DomainsSetTracking, AuditSubject::Domain(domain.id));
        store.set_domain_tracking(domain.id, tracking, self.links_until()).await?;
        self.forget_setup();
        Ok(())
    }
}
