//! Sending domains on the command line, and the DNS records they need (contract 8).

use postroad_mail::{DkimKey, dkim_txt};
use postroad_model::token::random_text;
use postroad_model::{DomainName, ServerId, Timestamp};
use postroad_store::{Domain, Ed25519Key, NewDomain};
use serde_json::{Value, json};

use super::{AdminError, taken};
use crate::App;

impl App {
    pub(super) async fn create_domain(&self, name: &str, server: &str) -> Result<Value, AdminError> {
        let name = parse_name(name)?;
        let server = self.find_server(server).await?;
        let what = format!("the domain `{name}` on the server `{}`", server.name);
        let new = new_domain(server.id, name, None, self.inner.dkim_ed25519).await?;
        let domain = self.inner.store.create_domain(new).await.map_err(taken(what))?;
        Ok(self.shown(&domain))
    }

    pub(super) async fn list_domains(&self, server: Option<&str>) -> Result<Value, AdminError> {
        let server = match server {
            Some(given) => Some(self.find_server(given).await?.id),
            None => None,
        };
        Ok(self.inner.store.list_domains(server).await?.iter().map(|domain| self.shown(domain)).collect())
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
        Ok(self.shown(&Domain { verified_at, ..domain }))
    }

    pub(super) async fn domain_records(&self, name: &str, server: Option<&str>) -> Result<Value, AdminError> {
        Ok(self.shown(&self.find_domain(name, server).await?))
    }

    pub(super) async fn find_domain(&self, name: &str, server: Option<&str>) -> Result<Domain, AdminError> {
        let name = parse_name(name)?;
        let server_id = match server {
            Some(given) => Some(self.find_server(given).await?.id),
            None => None,
        };
        let mut domains = self.inner.store.list_domains(server_id).await?;
        domains.retain(|domain| domain.name == name);
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
            "verified": domain.verified_at.is_some(),
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
        let second = domain.dkim_ed25519.as_ref().map(|(selector, public_key)| {
            record(
                "dkim",
                "TXT",
                format!("{selector}._domainkey.{name}"),
                dkim_txt(public_key),
                false,
                "The second key (Ed25519); receivers that do not know it use the first",
            )
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
                "dkim",
                "TXT",
                format!("{}._domainkey.{name}", domain.dkim_selector),
                dkim_txt(&domain.dkim_public_key),
                true,
                "Publish it as one TXT record; DNS services split long values by themselves",
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
        records.extend(second);
        records.into()
    }
}

pub(super) fn parse_name(name: &str) -> Result<DomainName, AdminError> {
    DomainName::parse(name).map_err(|e| AdminError::refused(format!("`{name}`: {e}")))
}

/// A domain with a DKIM key of its own. Making the key takes a while, so it is done off the async threads.
pub(crate) async fn new_domain(
    server_id: ServerId,
    name: DomainName,
    verified_at: Option<Timestamp>,
    with_ed25519: bool,
) -> Result<NewDomain, AdminError> {
    let second = with_ed25519.then(DkimKey::generate_ed25519).transpose();
    let second = second.map_err(|e| AdminError::refused(format!("no DKIM key: {e}")))?;
    let key = tokio::task::spawn_blocking(DkimKey::generate)
        .await
        .map_err(|_| AdminError::refused("the service is stopping"))?
        .map_err(|e| AdminError::refused(format!("no DKIM key: {e}")))?;
    Ok(NewDomain {
        server_id,
        name,
        verified_at,
        dkim_selector: format!("pr-{}", random_text(&mut rand::rng(), 8).to_ascii_lowercase()),
        dkim_private_key: key.private_pkcs8_der().to_vec(),
        dkim_public_key: key.public_spki_der().to_vec(),
        dkim_ed25519: second.map(|key| Ed25519Key {
            selector: format!("pr-{}", random_text(&mut rand::rng(), 8).to_ascii_lowercase()),
            private_key: key.private_pkcs8_der().to_vec(),
            public_key: key.public_spki_der().to_vec(),
        }),
    })
}
