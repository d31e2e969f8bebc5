//! Cache of MTA-STS policies until they expire, and of failed fetches until they are retried.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, Timestamp};

use super::file::Stored;
use super::policy::Policy;

/// RFC 8461 3.3 leaves the pause after a failed fetch open, and suggests five minutes.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(5);
/// Refresh early: otherwise an attacker who blocks the policy host can let the policy expire.
const REFRESH_AFTER_MAX: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) struct PolicyCache {
    entries: HashMap<DomainName, Entry>,
    entries_max: usize,
    /// Grows with every use; the smallest value is the least recently used.
    uses: u64,
}

#[derive(Debug, Default)]
struct Entry {
    kept: Option<Kept>,
    failed: Option<Failed>,
    last_use: u64,
}

#[derive(Debug)]
struct Kept {
    id: String,
    policy: Arc<Policy>,
    fetched_at: Timestamp,
    refresh_at: Timestamp,
    expires_at: Timestamp,
}

#[derive(Debug)]
struct Failed {
    id: String,
    retry_at: Timestamp,
}

impl PolicyCache {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries: HashMap::new(), entries_max: entries_max.max(1), uses: 0 }
    }

    /// The policy in force.
    pub(super) fn policy(&mut self, domain: &DomainName, now: Timestamp) -> Option<Arc<Policy>> {
        self.uses += 1;
        let entry = self.entries.get_mut(domain)?;
        entry.last_use = self.uses;
        entry.kept.as_ref().filter(|kept| now < kept.expires_at).map(|kept| Arc::clone(&kept.policy))
    }

    /// Whether the policy announced as `id` should be fetched: unknown or old, and no recent failure.
    pub(super) fn wants_fetch(&self, domain: &DomainName, id: &str, now: Timestamp) -> bool {
        let Some(entry) = self.entries.get(domain) else { return true };
        let is_known = entry.kept.as_ref().is_some_and(|kept| kept.id == id && now < kept.refresh_at);
        let is_paused = entry.failed.as_ref().is_some_and(|failed| failed.id == id && now < failed.retry_at);
        !is_known && !is_paused
    }

    pub(super) fn keep(&mut self, domain: &DomainName, id: String, policy: Policy, now: Timestamp) {
        let kept = Kept {
            id,
            fetched_at: now,
            refresh_at: now.plus((policy.max_age / 2).min(REFRESH_AFTER_MAX)),
            expires_at: now.plus(policy.max_age),
            policy: Arc::new(policy),
        };
        let entry = self.entry(domain);
        entry.kept = Some(kept);
        entry.failed = None;
    }

    /// All policies, the most recently fetched last.
    pub(super) fn all(&self) -> Vec<Stored> {
        let stored = |(domain, entry): (&DomainName, &Entry)| {
            let kept = entry.kept.as_ref()?;
            Some(Stored {
                domain: domain.clone(),
                id: kept.id.clone(),
                policy: Policy::clone(&kept.policy),
                fetched_at: kept.fetched_at,
            })
        };
        let mut all: Vec<Stored> = self.entries.iter().filter_map(stored).collect();
        all.sort_by_key(|stored| stored.fetched_at);
        all
    }

    pub(super) fn note_failure(&mut self, domain: &DomainName, id: String, now: Timestamp) {
        self.entry(domain).failed = Some(Failed { id, retry_at: now.plus(PAUSE_AFTER_FAILURE) });
    }

    fn entry(&mut self, domain: &DomainName) -> &mut Entry {
        if !self.entries.contains_key(domain) && self.entries.len() >= self.entries_max {
            // A scan of all entries, after a fetch that took a thousand times longer.
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            if let Some(oldest) = oldest.map(|(domain, _)| domain.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.uses += 1;
        let entry = self.entries.entry(domain.clone()).or_default();
        entry.last_use = self.uses;
        entry
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
    fn policies_are_refreshed_daily_and_expire_with_their_age() {
        let (mut cache, domain) = (PolicyCache::new(10), domain("example.com"));
        assert!(cache.wants_fetch(&domain, "1", START));
        cache.keep(&domain, "1".to_owned(), policy(Duration::from_hours(72)), START);
        let after = |hours| START.plus(Duration::from_hours(hours));
        assert!(!cache.wants_fetch(&domain, "1", after(23)));
        assert!(cache.wants_fetch(&domain, "1", after(24)));
        assert!(cache.wants_fetch(&domain, "2", START));
        assert!(cache.policy(&domain, after(71)).is_some());
        assert!(cache.policy(&domain, after(72)).is_none());
    }

    #[test]
    fn a_failed_fetch_is_tried_again_after_a_pause_or_for_another_id() {
        let (mut cache, domain) = (PolicyCache::new(10), domain("example.com"));
        cache.note_failure(&domain, "1".to_owned(), START);
        assert!(!cache.wants_fetch(&domain, "1", START.plus(Duration::from_secs(299))));
        assert!(cache.wants_fetch(&domain, "2", START));
        assert!(cache.wants_fetch(&domain, "1", START.plus(Duration::from_mins(5))));
    }

    #[test]
    fn the_least_recently_used_goes_first() {
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
