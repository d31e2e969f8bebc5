//! Stores the provider of a recipient's domain, as found by its MX look-up, for analytics by provider. On failure a
//! note is dropped; the domain's next look-up creates it again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use postroad_model::DomainName;
use postroad_store::{OTHER_PROVIDER, Store};
use tokio::sync::mpsc;

use crate::providers::{Provider, Providers};

/// Maximum number of notes that wait to be stored; further notes are dropped.
const WAITING_MAX: usize = 1_000;
/// Maximum number of notes stored in one call.
const BATCH_MAX: usize = 200;
/// Maximum number of domains that are remembered as stored, so that their notes are not written again.
const KNOWN_MAX: usize = 100_000;

type Note = (DomainName, String);

/// Takes notes, and passes new ones to the `ProviderNoteWriter`.
#[derive(Debug)]
pub(crate) struct ProviderNotes {
    sender: mpsc::Sender<Note>,
    known: Arc<Mutex<HashMap<DomainName, String>>>,
}

/// Task that stores the notes.
#[derive(Debug)]
pub(crate) struct ProviderNoteWriter {
    store: Store,
    notes: mpsc::Receiver<Note>,
    known: Arc<Mutex<HashMap<DomainName, String>>>,
    /// Mailbox domains of large receivers, known without a look-up.
    well_known: Vec<Note>,
}

impl ProviderNotes {
    pub(crate) fn new(store: Store, providers: &Providers) -> (Self, ProviderNoteWriter) {
        let (sender, notes) = mpsc::channel(WAITING_MAX);
        let known = Arc::default();
        let well_known = providers.recipient_domains().collect();
        (Self { sender, known: Arc::clone(&known) }, ProviderNoteWriter { store, notes, known, well_known })
    }

    pub(crate) fn note(&self, domain: &DomainName, provider: &Provider) {
        let name = if provider.is_default() { OTHER_PROVIDER } else { provider.name.as_str() };
        let mut known = lock(&self.known);
        if known.get(domain).is_some_and(|known| known == name) {
            return;
        }
        if self.sender.try_send((domain.clone(), name.to_owned())).is_ok() {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(domain.clone(), name.to_owned());
        }
    }
}

impl ProviderNoteWriter {
    pub(crate) async fn run(mut self) {
        for notes in std::mem::take(&mut self.well_known).chunks(BATCH_MAX) {
            self.write(notes.to_vec()).await;
        }
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while self.notes.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.write(std::mem::take(&mut batch)).await;
        }
    }

    async fn write(&self, notes: Vec<Note>) {
        let domains: Vec<DomainName> = notes.iter().map(|(domain, _)| domain.clone()).collect();
        if let Err(error) = self.store.save_recipient_providers(notes).await {
            tracing::warn!(%error, "storing providers of domains failed; the next look-up tries again");
            let mut known = lock(&self.known);
            for domain in domains {
                known.remove(&domain);
            }
        }
    }
}

fn lock(known: &Mutex<HashMap<DomainName, String>>) -> MutexGuard<'_, HashMap<DomainName, String>> {
    known.lock()
}
