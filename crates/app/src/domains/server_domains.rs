//! Operations on domains for callers who work on one server, such as a person in the portal.

use postroad_boxed_futures::boxed_futures;
use postroad_model::DomainId;

use super::view::DomainView;
use super::{DkimKeyRequest, DomainListFilter, DomainRefusal};
use crate::access::Operation;
use crate::{App, Caller};

#[boxed_futures]
impl App {
    /// Adds a domain of the caller's server.
    pub async fn create_domain(
        &self,
        caller: &Caller,
        name: &str,
        key: DkimKeyRequest,
    ) -> Result<DomainView, DomainRefusal> {
        let created = self.create_domain_as(&caller.requester(), caller.into(), name, key, None).await?;
        Ok(created.value)
    }

    /// Finds a domain of the caller's server or of its account, verified or not.
    pub async fn find_domain(&self, caller: &Caller, name: &str) -> Result<DomainView, DomainRefusal> {
        self.find_domain_as(&caller.requester(), caller.into(), name, Operation::DomainsGet).await
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_domains(
        &self,
        caller: &Caller,
        after: Option<DomainId>,
        limit: usize,
    ) -> Result<(Vec<DomainView>, bool), DomainRefusal> {
        self.list_domains_as(&caller.requester(), caller.into(), DomainListFilter::default(), after, limit)
            .await
    }

    /// Checks a domain now and returns it. Returns the last result if another check began only seconds ago.
    pub async fn verify_domain(&self, caller: &Caller, name: &str) -> Result<DomainView, DomainRefusal> {
        self.verify_domain_as(&caller.requester(), caller.into(), name).await
    }

    /// Deletes a domain of the caller's server. Refuses domains of the account: other servers use them too.
    pub async fn delete_domain(&self, caller: &Caller, name: &str) -> Result<(), DomainRefusal> {
        self.delete_domain_as(&caller.requester(), caller.into(), name).await
    }

    /// Adds a DKIM key, like `rotate_dkim_as`. Refuses domains of the account, like `delete_domain`.
    pub async fn rotate_dkim(
        &self,
        caller: &Caller,
        name: &str,
        key: DkimKeyRequest,
    ) -> Result<DomainView, DomainRefusal> {
        self.rotate_dkim_as(&caller.requester(), caller.into(), name, key).await
    }
}
