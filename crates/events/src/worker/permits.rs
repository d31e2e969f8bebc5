//! Permits for posts in progress. Endpoints that answer well, new ones and failing ones have separate permits, so that
//! failing endpoints never delay the others. One server gets only some permits of each class.
//!
//! A post to a new or proven endpoint without a quick answer moves to the permits for slow posts, so that the next
//! endpoint does not wait for it; endpoints that have answered well get more time. If no permit is left, a post without
//! an answer is given up earlier (`endpoint_worker.rs`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::ServerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const PROVEN_POSTS_MAX: usize = 1_024;
const NEW_POSTS_MAX: usize = 1_024;
const FAILING_POSTS_MAX: usize = 512;
const SLOW_POSTS_MAX: usize = 1_024;
/// Maximum number of concurrent posts of one server in each class but `Slow`. Raised to `webhooks.concurrency` if that
/// is larger.
const SERVER_POSTS_MAX: usize = 32;
/// Maximum number of slow posts of one server.
const SERVER_SLOW_POSTS_MAX: usize = 64;
/// Unused semaphores are removed when there are this many; each server has one for each class.
const SERVER_SEMAPHORES_MAX: usize = 1_024;

/// Class of a post, by its endpoint; each class has separate permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PermitClass {
    /// The endpoint has answered well before.
    Proven,
    New,
    Failing,
    /// Posts of new and proven endpoints that have waited for an answer for a while. Posts of failing endpoints stay in
    /// their class.
    Slow,
}

#[derive(Debug)]
pub(super) struct PostPermits {
    proven: Arc<Semaphore>,
    new: Arc<Semaphore>,
    failing: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    server_permits: Mutex<HashMap<(ServerId, PermitClass), Arc<Semaphore>>>,
    server_posts_max: usize,
}

/// Permit for one post; released on drop.
#[derive(Debug)]
pub(super) struct PostPermit {
    server_id: ServerId,
    class: PermitClass,
    _server_permit: OwnedSemaphorePermit,
    _class_permit: OwnedSemaphorePermit,
}

impl PostPermits {
    pub(super) fn new(endpoint_posts_max: usize) -> Self {
        Self {
            proven: Arc::new(Semaphore::new(PROVEN_POSTS_MAX)),
            new: Arc::new(Semaphore::new(NEW_POSTS_MAX)),
            failing: Arc::new(Semaphore::new(FAILING_POSTS_MAX)),
            slow: Arc::new(Semaphore::new(SLOW_POSTS_MAX)),
            server_permits: Mutex::default(),
            server_posts_max: SERVER_POSTS_MAX.max(endpoint_posts_max),
        }
    }

    /// Waits for a permit. Takes the permit of the server's share first: waiting for that permit blocks no other
    /// server.
    pub(super) async fn acquire(&self, server_id: ServerId, class: PermitClass) -> PostPermit {
        PostPermit {
            server_id,
            class,
            _server_permit: acquire(self.server_semaphore(server_id, class)).await,
            _class_permit: acquire(self.class_semaphore(class)).await,
        }
    }

    /// Moves a post without an answer to the slow class, if a slow permit is free, so that another post can have the
    /// released permit.
    pub(super) fn move_to_slow(&self, permit: PostPermit) -> PostPermit {
        let (server_id, class) = (permit.server_id, PermitClass::Slow);
        if !matches!(permit.class, PermitClass::New | PermitClass::Proven) {
            return permit;
        }
        let server_permit = self.server_semaphore(server_id, class).try_acquire_owned();
        let class_permit = self.class_semaphore(class).try_acquire_owned();
        match (server_permit, class_permit) {
            (Ok(server_permit), Ok(class_permit)) => {
                PostPermit { server_id, class, _server_permit: server_permit, _class_permit: class_permit }
            }
            _ => permit,
        }
    }

    /// Whether all permits of the class of `permit` are in use, in total or by its server, so that other posts may wait
    /// for this permit.
    pub(super) fn is_exhausted(&self, permit: &PostPermit) -> bool {
        self.class_semaphore(permit.class).available_permits() == 0
            || self.server_semaphore(permit.server_id, permit.class).available_permits() == 0
    }

