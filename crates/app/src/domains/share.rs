//! Links that show a domain's records without signing in, for the person who edits the DNS. They work until they expire
//! or are revoked. The secret part of a link is not stored.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainLinkId, Timestamp};
use postroad_store::{AuditSubject, DomainLink, NewDomainLink, StoreError};

use super::view::DomainView;
use super::{DomainRefusal, NamedOwner};
use crate::access::Operation;
use crate::accounts::Requester;
use crate::secrets::{hash, new_key};
use crate::{App, FieldProblem};

/// Lifetime of a link.
const LINK_LIFETIME: Duration = Duration::from_hours(14 * 24);
/// Maximum number of links of one domain that work at the same time.
const LINKS_MAX: usize = 20;
/// Tokens of links are shorter. Longer texts are refused without a look-up.
const TOKEN_BYTES_MAX: usize = 200;

/// A domain as a link shows it.
#[derive(Debug, Clone)]
pub struct SharedDomain {
    pub view: DomainView,
    pub expires_at: Timestamp,
}

#[boxed_futures]
impl App {
    /// Creates a link to the records of a domain; also returns its secret part.
    pub async fn share_domain(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
    ) -> Result<(String, DomainLink), DomainRefusal> {
        let operation = Operation::DomainsShare;
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        let token = new_key();
        let new = NewDomainLink {
            domain_id: domain.id,
            token_hash: hash(&token),
            expires_at: self.inner.clock.now().plus(LINK_LIFETIME),
        };
        let store = self.audited_store(by, operation, AuditSubject::NewDomainLink(hash(&token)));
        match store.create_domain_link(new, LINKS_MAX).await {
            Err(StoreError::LimitReached) => {
                let text = format!("`name` has {LINKS_MAX} links that work: revoke one first");
                Err(DomainRefusal::Validation(vec![FieldProblem::new("/name", text)]))
            }
            created => Ok((token, created?)),
        }
    }

    /// Links of a domain that work, the newest first.
    pub async fn list_domain_links(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
    ) -> Result<Vec<DomainLink>, DomainRefusal> {
        let domain = self.permitted_domain(by, Operation::DomainsLinks, owner, name).await?;
        Ok(self.inner.store.list_domain_links(domain.id, LINKS_MAX).await?)
    }

    /// Revokes a link, which stops working at once. `NotFound` if the domain has no such link.
    pub async fn unshare_domain(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        id: DomainLinkId,
    ) -> Result<(), DomainRefusal> {
        let operation = Operation::DomainsUnshare;
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        let store = self.audited_store(by, operation, AuditSubject::DomainLink(id));
        Ok(store.revoke_domain_link(domain.id, id).await?)
    }

    /// The domain that a link shows. `NotFound` if the link is unknown, revoked or expired, or the domain was deleted.
    pub async fn find_shared_domain(&self, token: &str) -> Result<SharedDomain, DomainRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(DomainRefusal::NotFound);
        }
        let found = self.inner.store.find_domain_link(hash(token)).await?;
        let (link, domain) = found.ok_or(DomainRefusal::NotFound)?;
        Ok(SharedDomain { view: self.domain_view(domain).await, expires_at: link.expires_at })
    }
}
