//! Cache of MTA-STS policies until they expire, and of failed fetches until they are retried.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, Timestamp};

use super::fetch::FetchRank;
use super::file::StoredPolicy;
use super::policy::Policy;

/// Pause after a failed fetch, as RFC 8461 3.3 suggests.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(5);
/// Refresh early: otherwise an attacker who blocks the policy host can let the policy expire.
const REFRESH_AFTER_MAX: Duration = Duration::from_hours(24);

/// Failed fetches are remembered in two generations of this size; when the younger is full, the older is dropped.
const GENERATION_FAILURES_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct PolicyCache {
    policies: HashMap<DomainName, CachedPolicy>,
    policies_max: usize,
    /// Failed fetches, apart from the policies, so that they never displace one. The first generation is the younger.
    failures: [HashMap<DomainName, FailedFetch>; 2],
    /// Number of uses so far. The policy with the smallest `last_use` is the least recently used.
    uses: u64,
}

#[derive(Debug)]
struct CachedPolicy {
    id: String,
    last_use: u64,
    policy: Arc<Policy>,
    fetched_at: Timestamp,
    refresh_at: Timestamp,
    expires_at: Timestamp,
}

#[derive(Debug)]
struct FailedFetch {
    id: String,
    retry_at: Timestamp,
}

impl PolicyCache {
    pub(super) fn new(policies_max: usize) -> Self {
        let (policies, failures) = (HashMap::new(), [HashMap::new(), HashMap::new()]);
        Self { policies, policies_max: policies_max.max(1), failures, uses: 0 }
    }

    /// The policy in force.
    pub(super) fn policy(&mut self, domain: &DomainName, now: Timestamp) -> Option<Arc<Policy>> {
        self.uses += 1;
        let cached = self.policies.get_mut(domain)?;
        cached.last_use = self.uses;
        (now < cached.expires_at).then(|| Arc::clone(&cached.policy))
    }

    /// Rank of a fetch of the policy announced as `id`; `None` if the policy should not be fetched, because it is known
    /// and fresh, or because a fetch failed recently.
    pub(super) fn fetch_rank(&self, domain: &DomainName, id: &str, now: Timestamp) -> Option<FetchRank> {
        let is_known =
            self.policies.get(domain).is_some_and(|cached| cached.id == id && now < cached.refresh_at);
        let failed = self.failures.iter().find_map(|failures| failures.get(domain));
        let is_paused = failed.is_some_and(|failed| failed.id == id && now < failed.retry_at);
        let rank = if failed.is_some() { FetchRank::AfterFailure } else { FetchRank::First };
        (!is_known && !is_paused).then_some(rank)
    }

    pub(super) fn keep(&mut self, domain: &DomainName, id: String, policy: Policy, now: Timestamp) {
        for failures in &mut self.failures {
            failures.remove(domain);
        }
        if !self.policies.contains_key(domain) && self.policies.len() >= self.policies_max {
            // This scans all policies, but takes far less time than the fetch before it.
            let oldest = self.policies.iter().min_by_key(|(_, cached)| cached.last_use);
            if let Some(oldest) = oldest.map(|(domain, _)| domain.clone()) {
                self.policies.remove(&oldest);
            }
        }
        self.uses += 1;
        let cached = CachedPolicy {
            id,
            last_use: self.uses,
            fetched_at: now,
            refresh_at: now.plus((policy.max_age / 2).min(REFRESH_AFTER_MAX)),
            expires_at: now.plus(policy.max_age),
            policy: Arc::new(policy),
        };
        self.policies.insert(domain.clone(), cached);
    }

    /// All policies, the most recently fetched last.
    pub(super) fn all(&self) -> Vec<StoredPolicy> {
        let stored = |(domain, cached): (&DomainName, &CachedPolicy)| StoredPolicy {
            domain: domain.clone(),
            id: cached.id.clone(),
            policy: Policy::clone(&cached.policy),
            fetched_at: cached.fetched_at,
        };
        let mut all: Vec<StoredPolicy> = self.policies.iter().map(stored).collect();
        all.sort_by_key(|stored| stored.fetched_at);
        all
    }

