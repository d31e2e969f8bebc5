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
type Known = HashMap<(ServerId, DomainName), (Timestamp, Signers)>;

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

    pub(crate) async fn find(
        &self,
        server_id: ServerId,
        domain: Option<DomainName>,
    ) -> Result<Signers, StoreError> {
        let Some(domain) = domain else { return Ok(Arc::clone(&self.installation)) };
        let now = self.clock.now();
        let key = (server_id, domain);
        if let Some((until, signers)) = self.known().get(&key)
            && *until > now
        {
            return Ok(Arc::clone(signers));
        }
        let keys = self.store.find_signing_keys(server_id, key.1.clone()).await?;
        let signers = match keys.map(|keys| signers(&key.1, &keys)) {
            Some(Ok(signers)) => signers,
            Some(Err(error)) => {
                tracing::error!(domain = %key.1, %error, "the domain's DKIM key is not usable");
                Arc::clone(&self.installation)
            }
            None => Arc::clone(&self.installation),
        };
        let mut known = self.known();
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(key, (now.plus(KEPT), Arc::clone(&signers)));
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
