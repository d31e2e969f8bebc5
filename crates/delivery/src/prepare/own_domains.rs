//! Signing keys and bounce domain of a verified From domain. The installation provides what the domain lacks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use postroad_mail::{Signer, SignerError};
use postroad_model::{Clock, DomainKeyId, DomainName, ServerId, Timestamp};
use postroad_store::{DomainDelivery, KeyAlgorithm, Store, StoreError};

/// Changes by other nodes are seen within this time.
const CACHED_FOR: Duration = Duration::from_secs(2);
const ENTRIES_MAX: usize = 10_000;

pub(crate) type Signers = Arc<[Arc<Signer>]>;

/// A verified domain.
#[derive(Debug)]
pub(crate) struct OwnDomain {
    key_ids: Vec<DomainKeyId>,
    /// Empty if the installation's key signs.
    pub(super) signers: Signers,
    /// `rp.<domain>`, if it points here.
    pub(crate) return_domain: Option<DomainName>,
}

/// A domain as the store had it at this `generation`; valid until `until`, unless the generation has changed.
#[derive(Debug)]
struct Entry {
    generation: u64,
    until: Timestamp,
    /// `None` for a domain that is not verified.
    domain: Option<Arc<OwnDomain>>,
}

#[derive(Debug)]
pub(crate) struct OwnDomains {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The installation's signer, alone in a list.
    installation: Signers,
    /// Incremented when the setup changes. Older entries are read again, but keep unchanged keys: parsing keys takes
    /// longer than reading them.
    generation: AtomicU64,
    known: Mutex<HashMap<(ServerId, DomainName), Entry>>,
}

impl OwnDomains {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, installation: Arc<Signer>) -> Self {
        Self {
            store,
            clock,
            installation: Arc::new([installation]),
            generation: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    /// The installation's key and signing domain, which are the same on all nodes.
    pub(super) fn of_installation(&self) -> (Signers, &DomainName) {
        (Arc::clone(&self.installation), self.installation[0].domain())
    }

    /// `None` unless the domain is verified for the server.
    pub(crate) async fn find(
        &self,
        server_id: ServerId,
        domain: DomainName,
    ) -> Result<Option<Arc<OwnDomain>>, StoreError> {
        let now = self.clock.now();
        let generation = self.generation.load(Ordering::Acquire);
        let key = (server_id, domain);
        let before = match self.known().get(&key) {
            Some(entry) if entry.generation == generation && entry.until > now => {
                return Ok(entry.domain.clone());
            }
            stale => stale.and_then(|entry| entry.domain.clone()),
        };
        let found = self.store.find_domain_delivery(server_id, key.1.clone()).await?;
        let domain = found.map(|found| Arc::new(own_domain(&key.1, &found, before.as_deref())));
        let mut known = self.known();
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(key, Entry { generation, until: now.plus(CACHED_FOR), domain: domain.clone() });
        Ok(domain)
    }

    /// Makes every domain be read again. Call this after a change of the setup.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn known(&self) -> parking_lot::MutexGuard<'_, HashMap<(ServerId, DomainName), Entry>> {
        self.known.lock()
    }
}

fn own_domain(name: &DomainName, found: &DomainDelivery, before: Option<&OwnDomain>) -> OwnDomain {
    let key_ids: Vec<DomainKeyId> = found.keys.iter().map(|key| key.id).collect();
    let signers = match before {
        Some(before) if before.key_ids == key_ids => Arc::clone(&before.signers),
        _ => signers(name, found).unwrap_or_else(|error| {
            tracing::error!(domain = %name, %error, "DKIM key of a domain is not usable; the installation signs");
            Arc::new([])
        }),
    };
    let return_domain =
        found.has_return_path.then(|| DomainName::parse(&format!("rp.{name}")).ok()).flatten();
    OwnDomain { key_ids, signers, return_domain }
}

/// The signers of a domain. Ed25519 is used only in addition to RSA, which every receiver can verify.
fn signers(domain: &DomainName, found: &DomainDelivery) -> Result<Signers, SignerError> {
    if !found.keys.iter().any(|key| key.algorithm == KeyAlgorithm::Rsa) {
        return Ok(Arc::new([]));
    }
    let signer = |key: &postroad_store::SigningKey| {
        let made = match key.algorithm {
            KeyAlgorithm::Rsa => Signer::rsa(&key.selector, domain.clone(), &key.private_pkcs8),
            KeyAlgorithm::Ed25519 => Signer::ed25519(&key.selector, domain.clone(), &key.private_pkcs8),
        };
        made.map(Arc::new)
    };
    found.keys.iter().map(signer).collect()
}
