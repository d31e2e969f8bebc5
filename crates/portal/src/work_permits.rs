//! Permits for work that takes much memory or time. Each account has a share, so that no customer keeps others waiting.

use std::time::Duration;

use postroad_model::AccountId;
use postroad_net::limits::{BytePool, ByteShare, FairPermit, FairPool};

use crate::problem::Problem;

/// Maximum number of messages that are parsed for pages at the same time, in total and per account: each may have
/// 25 MiB.
const BODIES_MAX: usize = 6;
const BODIES_OF_ACCOUNT_MAX: usize = 2;
/// Maximum number of messages whose pictures are loaded at the same time, in total and per account. Each message may
/// load 8 MiB of pictures, and a slow host may take 8 s.
const PICTURE_LOADS_MAX: usize = 16;
const PICTURE_LOADS_OF_ACCOUNT_MAX: usize = 2;
/// Maximum number of forms that change many scheduled messages at the same time, in total and per account.
const SCHEDULE_CHANGES_MAX: usize = 8;
const SCHEDULE_CHANGES_OF_ACCOUNT_MAX: usize = 1;
/// Maximum number of large forms at the same time, in total and per account: each may have 7 MiB, and its texts are
/// copied several times.
const LARGE_FORMS_MAX: usize = 6;
const LARGE_FORMS_OF_ACCOUNT_MAX: usize = 2;
/// Memory for forms that are not large, in total and per account, from their first byte until they are answered.
const FORM_POOL_BYTES: usize = 64 << 20;
const FORM_BYTES_OF_ACCOUNT_MAX: usize = 16 << 20;
/// Memory for downloads and previews that are not sent yet, in total and per account. The share of an account has room
/// for a few of the largest messages, because readers may be slow.
const DOWNLOAD_POOL_BYTES: usize = 256 << 20;
const DOWNLOAD_BYTES_OF_ACCOUNT_MAX: usize = 64 << 20;
/// Maximum number of samples posted to webhooks at the same time, in total and per account: receivers may be slow.
const SAMPLES_MAX: usize = 64;
const SAMPLES_OF_ACCOUNT_MAX: usize = 4;
/// Longest wait for a permit; the page then asks to try again.
const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct WorkPermits {
    bodies: FairPool<AccountId>,
    picture_loads: FairPool<AccountId>,
    schedule_changes: FairPool<AccountId>,
    large_forms: FairPool<AccountId>,
    forms: BytePool<AccountId>,
    downloads: BytePool<AccountId>,
    samples: FairPool<AccountId>,
}

impl Default for WorkPermits {
    fn default() -> Self {
        let pool = |permits, share_max| FairPool::new(permits, share_max, WAIT_MAX);
        Self {
            bodies: pool(BODIES_MAX, BODIES_OF_ACCOUNT_MAX),
            picture_loads: pool(PICTURE_LOADS_MAX, PICTURE_LOADS_OF_ACCOUNT_MAX),
            schedule_changes: pool(SCHEDULE_CHANGES_MAX, SCHEDULE_CHANGES_OF_ACCOUNT_MAX),
            large_forms: pool(LARGE_FORMS_MAX, LARGE_FORMS_OF_ACCOUNT_MAX),
            forms: BytePool::new(FORM_POOL_BYTES, FORM_BYTES_OF_ACCOUNT_MAX, WAIT_MAX),
            downloads: BytePool::new(DOWNLOAD_POOL_BYTES, DOWNLOAD_BYTES_OF_ACCOUNT_MAX, WAIT_MAX),
            samples: pool(SAMPLES_MAX, SAMPLES_OF_ACCOUNT_MAX),
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

    /// Memory of a form that is not large; none of the memory is taken yet.
    pub(crate) fn form(&self, account: AccountId) -> FormMemory<'_> {
        FormMemory { forms: &self.forms, account, share: ByteShare::default() }
    }

    /// Memory for a download or preview of this size.
    pub(crate) async fn download(&self, account: AccountId, bytes: usize) -> Result<ByteShare, Problem> {
        let mut share = ByteShare::default();
        let is_free = self.downloads.grow(account, &mut share, bytes).await;
        if is_free { Ok(share) } else { Err(busy("too many downloads are being read")) }
    }

    /// Permit to post a sample to a webhook.
    pub(crate) async fn sample(&self, account: AccountId) -> Result<FairPermit, Problem> {
        acquire(&self.samples, account, "too many samples are being posted").await
    }
}

/// Memory of a form that is being read.
#[derive(Debug)]
pub(crate) struct FormMemory<'a> {
    forms: &'a BytePool<AccountId>,
    account: AccountId,
    share: ByteShare,
}

impl FormMemory<'_> {
    /// Grows the share to this many bytes.
    pub(crate) async fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let is_free = self.forms.grow(self.account, &mut self.share, bytes).await;
        if is_free { Ok(()) } else { Err(busy("too many bytes of forms are in memory")) }
    }

    /// The share of a form that was read.
    pub(crate) fn into_share(self) -> ByteShare {
        self.share
    }
}

async fn acquire(pool: &FairPool<AccountId>, account: AccountId, cause: &str) -> Result<FairPermit, Problem> {
    pool.acquire(account, 1).await.ok_or_else(|| busy(cause))
}

fn busy(cause: &str) -> Problem {
    Problem::Unavailable(cause.to_owned())
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
