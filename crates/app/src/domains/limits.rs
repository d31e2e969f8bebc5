//! Limits on domains: their number per owner, and the concurrent work for them.
//!
//! Generating an RSA key takes a tenth of a second of CPU time, a DNS check up to half a minute. Each account gets a
//! few permits for both; beyond them it gets the error `DomainsBusy`.

use std::time::Duration;

use postroad_model::AccountId;
use postroad_net::limits::{FairPermit, FairPool};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::DomainRefusal;

/// Concurrent calls that add a domain or key: of all accounts, and of one account.
const CHANGES_MAX: usize = 32;
const CHANGES_OF_ACCOUNT_MAX: usize = 4;
/// Concurrent manual checks: of all accounts, and of one account. They mostly wait for other people's name servers.
const BY_HAND_MAX: usize = 128;
const BY_HAND_OF_ACCOUNT_MAX: usize = 4;
/// Maximum number of keys generated at the same time, so that blocking threads stay free for other work.
const KEYS_MADE_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct DomainLimits {
    /// Maximum number of domains of one server; also of one account, not counting domains of its servers.
    pub(super) per_owner_max: usize,
    changes: FairPool<AccountId>,
    by_hand: FairPool<AccountId>,
    keys_made: Semaphore,
}

impl DomainLimits {
    pub(crate) fn new(per_owner_max: usize) -> Self {
        Self {
            per_owner_max,
            changes: FairPool::new(CHANGES_MAX, CHANGES_OF_ACCOUNT_MAX, Duration::ZERO),
            by_hand: FairPool::new(BY_HAND_MAX, BY_HAND_OF_ACCOUNT_MAX, Duration::ZERO),
            keys_made: Semaphore::new(KEYS_MADE_MAX),
        }
    }

    pub(super) fn begin_change(&self, account: AccountId) -> Result<FairPermit, DomainRefusal> {
        self.changes.try_acquire(account).ok_or(DomainRefusal::Busy)
    }

    pub(super) fn begin_check(&self, account: AccountId) -> Result<FairPermit, DomainRefusal> {
        self.by_hand.try_acquire(account).ok_or(DomainRefusal::Busy)
    }

    /// Waits for earlier key generations, whose number is limited by the permits for changes.
    pub(super) async fn begin_key(&self) -> SemaphorePermit<'_> {
        self.keys_made.acquire().await.expect("the semaphore is never closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_leaves_room_for_others() {
        let limits = DomainLimits::new(10);
        let held: Vec<_> = (0..CHANGES_OF_ACCOUNT_MAX)
            .map(|_| limits.begin_change(AccountId(1)).expect("there is room"))
            .collect();
        assert!(matches!(limits.begin_change(AccountId(1)), Err(DomainRefusal::Busy)));
        assert!(limits.begin_change(AccountId(2)).is_ok());
        assert!(limits.begin_check(AccountId(1)).is_ok(), "checks have permits of their own");
        drop(held);
        assert!(limits.begin_change(AccountId(1)).is_ok());
    }
}
