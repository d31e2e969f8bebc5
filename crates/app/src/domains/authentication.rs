//! Authentication of a From domain's mail at receivers: the names that pass SPF and DKIM, and the state of DMARC.

use postroad_boxed_futures::boxed_futures;

use super::check::{Purpose, RecordStatus};
use super::{DomainRefusal, owners::NamedOwner};
use crate::access::Operation;
use crate::{App, Caller};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    pub domain: String,
    /// Domain of the return path; receivers check SPF for it.
    pub return_path: String,
    /// Whether the return path is below the From domain.
    pub is_return_path_own: bool,
    /// Selectors of the domain's signing keys; empty if only the installation's key signs.
    pub selectors: Vec<String>,
    /// Result of the last check of the DMARC record.
    pub dmarc: RecordStatus,
}

#[boxed_futures]
impl App {
    /// Authentication of mail sent now. `None` if the server does not have the domain.
    pub async fn domain_authentication(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Option<Authentication>, DomainRefusal> {
        let owner = NamedOwner::from(caller);
        let found = self.find_domain_as(&caller.requester(), owner, name, Operation::DomainsGet).await;
        let view = match found {
            Err(DomainRefusal::NotFound) => return Ok(None),
            found => found?,
        };
        let name = view.domain.name.clone();
        let delivery = self.inner.store.find_domain_delivery(caller.server_id, name.clone()).await?;
        let dmarc = view.records.iter().find(|record| record.check.purpose == Purpose::Dmarc);
        let dmarc = dmarc.map_or(RecordStatus::Pending, |record| record.check.status);
        let (keys, is_return_path_own) =
            delivery.map_or_else(Default::default, |found| (found.keys, found.has_return_path));
        Ok(Some(Authentication {
            domain: name.to_string(),
            return_path: view.return_path,
            is_return_path_own,
            selectors: keys.into_iter().map(|key| key.selector).collect(),
            dmarc,
        }))
    }
}
