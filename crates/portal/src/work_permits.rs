//! Permits for work that takes much memory or time. Each account has a share, so that no customer keeps others waiting.

use std::time::Duration;

use postroad_model::AccountId;
use postroad_net::limits::{FairPermit, FairPool};

use crate::problem::Problem;

/// Maximum number of messages that are parsed for pages at the same time, in total and per account: each may have
/// 25 MiB.
const BODIES_MAX: usize = 6;
const BODIES_OF_ACCOUNT_MAX: usize = 2;
/// Maximum number of messages whose pictures are loaded at the same time, in total and per account: each may load 8 MiB
/// of them, and a slow host may take 8 s.
const PICTURE_LOADS_MAX: usize = 16;
const PICTURE_LOADS_OF_ACCOUNT_MAX: usize = 2;
/// Maximum number of forms that change many scheduled messages at the same time, in total and per account.
const SCHEDULE_CHANGES_MAX: usize = 8;
const SCHEDULE_CHANGES_OF_ACCOUNT_MAX: usize = 1;
/// Maximum number of large forms at the same time, in total and per account: each may have 7 MiB, and its texts are
/// copied several times.
const LARGE_FORMS_MAX: usize = 6;
const LARGE_FORMS_OF_ACCOUNT_MAX: usize = 2;
/// Longest wait for a permit; the page then asks to try again.
const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct WorkPermits {
    bodies: FairPool<AccountId>,
    picture_loads: FairPool<AccountId>,
    schedule_changes: FairPool<AccountId>,
    large_forms: FairPool<AccountId>,
}

impl Default for WorkPermits {
    fn default() -> Self {
        let pool = |permits, share_max| FairPool::new(permits, share_max, WAIT_MAX);
        Self {
            bodies: pool(BODIES_MAX, BODIES_OF_ACCOUNT_MAX),
            picture_loads: pool(PICTURE_LOADS_MAX, PICTURE_LOADS_OF_ACCOUNT_MAX),
            schedule_changes: pool(SCHEDULE_CHANGES_MAX, SCHEDULE_CHANGES_OF_ACCOUNT_MAX),
            large_forms: pool(LARGE_FORMS_MAX, LARGE_FORMS_OF_ACCOUNT_MAX),
        }
    }
}

impl WorkPermits {
    /// Permit to read and parse a message.
    pub(crate) async fn body(&self, account: AccountId) -> Result<FairPermit, Problem> {
        acquire(&self.bodies, account, "too many messages are being read").await
    }

    /// Permit to load the remote pictures of a message.
    pub(crate) async fn pictures(&self, account: AccountId) -> Result<FairPermit, Problem> {
        acquire(&self.picture_loads, account, "too many pictures are being loaded").await
    }

    /// Permit to change many scheduled messages.
    pub(crate) async fn schedule_change(&self, account: AccountId) -> Result<FairPermit, Problem> {
        acquire(&self.schedule_changes, account, "too many scheduled messages are being changed").await
    }

    /// Permit to read a large form and answer it.
    pub(crate) async fn large_form(&self, account: AccountId) -> Result<FairPermit, Problem> {
        acquire(&self.large_forms, account, "too many large forms are being read").await
    }
}

async fn acquire(pool: &FairPool<AccountId>, account: AccountId, busy: &str) -> Result<FairPermit, Problem> {
    pool.acquire(account, 1).await.ok_or_else(|| Problem::Unavailable(busy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_account_with_slow_pictures_does_not_delay_others() {
        let permits = WorkPermits::default();
        let (slow, other) = (AccountId(1), AccountId(2));
        let mut held = Vec::new();
        for _ in 0..PICTURE_LOADS_OF_ACCOUNT_MAX {
            held.push(permits.pictures(slow).await.expect("there is room"));
        }
        assert!(matches!(permits.pictures(slow).await, Err(Problem::Unavailable(_))));
        assert!(permits.pictures(other).await.is_ok());
        held.pop();
        assert!(permits.pictures(slow).await.is_ok());
    }
}
