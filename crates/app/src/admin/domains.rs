//! Admin commands for sending domains (of a server, or of an account and all its servers), and for the installation's
//! host name.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainName, LimitedObject, Timestamp};
use postroad_store::{Domain, DomainOwner, DomainScope};
use serde_json::{Value, json};

use super::{AdminError, whole_list};
use crate::App;
use crate::accounts::{Requester, page};
use crate::domains::{DkimKeyRequest, DomainRefusal, DomainView, NamedOwner, RecordView, ReportPeriod};

/// Maximum number of domains that one list shows.
const LISTED_MAX: usize = 100_000;
/// Maximum number of domains of the same name that are read.
const SAME_NAME_MAX: usize = 100;

/// A domain as the operator names it: with its server or account, or by name alone if only one owner has a domain of
/// that name.
#[derive(Debug, Clone)]
pub struct NamedDomain {
    pub name: String,
    pub server: Option<String>,
    pub account: Option<String>,
}

#[boxed_futures]
impl App {
    pub async fn add_domain(&self, named: NamedDomain, key: DkimKeyRequest) -> Result<Value, AdminError> {
        let name = parse_name(&named.name)?;
        let owner = match (&named.server, &named.account) {
            (Some(server), None) => {
                NamedOwner { server: Some(self.find_server(server).await?.id), account: None }
            }
            (None, Some(account)) => {
                NamedOwner { server: None, account: Some(self.find_account_id(account).await?) }
            }
            _ => return Err(AdminError::refused("say whose domain it is: --server NAME or --account NAME")),
        };
        let by = Requester::command_line();
        let created = self.create_domain_as(&by, owner, name.as_str(), key, None).await;
        self.forget_setup();
        let view = created.map_err(|refusal| admin_error(refusal, &name))?.value;
        let account_id = view.domain.account_id;
        let mut answer = domain_json(view);
        self.add_ceiling_warning(&mut answer, account_id, LimitedObject::Domains).await;
        Ok(answer)
    }

    pub async fn show_domains(
        &self,
        server: Option<&str>,
        account: Option<&str>,
    ) -> Result<Value, AdminError> {
        let filter = match (server, account) {
            (Some(name_or_id), _) => DomainScope::UsableBy(self.find_server(name_or_id).await?.id),
            (None, Some(name_or_id)) => DomainScope::OfAccount(self.find_account_id(name_or_id).await?),
            (None, None) => DomainScope::All,
        };
        let found = self.inner.store.list_domains(filter.into(), None, LISTED_MAX + 1).await?;
        let domains = whole_list(page(found, LISTED_MAX), "domains", "domains/list")?;
        Ok(self.domain_views(domains).await.into_iter().map(domain_json).collect())
    }

    /// Sets whether a domain is verified, without a DNS check.
    pub async fn set_domain_verified(
        &self,
        named: &NamedDomain,
        verified: bool,
    ) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        let (by, owner) = (Requester::command_line(), owner_of(&domain));
        let changed = self.set_domain_verified_as(&by, owner, domain.name.as_str(), verified).await;
        Ok(domain_json(changed.map_err(|refusal| admin_error(refusal, &domain.name))?))
    }

    pub async fn domain_records(&self, named: &NamedDomain) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        Ok(domain_json(self.domain_view(domain).await))
    }

    pub async fn domain_zone_of(&self, named: &NamedDomain) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        Ok(json!({ "zone": self.domain_view(domain).await.zone() }))
    }

    pub async fn show_domain_reports(
        &self,
        named: &NamedDomain,
        period: ReportPeriod,
    ) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        let _permit = self.inner.long_reads.permit_for_operators().await;
        Ok(json!(self.sum_reports(domain, period).await?))
    }

    pub async fn rename_installation(&self, host: &str) -> Result<Value, AdminError> {
        let host = parse_name(host)?;
        self.set_installation_host(&host).await?;
        self.forget_setup();
        Ok(json!({ "host": host }))
    }

    pub async fn check_domain(&self, named: &NamedDomain) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        let (by, owner) = (Requester::command_line(), owner_of(&domain));
        let verified = self.verify_domain_as(&by, owner, domain.name.as_str()).await;
        self.forget_setup();
        verified.map(domain_json).map_err(|refusal| admin_error(refusal, &domain.name))
    }

    pub async fn remove_domain(&self, named: &NamedDomain) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        let (by, owner) = (Requester::command_line(), owner_of(&domain));
        let deleted = self.delete_domain_as(&by, owner, domain.name.as_str()).await;
        self.forget_setup();
        deleted.map_err(|refusal| admin_error(refusal, &domain.name))?;
        Ok(json!({ "name": domain.name, "deleted": true }))
    }

    pub async fn rotate_key_by_name(
        &self,
        named: &NamedDomain,
        key: DkimKeyRequest,
    ) -> Result<Value, AdminError> {
        let domain = self.named_domain(named).await?;
        let (by, owner) = (Requester::command_line(), owner_of(&domain));
        let rotated = self.rotate_dkim_as(&by, owner, domain.name.as_str(), key).await;
        self.forget_setup();
        rotated.map(domain_json).map_err(|refusal| admin_error(refusal, &domain.name))
    }

    pub(super) async fn named_domain(&self, named: &NamedDomain) -> Result<Domain, AdminError> {
        let name = parse_name(&named.name)?;
        let store = &self.inner.store;
        let mut domains = match (&named.server, &named.account) {
            (Some(name_or_id), _) => {
                let server_id = self.find_server(name_or_id).await?.id;
                store.find_domain(server_id, name.clone()).await?.into_iter().collect()
            }
            (None, Some(name_or_id)) => {
                let account_id = self.find_account_id(name_or_id).await?;
                store.find_account_domain(account_id, name.clone()).await?.into_iter().collect()
            }
            (None, None) => store.find_domains_named(name.clone(), SAME_NAME_MAX).await?,
        };
        match domains.len() {
            1 => Ok(domains.remove(0)),
            0 => Err(AdminError::refused(format!(
                "there is no domain `{name}`; `postroad admin domain create {name} --server NAME` adds it"
            ))),
            _ => Err(AdminError::refused(format!(
                "several servers or accounts have the domain `{name}`: add --server NAME or --account NAME"
            ))),
        }
    }

    pub(super) async fn find_account_id(&self, name_or_id: &str) -> Result<AccountId, AdminError> {
        Ok(self.find_account(name_or_id).await?.id)
    }
}

