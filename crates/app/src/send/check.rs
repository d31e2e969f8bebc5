//! The From check: every address a message claims to be from must be on a verified domain of the server. A
//! sub-domain of a verified domain is not verified.

use postroad_model::{DomainName, ServerId, mailbox::claimed_domain};
use tokio::time::Instant;

use crate::{App, Refusal};

impl App {
    /// Refuses unless the domain that `mailbox` claims is verified. Looks only at the domain, so that it can answer
    /// before the syntax is checked.
    pub(super) async fn authorise_mailbox(&self, server_id: ServerId, mailbox: &str) -> Result<(), Refusal> {
        let domain = claimed_domain(mailbox).and_then(|domain| DomainName::parse(domain).ok());
        match domain {
            Some(domain) => self.authorise_domain(server_id, domain).await,
            None => Err(Refusal::UnauthenticatedFromAddress),
        }
    }

    async fn authorise_domain(&self, server_id: ServerId, domain: DomainName) -> Result<(), Refusal> {
        let key = (server_id, domain);
        if self.inner.verified.find(&key).is_some() {
            return Ok(());
        }
        let read_at = Instant::now();
        let found = self.inner.store.find_domain(server_id, key.1.clone()).await?;
        if found.is_none_or(|domain| domain.verified_at.is_none()) {
            return Err(Refusal::UnauthenticatedFromAddress);
        }
        self.inner.verified.put(key, (), read_at);
        Ok(())
    }
}
