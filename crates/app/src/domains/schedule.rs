//! Time of a domain's next check: soon if a change is expected, then less and less often, finally after the longest
//! interval (six hours by default).

use std::time::Duration;

use postroad_model::Timestamp;
use postroad_store::Domain;
use rand::Rng;

/// Limits of the pause between automatic checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckIntervals {
    /// Shortest pause; also the delay before the first check, because the owner needs time to publish the records.
    pub shortest: Duration,
    /// Pause for domains where no change is expected.
    pub longest: Duration,
}

impl Default for CheckIntervals {
    fn default() -> Self {
        Self { shortest: Duration::from_mins(1), longest: Duration::from_hours(6) }
    }
}

/// Grace period in which a failing domain stays verified. The domain is checked at the end of the period at the latest.
const FAILING_GRACE: Duration = Duration::from_hours(72);

/// Results of a check that determine when the next one is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Findings {
    /// Whether all required records and a DKIM key are verified; `None` if there is no verdict.
    pub(super) is_good: Option<bool>,
    /// Whether all records are verified, including optional ones, and the tracking host is not known to fail.
    pub(super) is_complete: bool,
    /// Time since which the newest key has been waiting for its record.
    pub(super) key_waits_since: Option<Timestamp>,
    /// Time since which one of the domain's hosts in use (return path or tracking host) has been failing.
    pub(super) host_fails_since: Option<Timestamp>,
}

/// Time of the next check after a check that ends `now`.
pub(super) fn next_check_at(
    domain: &Domain,
    findings: Findings,
    intervals: CheckIntervals,
    now: Timestamp,
    rng: &mut impl Rng,
) -> Timestamp {
    let Findings { is_good, is_complete, key_waits_since, host_fails_since } = findings;
    let change_expected_since = match (is_good, domain.failing_since) {
        // Some owners add the optional records a little later.
        (Some(true), _) if !is_complete => key_waits_since.max(host_fails_since).or(Some(domain.created_at)),
        (Some(true), _) => key_waits_since.max(host_fails_since),
        (Some(false), None) if domain.good_since.is_some() => Some(now),
        (_, failing_since) => failing_since.max(key_waits_since).or(Some(domain.created_at)),
    };
    let pause = change_expected_since.map_or(intervals.longest, |since| {
        (now.since(since) / 4).min(intervals.longest).max(intervals.shortest)
    });
    // Jitter spreads domains that were added or failed together.
    let next = now.plus(pause.mul_f64(rng.random_range(0.9..1.1)));
    match domain.failing_since.map(|since| since.plus(FAILING_GRACE)) {
        Some(end) if is_good != Some(true) && now < end => next.min(end),
        _ => next,
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::{AccountId, DomainId, DomainName};
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_micros(0).plus(Duration::from_mins(minutes))
    }

    fn domain() -> Domain {
        Domain {
            id: DomainId(1),
            account_id: AccountId(1),
            account_name: String::new(),
            server_id: None,
            server_name: None,
            name: DomainName::parse("example.com").unwrap(),
            verified_by: None,
            verified_at: None,
            good_since: None,
            failing_since: None,
            checked_at: None,
            next_check_at: at(0),
            records: "[]".to_owned(),
            result_begun_at: None,
            return_path: postroad_store::NameUse::default(),
            has_track_alias: false,
            track_host: postroad_store::NameUse::default(),
            tracking: postroad_store::DomainTracking::default(),
            keys: Vec::new(),
            created_at: at(0),
            updated_at: at(0),
        }
    }

    fn next(domain: &Domain, findings: Findings, now: Timestamp) -> Timestamp {
        next_check_at(domain, findings, CheckIntervals::default(), now, &mut StdRng::seed_from_u64(7))
    }

    fn pause_minutes(domain: &Domain, findings: Findings, now: u64) -> f64 {
        next(domain, findings, at(now)).since(at(now)).as_secs_f64() / 60.0
    }

    const GOOD: Findings =
        Findings { is_good: Some(true), is_complete: true, key_waits_since: None, host_fails_since: None };
    const BAD: Findings = Findings { is_good: Some(false), is_complete: false, ..GOOD };

    #[test]
    fn a_new_domain_is_checked_less_and_less_often() {
        let new = domain();
        let mut before = 0.0;
        for (age, expected) in [(1, 1.0), (60, 15.0), (600, 150.0), (3_000, 360.0), (100_000, 360.0)] {
            let pause = pause_minutes(&new, BAD, age);
            assert!((expected * 0.9..=expected * 1.1).contains(&pause), "{age}: {pause}");
            assert!(pause >= before * 0.8);
            before = pause;
        }
        let trouble = Findings { is_good: None, ..BAD };
        assert!(pause_minutes(&new, trouble, 60) < 20.0, "trouble of the DNS is no reason to wait longer");
    }

    #[test]
    fn a_good_domain_is_checked_every_six_hours_unless_a_record_is_missing() {
        let good = Domain { good_since: Some(at(10)), ..domain() };
        assert!((320.0..=400.0).contains(&pause_minutes(&good, GOOD, 60)));
        let with_waiting_key = Findings { key_waits_since: Some(at(4_990)), ..GOOD };
        assert!(pause_minutes(&good, with_waiting_key, 5_000) < 5.0);
        let with_failing_host = Findings { host_fails_since: Some(at(4_990)), ..GOOD };
        assert!(
            pause_minutes(&good, with_failing_host, 5_000) < 5.0,
            "a host in use that fails is checked again soon"
        );
        let without_aliases = Findings { is_complete: false, ..GOOD };
        assert!(pause_minutes(&good, without_aliases, 60) < 20.0, "the aliases may be added soon");
        assert!((320.0..=400.0).contains(&pause_minutes(&good, without_aliases, 5_000)));
    }

    #[test]
    fn a_failing_domain_is_checked_soon_and_at_the_end_of_its_grace_period() {
        let good = Domain { good_since: Some(at(10)), ..domain() };
        assert!(pause_minutes(&good, BAD, 100_000) < 1.2, "it has just begun to fail");
        let failing = Domain { failing_since: Some(at(0)), ..domain() };
        assert!((pause_minutes(&failing, BAD, 72 * 60 - 30) - 30.0).abs() < 0.01);
        assert!(pause_minutes(&failing, BAD, 72 * 60) > 300.0);
    }
}