/// Names the owner of a domain, for operations that take a `NamedOwner`.
pub(super) fn owner_of(domain: &Domain) -> NamedOwner {
    match domain.owner() {
        DomainOwner::Server(id) => NamedOwner { server: Some(id), account: None },
        DomainOwner::Account(id) => NamedOwner { server: None, account: Some(id) },
    }
}

pub(super) fn parse_name(name: &str) -> Result<DomainName, AdminError> {
    DomainName::parse_entered(name).map_err(|e| AdminError::refused(format!("`{name}`: {e}")))
}

/// Turns a refusal into an error message for the operator.
pub(super) fn admin_error(refusal: DomainRefusal, name: &DomainName) -> AdminError {
    match refusal {
        DomainRefusal::Validation(problems) => {
            let texts: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            AdminError::refused(texts.join("; "))
        }
        DomainRefusal::Exists => AdminError::refused(format!("the domain `{name}` exists already")),
        DomainRefusal::NotFound => AdminError::refused(format!("there is no domain `{name}`")),
        DomainRefusal::Store(error) => error.into(),
        DomainRefusal::Account(refusal) => refusal.into(),
        other @ (DomainRefusal::TooMany { .. }
        | DomainRefusal::Busy
        | DomainRefusal::NotVerified
        | DomainRefusal::OfAccount) => AdminError::refused(other.to_string()),
    }
}

fn domain_json(view: DomainView) -> Value {
    let DomainView { domain, records, return_path, tracking_host } = view;
    let dkim: Vec<Value> = domain
        .keys
        .iter()
        .map(|key| {
            json!({
                "selector": key.selector,
                "algorithm": key.algorithm,
                "state": key.state,
                "created_at": key.created_at.to_rfc3339(),
            })
        })
        .collect();
    json!({
        "id": domain.id,
        "name": domain.name,
        "owner": if domain.server_id.is_some() { "server" } else { "account" },
        "account": domain.account_name,
        "server": domain.server_name,
        "verified": domain.is_verified(),
        "verified_by": domain.verified_by,
        "verified_at": domain.verified_at.map(Timestamp::to_rfc3339),
        "failing_since": domain.failing_since.map(Timestamp::to_rfc3339),
        "records": records.iter().map(record_json).collect::<Value>(),
        "dkim": dkim,
        "return_path": return_path,
        "tracking_host": tracking_host,
        "checked_at": domain.checked_at.map(Timestamp::to_rfc3339),
        "next_check_at": domain.next_check_at.to_rfc3339(),
        "created_at": domain.created_at.to_rfc3339(),
        "updated_at": domain.updated_at.to_rfc3339(),
    })
}

fn record_json(record: &RecordView) -> Value {
    let mut answer = json!(record.check);
    answer["since"] = record.since.map(Timestamp::to_rfc3339).into();
    answer
}
