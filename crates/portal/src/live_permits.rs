//! Permits for event streams of open pages, limited in total, per account and per person.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::{AccountId, UserId};
use postroad_net::limits::{FairPermit, FairPool};

use crate::problem::Problem;

/// Maximum number of open event streams.
const LIVE_MAX: usize = 1_000;
/// Maximum per account, so that no account takes all permits.
const LIVE_OF_ACCOUNT_MAX: usize = 100;
const LIVE_OF_PERSON_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct LivePermits {
    of_accounts: FairPool<AccountId>,
    /// Number of open streams of each person; people without a stream are not in the map.
    people: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// The right to one event stream; dropping the permit gives the right back.
#[derive(Debug)]
pub(crate) struct LivePermit {
    person: UserId,
    people: Arc<Mutex<HashMap<UserId, usize>>>,
    _of_account: FairPermit,
}

impl Default for LivePermits {
    fn default() -> Self {
        let of_accounts = FairPool::new(LIVE_MAX, LIVE_OF_ACCOUNT_MAX, Duration::ZERO);
        Self { of_accounts, people: Arc::default() }
    }
}

impl LivePermits {
    pub(crate) fn acquire(&self, account: AccountId, person: UserId) -> Result<LivePermit, Problem> {
        let full = || Problem::Unavailable("too many pages update themselves".to_owned());
        let of_account = self.of_accounts.try_acquire(account).ok_or_else(full)?;
        let mut people = self.people.lock();
        let streams = people.entry(person).or_insert(0);
        if *streams >= LIVE_OF_PERSON_MAX {
            return Err(Problem::TooManyStreams);
        }
        *streams += 1;
        Ok(LivePermit { person, people: Arc::clone(&self.people), _of_account: of_account })
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
    fn streams_are_limited_per_person_and_per_account() {
        let permits = LivePermits::default();
        let (shop, other) = (AccountId(1), AccountId(2));
        let (ann, bob) = (UserId(1), UserId(2));
        let mut held: Vec<LivePermit> =
            (0..LIVE_OF_PERSON_MAX).map(|_| permits.acquire(shop, ann).expect("there is room")).collect();
        assert!(matches!(permits.acquire(shop, ann), Err(Problem::TooManyStreams)));
        let of_bob = permits.acquire(shop, bob).expect("others have room");
        held.pop();
        drop(permits.acquire(shop, ann).expect("one ended"));
        for person in 10.. {
            match permits.acquire(shop, UserId(person)) {
                Ok(permit) => held.push(permit),
                Err(problem) => {
                    assert!(matches!(problem, Problem::Unavailable(_)));
                    break;
                }
            }
        }
        assert_eq!(held.len() + 1, LIVE_OF_ACCOUNT_MAX);
        drop(permits.acquire(other, UserId(3)).expect("other accounts have room"));
        drop((held, of_bob));
        assert!(permits.people.lock().is_empty());
        assert_eq!(permits.of_accounts.free(), LIVE_MAX);
    }
}
