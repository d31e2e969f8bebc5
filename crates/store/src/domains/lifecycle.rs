//! Changes that a check makes to a domain and its keys, as pure functions. `record_check` reads the old state and
//! writes the new one.

use std::time::Duration;

use postroad_model::{DomainKeyId, Timestamp};

use super::domain::{DomainKey, KeyState, NameUse, VerifiedBy};

/// A domain whose records fail for this long may no longer send, unless the operator verified it. A key whose record is
/// missing for this long no longer signs.
pub(super) const FAILING_MAX: Duration = Duration::from_hours(72);
/// The record of a replaced key is still needed for this long: mail that it signed may be in transit.
const RETIRING_DURATION: Duration = Duration::from_hours(7 * 24);

/// A customer's own name (bounce domain, tracking host) is no longer used after this many failed checks in a row, over
/// at least `NAME_FAILING_MIN`. One or two wrong DNS answers change nothing. But a name that is really gone must not be
/// used for days, because receivers refuse mail from domains that do not exist.
const NAME_FAILS_MAX: u32 = 3;
const NAME_FAILING_MIN: Duration = Duration::from_mins(30);

/// The part of a domain that a check can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DomainState {
    pub(super) verified_by: Option<VerifiedBy>,
    pub(super) verified_at: Option<Timestamp>,
    pub(super) good_since: Option<Timestamp>,
    pub(super) failing_since: Option<Timestamp>,
}

/// A change that customers get an event for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DomainChange {
    Verified,
    Failing,
}

/// State of a domain after a check, and the change that customers get an event for. `is_good` is `None` if the DNS gave
/// no verdict.
pub(super) fn after_check(
    before: DomainState,
    is_good: Option<bool>,
    now: Timestamp,
) -> (DomainState, Option<DomainChange>) {
    let Some(is_good) = is_good else { return (before, None) };
    if is_good {
        let needs_event = before.verified_by.is_none() || before.failing_since.is_some();
        let after = DomainState {
            verified_by: before.verified_by.or(Some(VerifiedBy::Dns)),
            verified_at: before.verified_at.or(Some(now)),
            good_since: before.good_since.or(Some(now)),
            failing_since: None,
        };
        return (after, needs_event.then_some(DomainChange::Verified));
    }
    if before.good_since.is_some() {
        let after = DomainState { good_since: None, failing_since: Some(now), ..before };
        return (after, Some(DomainChange::Failing));
    }
    let has_failed_too_long = before.failing_since.is_some_and(|since| since.plus(FAILING_MAX) <= now);
    if has_failed_too_long && before.verified_by == Some(VerifiedBy::Dns) {
        return (DomainState { verified_by: None, verified_at: None, ..before }, None);
    }
    (before, None)
}

/// How one of the customer's own names is used after a check. `is_good` is `None` if the DNS gave no verdict.
pub(super) fn name_after_check(before: NameUse, is_good: Option<bool>, now: Timestamp) -> NameUse {
    match (is_good, before.since) {
        (None, _) => before,
        (Some(true), since) => NameUse { since: since.or(Some(now)), ..NameUse::default() },
        (Some(false), None) => NameUse::default(),
        (Some(false), since) => {
            let fails_since = before.fails_since.unwrap_or(now);
            let fails = before.fails.saturating_add(1);
            if fails >= NAME_FAILS_MAX && fails_since.plus(NAME_FAILING_MIN) <= now {
                return NameUse::default();
            }
            NameUse { since, fails_since: Some(fails_since), fails }
        }
    }
}

/// Change of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyStep {
    Enter(KeyState),
    /// `true`: the DNS answers that the key's record is missing or wrong. `false`: the record is right again.
    SetFails(bool),
    Delete,
}

