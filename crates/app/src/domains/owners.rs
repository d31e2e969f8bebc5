//! Operations on domains for any requester, who names the domain and its owner.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainId, DomainName, ServerId};
use postroad_store::{Domain, DomainFilter, DomainOwner, DomainScope};

use super::create::parse_name;
use super::view::DomainView;
use super::{DkimKeyRequest, DomainRefusal, DomainReports, ReportPeriod};
use crate::access::{Actor, Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Created, CreationKey, ObjectKind, Requester};
use crate::{App, Caller};

/// Owner of domains, as the requester names it. A server key can leave both fields out. An account key or a person
/// names a server, or else means the account itself. The operator names a server or an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedOwner {
    pub server: Option<ServerId>,
    pub account: Option<AccountId>,
}

/// Which of the owner's domains to list; `None` in a field matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainListFilter {
    pub name: Option<DomainName>,
    pub verified: Option<bool>,
}

impl From<&Caller> for NamedOwner {
    fn from(caller: &Caller) -> Self {
        Self { server: Some(caller.server_id), account: None }
    }
}

#[boxed_futures]
impl App {
    /// Adds a domain of the named owner.
    pub async fn create_domain_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        key: DkimKeyRequest,
        creation: Option<CreationKey>,
    ) -> Result<Created<DomainView>, DomainRefusal> {
        let owner = self.domain_owner(by, Operation::DomainsCreate, owner).await?;
        let name = parse_name(name)?;
        self.create_domain_of(by, owner, name, key, creation).await
    }

    pub async fn find_domain_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        operation: Operation,
    ) -> Result<DomainView, DomainRefusal> {
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        Ok(self.domain_view(domain).await)
    }

    /// Returns a page ordered by id, and whether there are more. For a server, lists its domains and those of its
    /// account; for an account, its own domains and those of its servers; for an operator who names neither, all.
    pub async fn list_domains_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        list_filter: DomainListFilter,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<(Vec<DomainView>, bool), DomainRefusal> {
        let scope = self.domain_scope(by, owner).await?;
        let filter = DomainFilter { scope, name: list_filter.name, verified: list_filter.verified };
        let mut found = self.inner.store.list_domains(filter, after, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((self.domain_views(found).await, has_more))
    }

    pub(super) async fn domain_scope(
        &self,
        by: &Requester,
        owner: NamedOwner,
    ) -> Result<DomainScope, DomainRefusal> {
        let operation = Operation::DomainsList;
        if owner.server.is_some() || matches!(by.actor, Actor::ServerKey { .. }) {
            return Ok(match self.domain_owner(by, operation, owner).await? {
                DomainOwner::Server(id) => DomainScope::UsableBy(id),
                DomainOwner::Account(id) => DomainScope::InAccount(id),
            });
        }
        let account = self.listed_account(by, operation, owner.account).await?;
        Ok(account.map_or(DomainScope::All, DomainScope::InAccount))
    }

    /// Checks a domain now and returns it. Returns the last result if another check began only seconds ago.
    pub async fn verify_domain_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
    ) -> Result<DomainView, DomainRefusal> {
        let domain = self.permitted_domain(by, Operation::DomainsVerify, owner, name).await?;
        self.verify(domain).await
    }

    pub async fn delete_domain_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
    ) -> Result<(), DomainRefusal> {
        let domain = self.changeable_domain(by, Operation::DomainsDelete, owner, name).await?;
        self.delete_domain_by_id(by, domain.id).await
    }

    /// Adds a DKIM key, which starts to sign once its record is found. Replaces a waiting key of the same algorithm.
    pub async fn rotate_dkim_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        key: DkimKeyRequest,
    ) -> Result<DomainView, DomainRefusal> {
        let domain = self.changeable_domain(by, Operation::DomainsRotateDkim, owner, name).await?;
        self.rotate_dkim_of(by, domain, key).await
    }

    /// Reports about a verified domain. An unverified domain may belong to anybody.
    pub async fn domain_reports_as(
        &self,
        by: &Requester,
        owner: NamedOwner,
        name: &str,
        period: ReportPeriod,
    ) -> Result<DomainReports, DomainRefusal> {
        let domain = self.permitted_domain(by, Operation::DomainsReports, owner, name).await?;
        if !domain.is_verified() {
            return Err(DomainRefusal::NotVerified);
        }
        let _permit = self.inner.long_reads.permit(domain.account_id).await;
        Ok(self.sum_reports(domain, period).await?)
    }

    /// The owner that the requester names. Somebody else's server or account is refused as if it did not exist.
    async fn domain_owner(
        &self,
        by: &Requester,
        operation: Operation,
        named: NamedOwner,
    ) -> Result<DomainOwner, DomainRefusal> {
        if let Actor::ServerKey { server_id, .. } = by.actor {
            return owner_for_server_key(by, operation, server_id, named);
        }
        let Some(id) = named.server else {
            return Ok(DomainOwner::Account(self.permitted_account_id(by, operation, named.account).await?));
        };
        let server = self.permitted_server(by, operation, id).await?;
        if named.account.is_some_and(|account| account != server.account_id) {
            return Err(AccountRefusal::NotFound(ObjectKind::Server).into());
        }
        Ok(DomainOwner::Server(id))
    }

    /// A domain of the named server or of its account, verified or not; or a domain of the named account itself.
    pub(super) async fn permitted_domain(
        &self,
        by: &Requester,
        operation: Operation,
        owner: NamedOwner,
        name: &str,
    ) -> Result<Domain, DomainRefusal> {
        let owner = self.domain_owner(by, operation, owner).await?;
        // An invalid name belongs to no domain.
        let name = parse_name(name).map_err(|_| DomainRefusal::NotFound)?;
        let found = match owner {
            DomainOwner::Server(id) => self.inner.store.find_domain(id, name).await?,
            DomainOwner::Account(id) => self.inner.store.find_account_domain(id, name).await?,
        };
        found.ok_or(DomainRefusal::NotFound)
    }

    /// Finds a domain to change. A requester who names a server can change only domains that belong to the server:
    /// other servers use the account's domains too.
    async fn changeable_domain(
        &self,
        by: &Requester,
        operation: Operation,
        owner: NamedOwner,
        name: &str,
    ) -> Result<Domain, DomainRefusal> {
        let names_server = owner.server.is_some() || matches!(by.actor, Actor::ServerKey { .. });
        let domain = self.permitted_domain(by, operation, owner, name).await?;
        if names_server && domain.server_id.is_none() { Err(DomainRefusal::OfAccount) } else { Ok(domain) }
    }
}

/// A server's key may name its own server, and no other owner.
fn owner_for_server_key(
    by: &Requester,
    operation: Operation,
    own: ServerId,
    named: NamedOwner,
) -> Result<DomainOwner, DomainRefusal> {
    // For a server key, `permit` compares only the id of the server, not its account.
    let account_id = AccountId(0);
    let server = Subject::Server { id: named.server.unwrap_or(own), account_id };
    permit(&by.actor, operation, server).map_err(AccountRefusal::from_denial_on(ObjectKind::Server))?;
    if named.account.is_some() {
        return Err(AccountRefusal::NotFound(ObjectKind::Account).into());
    }
    Ok(DomainOwner::Server(own))
}
