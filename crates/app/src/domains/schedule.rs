//! When a domain is checked again (contract 8): soon after something is expected to change, then less and less often, and
//! every six hours for good.

use std::time::Duration;

use postroad_model::Timestamp;
use postroad_store::{Domain, KeyState};
use rand::Rng;

/// Whoever adds a domain needs a moment to publish its records.
pub(super) const FIRST_CHECK_AFTER: Duration = Duration::from_mins(1);
const EVERY_MIN: Duration = Duration::from_mins(1);
const EVERY_MAX: Duration = Duration::from_hours(6);
/// A domain that fails is looked at again in time for the end of its grace.
const FAILING_MAX: Duration = Duration::from_hours(72);

/// The next check after one that ends `now`. `is_good` of `None`: the DNS gave no verdict. `failing_name`: since when a name
/// that is in use is wrong.
pub(super) fn next_check_at(
    domain: &Domain,
    is_good: Option<bool>,
    failing_name: Option<Timestamp>,
    now: Timestamp,
    rng: &mut impl Rng,
) -> Timestamp {
    let waiting_key =
        domain.keys.iter().filter(|key| key.state == KeyState::Pending).map(|key| key.created_at).max();
    let waits_since = match (is_good, domain.failing_since) {
        (Some(true), _) => waiting_key.max(failing_name),
        (Some(false), None) if domain.good_since.is_some() => Some(now),
        (_, failing_since) => failing_since.max(waiting_key).or(Some(domain.created_at)),
    };
    let every = waits_since.map_or(EVERY_MAX, |since| (now.since(since) / 4).clamp(EVERY_MIN, EVERY_MAX));
    // Jitter spreads domains that were added or failed together.
    let next = now.plus(every.mul_f64(rng.random_range(0.9..1.1)));
    match domain.failing_since.map(|since| since.plus(FAILING_MAX)) {
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

    fn minutes(domain: &Domain, is_good: Option<bool>, now: u64) -> f64 {
        let next = next_check_at(domain, is_good, None, at(now), &mut StdRng::seed_from_u64(7));
        next.since(at(now)).as_secs_f64() / 60.0
    }

    #[test]
    fn a_new_domain_is_asked_for_less_and_less_often() {
        let new = domain();
        let mut before = 0.0;
        for (age, expected) in [(1, 1.0), (60, 15.0), (600, 150.0), (3_000, 360.0), (100_000, 360.0)] {
            let pause = minutes(&new, Some(false), age);
            assert!((expected * 0.9..=expected * 1.1).contains(&pause), "{age}: {pause}");
            assert!(pause >= before * 0.8);
            before = pause;
        }
        assert!(minutes(&new, None, 60) < 20.0, "trouble of the DNS is no reason to wait longer");
    }

    #[test]
    fn a_good_domain_is_asked_for_every_six_hours_unless_a_key_waits() {
        let mut good = Domain { good_since: Some(at(10)), ..domain() };
        assert!((320.0..=400.0).contains(&minutes(&good, Some(true), 5_000)));
        good.keys = vec![postroad_store::DomainKey {
            id: postroad_model::DomainKeyId(1),
            selector: "s".to_owned(),
            algorithm: postroad_store::KeyAlgorithm::Rsa,
            public_spki: Vec::new(),
            state: KeyState::Pending,
            state_since: at(4_990),
            fails_since: None,
            created_at: at(4_990),
        }];
        assert!(minutes(&good, Some(true), 5_000) < 5.0);
        good.keys.clear();
        let next =
            next_check_at(&good, Some(true), Some(at(4_990)), at(5_000), &mut StdRng::seed_from_u64(7));
        assert!(next < at(5_005), "a name in use that fails is looked at soon");
    }

    #[test]
    fn a_failing_domain_is_asked_for_soon_and_at_the_end_of_its_grace() {
        let good = Domain { good_since: Some(at(10)), ..domain() };
        assert!(minutes(&good, Some(false), 100_000) < 1.2, "it has just begun to fail");
        let failing = Domain { failing_since: Some(at(0)), ..domain() };
        assert!((minutes(&failing, Some(false), 72 * 60 - 30) - 30.0).abs() < 0.01);
        assert!(minutes(&failing, Some(false), 72 * 60) > 300.0);
    }
}