    pub(super) fn note_failure(&mut self, domain: &DomainName, id: String, now: Timestamp) {
        if self.failures[0].len() >= GENERATION_FAILURES_MAX {
            self.failures.swap(0, 1);
            self.failures[0].clear();
        }
        let failed = FailedFetch { id, retry_at: now.plus(PAUSE_AFTER_FAILURE) };
        self.failures[0].insert(domain.clone(), failed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::Mode;
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

    fn policy(max_age: Duration) -> Policy {
        Policy { mode: Mode::Enforce, mx: vec!["mx.example.com".to_owned()], max_age }
    }

    fn domain(name: &str) -> DomainName {
        DomainName::parse(name).unwrap()
    }

    #[test]
    fn policies_are_refreshed_daily_and_expire_after_their_max_age() {
        let (mut cache, domain) = (PolicyCache::new(10), domain("example.com"));
        assert_eq!(cache.fetch_rank(&domain, "1", START), Some(FetchRank::First));
        cache.keep(&domain, "1".to_owned(), policy(Duration::from_hours(72)), START);
        let after = |hours| START.plus(Duration::from_hours(hours));
        assert_eq!(cache.fetch_rank(&domain, "1", after(23)), None);
        assert_eq!(cache.fetch_rank(&domain, "1", after(24)), Some(FetchRank::First));
        assert_eq!(cache.fetch_rank(&domain, "2", START), Some(FetchRank::First));
        assert!(cache.policy(&domain, after(71)).is_some());
        assert!(cache.policy(&domain, after(72)).is_none());
    }

    #[test]
    fn a_failed_fetch_is_tried_again_after_a_pause_or_for_another_id() {
        let (mut cache, domain) = (PolicyCache::new(10), domain("example.com"));
        cache.note_failure(&domain, "1".to_owned(), START);
        assert_eq!(cache.fetch_rank(&domain, "1", START.plus(Duration::from_secs(299))), None);
        assert_eq!(cache.fetch_rank(&domain, "2", START), Some(FetchRank::AfterFailure));
        let later = START.plus(Duration::from_mins(5));
        assert_eq!(cache.fetch_rank(&domain, "1", later), Some(FetchRank::AfterFailure));
        cache.keep(&domain, "1".to_owned(), policy(Duration::from_hours(1)), later);
        assert_eq!(cache.fetch_rank(&domain, "2", later), Some(FetchRank::First), "the failure is forgotten");
    }

    #[test]
    fn failures_are_bounded_and_displace_no_policy() {
        let (mut cache, good) = (PolicyCache::new(2), domain("good.example"));
        cache.keep(&good, "1".to_owned(), policy(Duration::from_hours(1)), START);
        for number in 0..3 * GENERATION_FAILURES_MAX {
            cache.note_failure(&domain(&format!("bad{number}.example")), "1".to_owned(), START);
        }
        assert!(cache.policy(&good, START).is_some());
        let remembered: usize = cache.failures.iter().map(HashMap::len).sum();
        assert!(
            (GENERATION_FAILURES_MAX..=2 * GENERATION_FAILURES_MAX).contains(&remembered),
            "{remembered}"
        );
        let last = domain(&format!("bad{}.example", 3 * GENERATION_FAILURES_MAX - 1));
        assert_eq!(cache.fetch_rank(&last, "1", START), None);
    }

    #[test]
    fn the_least_recently_used_policy_is_dropped_first() {
        let mut cache = PolicyCache::new(2);
        for name in ["a.example", "b.example"] {
            cache.keep(&domain(name), "1".to_owned(), policy(Duration::from_hours(1)), START);
        }
        assert!(cache.policy(&domain("a.example"), START).is_some());
        cache.keep(&domain("c.example"), "1".to_owned(), policy(Duration::from_hours(1)), START);
        let known =
            ["a.example", "b.example", "c.example"].map(|name| cache.policy(&domain(name), START).is_some());
        assert_eq!(known, [true, false, true]);
    }
}
