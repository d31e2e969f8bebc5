//! Concurrency limit of analytics calls: each may hold many rows, and one of the store's readers for long.
//! There are fewer permits than readers, so delivery never waits for analytics. If there is more than one
//! permit, a single server never holds all of them, so it cannot block the other servers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::ServerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Calls in progress at the same time.
const READS_MAX: usize = 4;
/// Calls of one server in progress at the same time.
const READS_OF_SERVER_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct Reads {
    of_all: Semaphore,
    server_max: usize,
    /// Servers with calls in progress.
    of_servers: Mutex<HashMap<ServerId, Arc<Semaphore>>>,
}

/// Permit; dropping it frees it.
pub(super) struct Place<'a> {
    _of_all: SemaphorePermit<'a>,
    _of_server: OwnedSemaphorePermit,
}

impl Reads {
    pub(crate) fn with_readers(readers: usize) -> Self {
        let reads_max = readers.clamp(1, READS_MAX);
        Self {
            of_all: Semaphore::new(reads_max),
            server_max: READS_OF_SERVER_MAX.min(reads_max - 1).max(1),
            of_servers: Mutex::default(),
        }
    }

    /// Waits for a permit.
    pub(super) async fn place(&self, server_id: ServerId) -> Place<'_> {
        let own = {
            let mut of_servers = self.of_servers.lock();
            // Remove servers without held or awaited permits.
            of_servers.retain(|_, places| Arc::strong_count(places) > 1);
            let new = || Arc::new(Semaphore::new(self.server_max));
            Arc::clone(of_servers.entry(server_id).or_insert_with(new))
        };
        let of_server = own.acquire_owned().await.expect("nobody closes it");
        let of_all = self.of_all.acquire().await.expect("nobody closes it");
        Place { _of_all: of_all, _of_server: of_server }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the result if it need not wait.
    async fn now<T>(place: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::ZERO, place).await.ok()
    }

    #[tokio::test]
    async fn one_server_cannot_take_every_place() {
        let reads = Reads::with_readers(10);
        let (busy, quiet) = (ServerId(1), ServerId(2));
        let mut held: Vec<Place<'_>> = Vec::new();
        while let Some(place) = now(reads.place(busy)).await {
            held.push(place);
        }
        assert_eq!(held.len(), READS_OF_SERVER_MAX);
        // The number of its waiting calls does not matter.
        let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(reads.place(busy))).collect();
        for place in &mut waiting {
            assert!(now(place).await.is_none());
        }
        assert!(now(reads.place(quiet)).await.is_some());
        held.pop();
        assert!(now(waiting.remove(0)).await.is_some());
    }

    #[tokio::test]
    async fn there_are_no_more_places_than_readers() {
        for (readers, places) in [(1, 1), (2, 2), (3, 3), (10, READS_MAX)] {
            let reads = Reads::with_readers(readers);
            let mut held: Vec<Place<'_>> = Vec::new();
            for number in 0..10 {
                held.extend(now(reads.place(ServerId(number))).await);
            }
            assert_eq!(held.len(), places, "{readers}");
        }
        let reads = Reads::with_readers(2);
        let _one = now(reads.place(ServerId(1))).await.expect("there is one");
        assert!(now(reads.place(ServerId(1))).await.is_none());
        assert!(now(reads.place(ServerId(2))).await.is_some());
    }

    #[tokio::test]
    async fn servers_that_ask_no_more_are_forgotten() {
        let reads = Reads::with_readers(10);
        for number in 0..100 {
            drop(reads.place(ServerId(number)).await);
        }
        assert_eq!(reads.of_servers.lock().len(), 1);
    }
}
