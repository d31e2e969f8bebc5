//! Places for posts under way. Endpoints that have answered well, those that are new and those that fail have places of
//! their own: however many fail, the others find theirs free. Of each kind a server gets only some.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use postroad_model::ServerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const PROVEN_POSTS_MAX: usize = 1_024;
const NEW_POSTS_MAX: usize = 1_024;
const FAILING_POSTS_MAX: usize = 512;
/// Of each class; more if one endpoint alone may have more.
const SERVER_POSTS_MAX: usize = 32;
/// Servers that are remembered although nothing of them is posted.
const SERVERS_KEPT: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Proven,
    New,
    Failing,
}

#[derive(Debug)]
pub(super) struct Places {
    proven: Arc<Semaphore>,
    new: Arc<Semaphore>,
    failing: Arc<Semaphore>,
    of_servers: Mutex<HashMap<(ServerId, Class), Arc<Semaphore>>>,
    per_server: usize,
}

/// Free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_server: OwnedSemaphorePermit,
    _of_class: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(per_endpoint: usize) -> Self {
        Self {
            proven: Arc::new(Semaphore::new(PROVEN_POSTS_MAX)),
            new: Arc::new(Semaphore::new(NEW_POSTS_MAX)),
            failing: Arc::new(Semaphore::new(FAILING_POSTS_MAX)),
            of_servers: Mutex::default(),
            per_server: SERVER_POSTS_MAX.max(per_endpoint),
        }
    }

    /// Waits for one. First among the server's own: who waits there takes nothing from other servers.
    pub(super) async fn take(&self, server_id: ServerId, class: Class) -> Place {
        let of_class = match class {
            Class::Proven => &self.proven,
            Class::New => &self.new,
            Class::Failing => &self.failing,
        };
        Place {
            _of_server: acquire(self.of_server(server_id, class)).await,
            _of_class: acquire(Arc::clone(of_class)).await,
        }
    }

    fn of_server(&self, server_id: ServerId, class: Class) -> Arc<Semaphore> {
        let mut of_servers = self.of_servers.lock().unwrap_or_else(PoisonError::into_inner);
        if of_servers.len() >= SERVERS_KEPT {
            // Permits and those who wait for one hold it.
            of_servers.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places =
            of_servers.entry((server_id, class)).or_insert_with(|| Arc::new(Semaphore::new(self.per_server)));
        Arc::clone(places)
    }
}

async fn acquire(places: Arc<Semaphore>) -> OwnedSemaphorePermit {
    places.acquire_owned().await.expect("these semaphores are never closed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Only if one is free.
    async fn free(places: &Places, server_id: i64, class: Class) -> Option<Place> {
        tokio::time::timeout(Duration::ZERO, places.take(ServerId(server_id), class)).await.ok()
    }

    #[tokio::test]
    async fn a_server_takes_its_own_places_only() {
        let places = Places::new(8);
        let mut taken = Vec::new();
        while let Some(place) = free(&places, 1, Class::Failing).await {
            taken.push(place);
        }
        assert_eq!(taken.len(), SERVER_POSTS_MAX);
        assert!(free(&places, 1, Class::Proven).await.is_some());
        assert!(free(&places, 2, Class::Failing).await.is_some());
        taken.clear();
        assert!(free(&places, 1, Class::Failing).await.is_some());
    }

    #[tokio::test]
    async fn servers_without_posts_are_forgotten() {
        let places = Places::new(64);
        let held = free(&places, 0, Class::New).await;
        for server_id in 0..3 * SERVERS_KEPT as i64 {
            assert!(free(&places, server_id, Class::New).await.is_some());
        }
        let known = places.of_servers.lock().unwrap();
        assert!(known.len() <= SERVERS_KEPT && known.contains_key(&(ServerId(0), Class::New)));
        drop((known, held));
    }
}
