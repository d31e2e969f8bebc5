//! Permits for event streams of open pages: so many in all, and so many of one person.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Pages that update themselves at the same time.
const LIVE_MAX: usize = 256;
/// Those of one person, so that nobody takes them all.
const LIVE_OF_PERSON_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct LivePermits {
    all: Arc<Semaphore>,
    /// Open streams of each person who has some.
    people: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// The right to one event stream; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct LivePermit {
    person: UserId,
    people: Arc<Mutex<HashMap<UserId, usize>>>,
    _of_all: OwnedSemaphorePermit,
}

impl Default for LivePermits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(LIVE_MAX)), people: Arc::default() }
    }
}

impl LivePermits {
    pub(crate) fn acquire(&self, person: UserId) -> Result<LivePermit, Problem> {
        let of_all = Arc::clone(&self.all).try_acquire_owned();
        let of_all =
            of_all.map_err(|_| Problem::Unavailable("too many pages update themselves".to_owned()))?;
        let mut people = self.people.lock();
        let streams = people.entry(person).or_insert(0);
        if *streams >= LIVE_OF_PERSON_MAX {
            return Err(Problem::TooManyStreams);
        }
        *streams += 1;
        Ok(LivePermit { person, people: Arc::clone(&self.people), _of_all: of_all })
    }
}

impl Drop for LivePermit {
    fn drop(&mut self) {
        let mut people = self.people.lock();
        if let Some(streams) = people.get_mut(&self.person) {
            *streams -= 1;
            if *streams == 0 {
                people.remove(&self.person);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_has_a_share_of_the_streams() {
        let permits = LivePermits::default();
        let (ann, bob) = (UserId(1), UserId(2));
        let mut held: Vec<LivePermit> =
            (0..LIVE_OF_PERSON_MAX).map(|_| permits.acquire(ann).expect("there is room")).collect();
        assert!(matches!(permits.acquire(ann), Err(Problem::TooManyStreams)));
        let of_bob = permits.acquire(bob).expect("others have room");
        held.pop();
        drop(permits.acquire(ann).expect("one ended"));
        drop((held, of_bob));
        assert!(permits.people.lock().is_empty());
        assert_eq!(permits.all.available_permits(), LIVE_MAX);
    }
}
