//! Sending domains on the command line, and the DNS records they need (contract 8).

use postroad_mail::{DkimKey, dkim_txt};
use postroad_model::token::random_text;
use postroad_model::{DomainName, Timestamp};
use postroad_store::{Domain, DomainFilter, DomainOwner, KeyAlgorithm, NewDkimKey, NewDomain, StoreError};
use serde_json::{Value, json};

use super::{AdminError, taken};
use crate::App;

/// Domains that one list shows.
const LISTED_MAX: usize = 100_000;

impl App {
    pub(super) async fn create_domain(&self, name: &str, server: &str) -> Result<Value, AdminError> {
        let name = parse_name(name)?;
        let server = self.find_server(server).await?;
        let what = format!("the domain `{name}` on the server `{}`", server.name);
        let new = self.new_domain(DomainOwner::Server(server.id), name, false).await?;
        let domain = self.inner.store.create_domain(new).await.map_err(taken(what))?;
        Ok(self.shown(&domain))
    }

    pub(super) async fn list_domains(&self, server: Option<&str>) -> Result<Value, AdminError> {
        let filter = match server {
            Some(given) => DomainFilter::UsableBy(self.find_server(given).await?.id),
            None => DomainFilter::All,
        };
        let domains = self.inner.store.list_domains(filter, None, LISTED_MAX).await?;
        Ok(domains.iter().map(|domain| self.shown(domain)).collect())
    }

    /// The operator's word instead of a check of the DNS.
    pub(super) async fn set_domain_verified(
        &self,
        name: &str,
        server: Option<&str>,
        verified: bool,
    ) -> Result<Value, AdminError> {
        let domain = self.find_domain(name, server).await?;
        let verified_at = verified.then(|| self.inner.clock.now());
        self.inner.store.set_domain_verified(domain.id, verified_at).await?;
        let domain = self.inner.store.find_domain_by_id(domain.id).await?.ok_or(StoreError::NotFound)?;
        Ok(self.shown(&domain))
    }

    pub(super) async fn domain_records(&self, name: &str, server: Option<&str>) -> Result<Value, AdminError> {
        Ok(self.shown(&self.find_domain(name, server).await?))
    }

    pub(super) async fn find_domain(&self, name: &str, server: Option<&str>) -> Result<Domain, AdminError> {
        let name = parse_name(name)?;
        let mut domains = match server {
            Some(given) => {
                let server_id = self.find_server(given).await?.id;
                self.inner.store.find_domain(server_id, name.clone()).await?.into_iter().collect()
            }
            None => self.inner.store.find_domains_named(name.clone(), 2).await?,
        };
        match domains.len() {
            1 => Ok(domains.remove(0)),
            0 => Err(AdminError::refused(format!(
                "there is no domain `{name}`; `postroad admin domain create {name} --server NAME` adds it"
            ))),
            _ => Err(AdminError::refused(format!(
                "several servers have the domain `{name}`: add --server NAME"
            ))),
        }
    }

    fn shown(&self, domain: &Domain) -> Value {
        json!({
            "id": domain.id,
            "name": domain.name,
            "server": domain.server_name,
            "verified": domain.is_verified(),
            "verified_by": domain.verified_by,
            "verified_at": domain.verified_at.map(Timestamp::to_rfc3339),
            "records": self.records(domain),
            "created_at": domain.created_at.to_rfc3339(),
            "updated_at": domain.updated_at.to_rfc3339(),
        })
    }

    fn records(&self, domain: &Domain) -> Value {
        let (name, host) = (&domain.name, &self.inner.hostname);
        let record = |purpose: &str, kind: &str, at: String, value: String, required: bool, hint: &str| {
            json!({
                "purpose": purpose, "type": kind, "name": at, "value": value, "required": required,
                "status": "pending", "found": [], "hint": hint,
            })
        };
        let keys = domain.keys.iter().map(|key| {
            let is_rsa = key.algorithm == KeyAlgorithm::Rsa;
            let hint = if is_rsa {
                "Publish it as one TXT record; DNS services split long values by themselves"
            } else {
                "The second key (Ed25519); receivers that do not know it use the first"
            };
            let at = format!("{}._domainkey.{name}", key.selector);
            record("dkim", "TXT", at, dkim_txt(&key.public_spki), is_rsa, hint)
        });
        let mut records = vec![
            record(
                "spf",
                "TXT",
                name.to_string(),
                format!("v=spf1 include:spf.{host} ~all"),
                true,
                "If the domain has an SPF record already, add the include to it: there may be only one",
            ),
            record(
                "dmarc",
                "TXT",
                format!("_dmarc.{name}"),
                "v=DMARC1; p=none".to_owned(),
                true,
                "Any valid DMARC policy will do; start with p=none and tighten it later",
            ),
            record(
                "return_path",
                "CNAME",
                format!("rp.{name}"),
                format!("rp.{host}"),
                false,
                "Optional: aligns SPF and has bounces come to the domain's own name",
            ),
            record(
                "tracking",
                "CNAME",
                format!("track.{name}"),
                format!("track.{host}"),
                false,
                "Optional: links and pixels on the domain's own name",
            ),
        ];
        records.splice(1..1, keys);
        records.into()
    }
}

pub(super) fn parse_name(name: &str) -> Result<DomainName, AdminError> {
    DomainName::parse(name).map_err(|e| AdminError::refused(format!("`{name}`: {e}")))
}

impl App {
    /// A domain with DKIM keys of its own.
    pub(crate) async fn new_domain(
        &self,
        owner: DomainOwner,
        name: DomainName,
        is_verified: bool,
    ) -> Result<NewDomain, AdminError> {
        let mut keys = vec![new_key(KeyAlgorithm::Rsa).await?];
        if self.inner.dkim_ed25519 {
            keys.push(new_key(KeyAlgorithm::Ed25519).await?);
        }
        let next_check_at = self.inner.clock.now();
        Ok(NewDomain { owner, name, is_verified, keys, next_check_at })
    }
}

/// Making an RSA key takes a while, so it is done off the async threads.
async fn new_key(algorithm: KeyAlgorithm) -> Result<NewDkimKey, AdminError> {
    let generate = move || match algorithm {
        KeyAlgorithm::Rsa => DkimKey::generate(),
        KeyAlgorithm::Ed25519 => DkimKey::generate_ed25519(),
    };
    let key = tokio::task::spawn_blocking(generate)
        .await
        .map_err(|_| AdminError::refused("the service is stopping"))?
        .map_err(|e| AdminError::refused(format!("no DKIM key: {e}")))?;
    Ok(NewDkimKey {
        selector: format!("pr-{}", random_text(&mut rand::rng(), 8).to_ascii_lowercase()),
        algorithm,
        private_pkcs8: key.private_pkcs8_der().to_vec(),
        public_spki: key.public_spki_der().to_vec(),
    })
}
