//! Limits on domains: their number per owner, and the concurrent work for them.
//!
//! Generating an RSA key takes a tenth of a second of CPU time, a DNS check up to half a minute. Each account gets a
//! few permits for changes and for manual checks; without a free permit, calls are refused (`DomainRefusal::Busy`).

use std::time::Duration;

use postroad_model::AccountId;
use postroad_net::limits::{FairPermit, FairPool};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::DomainRefusal;

/// Maximum numbers of concurrent calls that add a domain or key: of all accounts, and of one account.
const CHANGES_MAX: usize = 32;
const CHANGES_OF_ACCOUNT_MAX: usize = 4;
/// Maximum numbers of concurrent manual checks, of all accounts and of one account. Checks mostly wait for other
/// people's name servers.
const MANUAL_CHECKS_MAX: usize = 128;
const MANUAL_CHECKS_OF_ACCOUNT_MAX: usize = 4;
/// Maximum number of keys generated at the same time, so that blocking threads stay free for other work.
const KEY_GENERATIONS_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct DomainLimits {
    /// Maximum number of domains of one server; also of one account, not counting domains of its servers.
    pub(super) per_owner_max: usize,
    changes: FairPool<AccountId>,
    manual_checks: FairPool<AccountId>,
    key_generations: Semaphore,
}

impl DomainLimits {
    pub(crate) fn new(per_owner_max: usize) -> Self {
        Self {
            per_owner_max,
            changes: FairPool::new(CHANGES_MAX, CHANGES_OF_ACCOUNT_MAX, Duration::ZERO),
            manual_checks: FairPool::new(MANUAL_CHECKS_MAX, MANUAL_CHECKS_OF_ACCOUNT_MAX, Duration::ZERO),
            key_generations: Semaphore::new(KEY_GENERATIONS_MAX),
        }
    }

    pub(super) fn begin_change(&self, account: AccountId) -> Result<FairPermit, DomainRefusal> {
        self.changes.try_acquire(account).ok_or(DomainRefusal::Busy)
    }

    pub(super) fn begin_check(&self, account: AccountId) -> Result<FairPermit, DomainRefusal> {
        self.manual_checks.try_acquire(account).ok_or(DomainRefusal::Busy)
    }

    /// Waits for earlier key generations, whose number is limited by the permits for changes.
    pub(super) async fn begin_key_generation(&self) -> SemaphorePermit<'_> {
        self.key_generations.acquire().await.expect("the semaphore is never closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_cannot_take_every_permit() {
        let limits = DomainLimits::new(10);
        let permits: Vec<_> = (0..CHANGES_OF_ACCOUNT_MAX)
            .map(|_| limits.begin_change(AccountId(1)).expect("a permit is free"))
            .collect();
        assert!(matches!(limits.begin_change(AccountId(1)), Err(DomainRefusal::Busy)));
        assert!(limits.begin_change(AccountId(2)).is_ok());
        assert!(limits.begin_check(AccountId(1)).is_ok(), "checks have separate permits");
        drop(permits);
        assert!(limits.begin_change(AccountId(1)).is_ok());
    }
}
