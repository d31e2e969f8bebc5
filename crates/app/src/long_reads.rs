//! Concurrency limit of analytics calls, searches, sums of reports and erasures: each may hold many rows, and one of
//! the store's readers for a long time. If the store has several readers, there are fewer permits than readers, so that
//! delivery never waits for these calls. If there is more than one permit, a single account never holds all of them,
//! however many servers it has.

use std::time::Duration;

use postroad_model::AccountId;
use postroad_net::limits::{FairPermit, FairPool};

/// Maximum number of reads in progress at the same time.
const READS_MAX: usize = 4;
/// Maximum number of reads of one account in progress at the same time.
const READS_OF_ACCOUNT_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct LongReads {
    permits: FairPool<Owner>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Account(AccountId),
    /// Background jobs of all accounts, which take turns.
    Jobs,
    /// Reads of the operator: searches over all servers, and sums of reports at the command line.
    Operators,
}

impl LongReads {
    /// `store_max` is the number of long reads that the store can do at the same time.
    pub(crate) fn with_max(store_max: usize) -> Self {
        let reads_max = store_max.clamp(1, READS_MAX);
        let account_max = READS_OF_ACCOUNT_MAX.min(reads_max - 1).max(1);
        Self { permits: FairPool::new(reads_max, account_max, Duration::MAX) }
    }

    /// Waits for a permit.
    pub(crate) async fn permit(&self, account: AccountId) -> FairPermit {
        self.permits.acquire_without_timeout(Owner::Account(account), 1).await
    }

    /// Like `permit`, for the operator's reads.
    pub(crate) async fn permit_for_operators(&self) -> FairPermit {
        self.permits.acquire_without_timeout(Owner::Operators, 1).await
    }

    /// Like `permit`, for background jobs.
    pub(crate) async fn permit_for_jobs(&self) -> FairPermit {
        self.permits.acquire_without_timeout(Owner::Jobs, 1).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The permit, if it is free now.
    async fn permit_if_free<T>(permit: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::ZERO, permit).await.ok()
    }

    #[tokio::test]
    async fn one_account_cannot_take_every_permit() {
        let reads = LongReads::with_max(10);
        let (busy, quiet) = (AccountId(1), AccountId(2));
        let mut taken: Vec<FairPermit> = Vec::new();
        while let Some(permit) = permit_if_free(reads.permit(busy)).await {
            taken.push(permit);
        }
        assert_eq!(taken.len(), READS_OF_ACCOUNT_MAX);
        // More waiting calls do not get the busy account more permits.
        let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(reads.permit(busy))).collect();
        for permit in &mut waiting {
            assert!(permit_if_free(permit).await.is_none());
        }
        assert!(permit_if_free(reads.permit(quiet)).await.is_some());
        taken.pop();
        assert!(permit_if_free(waiting.remove(0)).await.is_some());
    }

    #[tokio::test]
    async fn there_are_no_more_permits_than_the_store_allows() {
        for (store_max, permits) in [(1, 1), (2, 2), (3, 3), (10, READS_MAX)] {
            let reads = LongReads::with_max(store_max);
            let mut taken: Vec<FairPermit> = Vec::new();
            for number in 0..10 {
                taken.extend(permit_if_free(reads.permit(AccountId(number))).await);
            }
            assert_eq!(taken.len(), permits, "{store_max}");
        }
        let reads = LongReads::with_max(2);
        let _one = permit_if_free(reads.permit(AccountId(1))).await.expect("a permit is free");
        assert!(permit_if_free(reads.permit(AccountId(1))).await.is_none());
        assert!(permit_if_free(reads.permit(AccountId(2))).await.is_some());
    }
}
