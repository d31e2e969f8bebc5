//! Which keys sign a message: its From domain's own when the domain is verified, else the installation's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postroad_mail::{Signer, SignerError};
use postroad_model::{Clock, DomainName, ServerId, Timestamp};
use postroad_store::{SigningKeys, Store, StoreError};

const KEPT: Duration = Duration::from_secs(30);
const ENTRIES_MAX: usize = 10_000;

type Signers = Arc<[Arc<Signer>]>;
/// `None` where the installation's key signs.
type Known = HashMap<(ServerId, DomainName), (Timestamp, Option<Signers>)>;

#[derive(Debug)]
pub(crate) struct SigningKeyCache {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Signs what no domain's own key signs.
    installation: Signers,
    known: Mutex<Known>,
}

impl SigningKeyCache {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, installation: Arc<Signer>) -> Self {
        Self { store, clock, installation: Arc::new([installation]), known: Mutex::default() }
    }

    /// `host` is the one that took the message: the installation signs in its name, whichever node sends it.
    pub(crate) async fn find(
        &self,
        server_id: ServerId,
        domain: Option<DomainName>,
        host: &DomainName,
    ) -> Result<Signers, StoreError> {
        let own = match domain {
            Some(domain) => self.find_own(server_id, domain).await?,
            None => None,
        };
        Ok(own.unwrap_or_else(|| self.of_installation(host)))
    }

    fn of_installation(&self, host: &DomainName) -> Signers {
        if self.installation[0].domain() == host {
            return Arc::clone(&self.installation);
        }
        Arc::new([Arc::new(self.installation[0].for_domain(host.clone()))])
    }

    async fn find_own(&self, server_id: ServerId, domain: DomainName) -> Result<Option<Signers>, StoreError> {
        let now = self.clock.now();
        let key = (server_id, domain);
        if let Some((until, signers)) = self.known().get(&key)
            && *until > now
        {
            return Ok(signers.clone());
        }
        let keys = self.store.find_signing_keys(server_id, key.1.clone()).await?;
        let signers = match keys.map(|keys| signers(&key.1, &keys)) {
            Some(Ok(signers)) => Some(signers),
            Some(Err(error)) => {
                tracing::error!(domain = %key.1, %error, "DKIM key of a domain is not usable");
                None
            }
            None => None,
        };
        let mut known = self.known();
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(key, (now.plus(KEPT), signers.clone()));
        Ok(signers)
    }

    pub(crate) fn clear(&self) {
        self.known().clear();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signers(domain: &DomainName, keys: &SigningKeys) -> Result<Signers, SignerError> {
    let rsa = Signer::rsa(&keys.selector, domain.clone(), &keys.private_pkcs8)?;
    let second = keys.ed25519.as_ref();
    let second = second.map(|(selector, key)| Signer::ed25519(selector, domain.clone(), key)).transpose()?;
    Ok([Some(rsa), second].into_iter().flatten().map(Arc::new).collect())
}