/// Changes of the keys after a check. `verdicts` are the results for the keys' records; a key without a verdict changes
/// only by age.
pub(super) fn key_steps(
    keys: &[DomainKey],
    verdicts: &[(DomainKeyId, bool)],
    now: Timestamp,
) -> Vec<(DomainKeyId, KeyStep)> {
    let verdict =
        |key: &DomainKey| verdicts.iter().find(|(id, _)| *id == key.id).map(|(_, is_good)| *is_good);
    let mut steps = Vec::new();
    for key in keys {
        match (key.state, verdict(key)) {
            (KeyState::Pending, Some(true)) => {
                let is_replaced =
                    |other: &&DomainKey| other.algorithm == key.algorithm && other.state == KeyState::Active;
                let replaced = keys.iter().filter(is_replaced);
                steps.extend(replaced.map(|old| (old.id, KeyStep::Enter(KeyState::Retiring))));
                steps.push((key.id, KeyStep::Enter(KeyState::Active)));
            }
            // Only if the verdict differs from the stored one.
            (KeyState::Active, Some(is_good)) if is_good == key.fails_since.is_some() => {
                steps.push((key.id, KeyStep::SetFails(!is_good)));
            }
            (KeyState::Retiring, _) if key.state_since.plus(RETIRING_DURATION) <= now => {
                steps.push((key.id, KeyStep::Delete));
            }
            _ => {}
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::domain::KeyAlgorithm;
    use super::*;

    fn hours(hours: u64) -> Timestamp {
        Timestamp::from_micros(0).plus(Duration::from_hours(hours))
    }

    const NEW: DomainState =
        DomainState { verified_by: None, verified_at: None, good_since: None, failing_since: None };

    #[test]
    fn a_verified_domain_whose_records_fail_for_72_hours_is_no_longer_verified() {
        let (verified, change) = after_check(NEW, Some(true), hours(1));
        assert_eq!((verified.verified_by, change), (Some(VerifiedBy::Dns), Some(DomainChange::Verified)));
        assert_eq!(after_check(verified, Some(true), hours(2)), (verified, None));

        let (failing, change) = after_check(verified, Some(false), hours(3));
        assert_eq!((failing.failing_since, change), (Some(hours(3)), Some(DomainChange::Failing)));
        assert_eq!(failing.verified_by, Some(VerifiedBy::Dns), "one failing check does not stop sending");
        assert_eq!(after_check(failing, Some(false), hours(74)), (failing, None));
        let (recovered, change) = after_check(failing, Some(true), hours(74));
        assert_eq!((recovered.failing_since, change), (None, Some(DomainChange::Verified)));

        let (stopped, change) = after_check(failing, Some(false), hours(75));
        assert_eq!((stopped.verified_by, stopped.verified_at, change), (None, None, None));
        assert_eq!(stopped.failing_since, Some(hours(3)));
        assert_eq!(after_check(stopped, Some(false), hours(200)), (stopped, None));
        let (again, change) = after_check(stopped, Some(true), hours(201));
        assert_eq!((again.verified_at, change), (Some(hours(201)), Some(DomainChange::Verified)));
    }

    #[test]
    fn a_check_without_verdict_changes_nothing() {
        let (verified, _) = after_check(NEW, Some(true), hours(1));
        let (failing, _) = after_check(verified, Some(false), hours(2));
        for state in [NEW, verified, failing] {
            assert_eq!(after_check(state, None, hours(1_000)), (state, None));
        }
    }

    #[test]
    fn a_domain_verified_by_the_operator_stays_verified_while_its_records_fail() {
        let by_operator =
            DomainState { verified_by: Some(VerifiedBy::Operator), verified_at: Some(hours(1)), ..NEW };
        assert_eq!(after_check(by_operator, Some(false), hours(2)), (by_operator, None));
        let (good, change) = after_check(by_operator, Some(true), hours(3));
        assert_eq!((good.verified_by, change), (Some(VerifiedBy::Operator), None));
        let (failing, change) = after_check(good, Some(false), hours(4));
        assert_eq!(change, Some(DomainChange::Failing));
        let (late, _) = after_check(failing, Some(false), hours(400));
        assert_eq!(late.verified_by, Some(VerifiedBy::Operator));
    }

    #[test]
    fn a_customer_host_name_is_used_until_three_checks_over_half_an_hour_find_it_wrong() {
        let minutes = |minutes: u64| Timestamp::from_micros(0).plus(Duration::from_mins(minutes));
        let good = name_after_check(NameUse::default(), Some(true), minutes(1));
        assert_eq!(good, NameUse { since: Some(minutes(1)), ..NameUse::default() });
        assert_eq!(name_after_check(good, None, minutes(1_000)), good, "no verdict");
        let mut fails = good;
        for minute in [10, 11, 12, 13, 39] {
            fails = name_after_check(fails, Some(false), minutes(minute));
            assert_eq!((fails.since, fails.fails_since), (good.since, Some(minutes(10))), "{minute}");
        }
        assert_eq!(name_after_check(fails, Some(true), minutes(40)), good, "it is back");
        assert_eq!(name_after_check(fails, Some(false), minutes(40)), NameUse::default());
        let late = name_after_check(good, Some(false), minutes(10));
        let late = name_after_check(late, Some(false), minutes(500));
        assert!(late.is_used(), "two failed checks are not enough");
        let unused = name_after_check(NameUse::default(), Some(false), minutes(1));
        assert_eq!(unused, NameUse::default());
    }

    fn key(id: i64, algorithm: KeyAlgorithm, state: KeyState) -> DomainKey {
        DomainKey {
            id: DomainKeyId(id),
            selector: format!("s{id}"),
            algorithm,
            public_spki: Vec::new(),
            state,
            state_since: hours(0),
            fails_since: None,
            created_at: hours(0),
        }
    }

    #[test]
    fn a_pending_key_becomes_active_only_when_its_record_is_found() {
        let keys = [
            key(1, KeyAlgorithm::Rsa, KeyState::Active),
            key(2, KeyAlgorithm::Ed25519, KeyState::Active),
            key(3, KeyAlgorithm::Rsa, KeyState::Pending),
        ];
        assert_eq!(key_steps(&keys, &[(DomainKeyId(3), false)], hours(1)), []);
        assert_eq!(key_steps(&keys, &[], hours(1)), []);
        assert_eq!(
            key_steps(&keys, &[(DomainKeyId(1), true), (DomainKeyId(3), true)], hours(1)),
            [
                (DomainKeyId(1), KeyStep::Enter(KeyState::Retiring)),
                (DomainKeyId(3), KeyStep::Enter(KeyState::Active)),
            ]
        );
    }

    #[test]
    fn a_replaced_key_is_deleted_after_a_week() {
        let keys = [key(1, KeyAlgorithm::Rsa, KeyState::Retiring)];
        assert_eq!(key_steps(&keys, &[(DomainKeyId(1), true)], hours(7 * 24 - 1)), []);
        assert_eq!(key_steps(&keys, &[], hours(7 * 24)), [(DomainKeyId(1), KeyStep::Delete)]);
    }

    #[test]
    fn an_active_key_is_failing_while_its_record_is_missing_or_wrong() {
        let mut keys = [key(1, KeyAlgorithm::Rsa, KeyState::Active)];
        let denied = [(DomainKeyId(1), false)];
        assert_eq!(key_steps(&keys, &denied, hours(1)), [(DomainKeyId(1), KeyStep::SetFails(true))]);
        keys[0].fails_since = Some(hours(1));
        assert_eq!(key_steps(&keys, &denied, hours(2)), []);
        let found = [(DomainKeyId(1), true)];
        assert_eq!(key_steps(&keys, &found, hours(3)), [(DomainKeyId(1), KeyStep::SetFails(false))]);
    }
}
