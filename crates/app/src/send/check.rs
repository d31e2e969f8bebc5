//! The From check: every address a message claims to be from must be on a domain that is verified for the
//! server. A sub-domain of a verified domain is not verified. Only `postroad dev` has callers that may use any address.

use postroad_mail::find_spelled_addresses;
use postroad_model::{DomainName, Limits, ServerId, mailbox::claimed_domain};
use postroad_store::{SendingDomain, StoreError};

use crate::{App, Caller, Refusal};

impl App {
    /// Refuses unless the domain of `mailbox` is verified. Looks only at the domain, so that it can answer before the
    /// syntax is checked.
    pub(super) async fn authorise_mailbox(&self, caller: &Caller, mailbox: &str) -> Result<(), Refusal> {
        if caller.any_from {
            return Ok(());
        }
        let domain = claimed_domain(mailbox).and_then(|domain| DomainName::parse(domain).ok());
        match domain {
            Some(domain) => self.authorise_domain(caller.server_id, domain).await,
            None => Err(Refusal::UnauthenticatedFromAddress),
        }
    }

    /// Refuses if encoded words or non-ASCII text in `mailbox` show an address whose domain is not verified. A plain
    /// ASCII name is not checked.
    pub(super) async fn authorise_name(&self, caller: &Caller, mailbox: &str) -> Result<(), Refusal> {
        // A longer text is not a mailbox; the syntax check reports it.
        if mailbox.len() > Limits::MAILBOX_BYTES_MAX {
            return Ok(());
        }
        for address in find_spelled_addresses(mailbox) {
            self.authorise_mailbox(caller, &address).await?;
        }
        Ok(())
    }

    async fn authorise_domain(&self, server_id: ServerId, domain: DomainName) -> Result<(), Refusal> {
        self.find_verified_domain(server_id, domain)
            .await?
            .map(drop)
            .ok_or(Refusal::UnauthenticatedFromAddress)
    }

    /// `None` unless the domain is verified for the server.
    pub(super) async fn find_verified_domain(
        &self,
        server_id: ServerId,
        domain: DomainName,
    ) -> Result<Option<SendingDomain>, StoreError> {
        let key = (server_id, domain);
        if let Some(domain) = self.inner.verified_domains.find(&key) {
            return Ok(Some(domain));
        }
        let start = self.inner.verified_domains.start_read();
        let found = self.inner.store.find_sending_domain(server_id, key.1.clone()).await?;
        if let Some(domain) = &found {
            self.inner.verified_domains.put(key, domain.clone(), start);
        }
        Ok(found)
    }
}