    fn class_semaphore(&self, class: PermitClass) -> Arc<Semaphore> {
        Arc::clone(match class {
            PermitClass::Proven => &self.proven,
            PermitClass::New => &self.new,
            PermitClass::Failing => &self.failing,
            PermitClass::Slow => &self.slow,
        })
    }

    fn server_semaphore(&self, server_id: ServerId, class: PermitClass) -> Arc<Semaphore> {
        let mut server_permits = self.server_permits.lock();
        if server_permits.len() >= SERVER_SEMAPHORES_MAX {
            // Permits and waiting tasks hold a reference to their semaphore: keep those semaphores.
            server_permits.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let count = if class == PermitClass::Slow { SERVER_SLOW_POSTS_MAX } else { self.server_posts_max };
        let permits =
            server_permits.entry((server_id, class)).or_insert_with(|| Arc::new(Semaphore::new(count)));
        Arc::clone(permits)
    }
}

async fn acquire(permits: Arc<Semaphore>) -> OwnedSemaphorePermit {
    permits.acquire_owned().await.expect("these semaphores are never closed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns a permit only if one is free.
    async fn try_acquire(permits: &PostPermits, server_id: i64, class: PermitClass) -> Option<PostPermit> {
        tokio::time::timeout(Duration::ZERO, permits.acquire(ServerId(server_id), class)).await.ok()
    }

    #[tokio::test]
    async fn a_server_takes_its_own_permits_only() {
        let permits = PostPermits::new(8);
        let mut taken = Vec::new();
        while let Some(permit) = try_acquire(&permits, 1, PermitClass::Failing).await {
            taken.push(permit);
        }
        assert_eq!(taken.len(), SERVER_POSTS_MAX);
        assert!(try_acquire(&permits, 1, PermitClass::Proven).await.is_some());
        assert!(try_acquire(&permits, 2, PermitClass::Failing).await.is_some());
        taken.clear();
        assert!(try_acquire(&permits, 1, PermitClass::Failing).await.is_some());
    }

    #[tokio::test]
    async fn new_endpoints_that_do_not_answer_free_their_permits_for_others() {
        let permits = PostPermits::new(8);
        let mut taken = Vec::new();
        while let Some(permit) = try_acquire(&permits, 1, PermitClass::New).await {
            taken.push(permit);
        }
        let moved: Vec<PostPermit> = taken.into_iter().map(|permit| permits.move_to_slow(permit)).collect();
        assert!(moved.iter().all(|permit| permit.class == PermitClass::Slow));
        let mut taken = Vec::new();
        while let Some(permit) = try_acquire(&permits, 1, PermitClass::New).await {
            taken.push(permits.move_to_slow(permit));
        }
        // When its share of slow posts is used up, the server's other posts stay in their class.
        assert_eq!(moved.len() + taken.len(), SERVER_SLOW_POSTS_MAX + SERVER_POSTS_MAX);
        assert!(try_acquire(&permits, 2, PermitClass::New).await.is_some());
        assert!(moved.iter().chain(&taken).all(|permit| permits.is_exhausted(permit)));
        assert!(!permits.is_exhausted(&try_acquire(&permits, 2, PermitClass::New).await.unwrap()));
    }

    #[tokio::test]
    async fn proven_endpoints_that_begin_to_hang_free_their_permits_too() {
        let permits = PostPermits::new(8);
        let mut taken = Vec::new();
        while let Some(permit) = try_acquire(&permits, 1, PermitClass::Proven).await {
            taken.push(permit);
        }
        let _moved: Vec<PostPermit> = taken.into_iter().map(|permit| permits.move_to_slow(permit)).collect();
        assert!(try_acquire(&permits, 1, PermitClass::Proven).await.is_some());
    }

    #[tokio::test]
    async fn semaphores_of_servers_without_posts_are_removed() {
        let permits = PostPermits::new(64);
        let first_permit = try_acquire(&permits, 0, PermitClass::New).await;
        for server_id in 0..3 * SERVER_SEMAPHORES_MAX as i64 {
            assert!(try_acquire(&permits, server_id, PermitClass::New).await.is_some());
        }
        let known = permits.server_permits.lock();
        assert!(known.len() <= SERVER_SEMAPHORES_MAX && known.contains_key(&(ServerId(0), PermitClass::New)));
        drop((known, first_permit));
    }
}
