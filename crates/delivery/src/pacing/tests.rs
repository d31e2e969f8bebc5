//! The states one after the other, and what holds whatever happens.

use proptest::prelude::*;

use super::*;

const LIMITS: PacingLimits = PacingLimits { connections_max: 16, per_minute: Some(480.0) };
const WORDS: &str = "421 4.7.28 slow down";

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_794_711_600_000_000).plus(Duration::from_secs(seconds))
}

#[track_caller]
fn check(pacing: &mut Pacing, seconds: u64, state: PacingState, connections_max: u32, per_minute: f64) {
    let pace = pacing.poll(at(seconds));
    assert_eq!(
        (pace.state, pace.connections_max, pace.per_minute),
        (state, connections_max, Some(per_minute))
    );
    assert_eq!(pace.reason.is_some(), state != PacingState::Normal);
}

/// Throttled four times in a row, without success in between.
fn suspended() -> Pacing {
    let mut pacing = Pacing::new(LIMITS);
    for seconds in [0, 30, 60, 90] {
        pacing.on_throttled(at(seconds), WORDS);
    }
    pacing
}

#[test]
fn a_signal_halves_the_pace_and_quiet_minutes_bring_it_back() {
    let mut pacing = Pacing::new(LIMITS);
    check(&mut pacing, 0, PacingState::Normal, 16, 480.0);
    pacing.on_throttled(at(0), WORDS);
    check(&mut pacing, 59, PacingState::Slowed, 8, 240.0);
    check(&mut pacing, 60, PacingState::Slowed, 10, 300.0);
    check(&mut pacing, 180, PacingState::Slowed, 14, 420.0);
    check(&mut pacing, 240, PacingState::Normal, 16, 480.0);
}

#[test]
fn the_reason_and_the_next_change_are_told() {
    let mut pacing = Pacing::new(LIMITS);
    pacing.on_throttled(at(0), WORDS);
    let pace = pacing.poll(at(1));
    assert_eq!((pace.reason.as_deref(), pace.until), (Some(WORDS), Some(at(60))));
    let pace = suspended().poll(at(91));
    assert_eq!((pace.reason.as_deref(), pace.until), (Some(WORDS), Some(at(390))));
}

#[test]
fn many_signals_at_once_are_one() {
    let mut pacing = Pacing::new(LIMITS);
    for seconds in 0..30 {
        pacing.on_throttled(at(seconds), WORDS);
    }
    check(&mut pacing, 30, PacingState::Slowed, 8, 240.0);
    pacing.on_throttled(at(30), WORDS);
    check(&mut pacing, 31, PacingState::Slowed, 4, 120.0);
}

#[test]
fn repeated_signals_suspend() {
    let mut pacing = suspended();
    check(&mut pacing, 90, PacingState::Suspended, 0, 0.0);
    check(&mut pacing, 389, PacingState::Suspended, 0, 0.0);
    check(&mut pacing, 390, PacingState::Probing, 1, 6.0);
}

#[test]
fn signals_with_enough_accepted_messages_between_them_do_not_suspend() {
    let mut pacing = Pacing::new(LIMITS);
    for round in 0..20 {
        pacing.on_throttled(at(round * 30), WORDS);
        for _ in 0..ACCEPTED_ENOUGH {
            pacing.on_accepted(at(round * 30 + 1));
        }
        assert_eq!(pacing.poll(at(round * 30 + 2)).state, PacingState::Slowed);
    }
    // Down to the smallest pace, and no further.
    check(&mut pacing, 600, PacingState::Slowed, 1, 1.0);
}

#[test]
fn signals_far_apart_do_not_suspend() {
    let mut pacing = Pacing::new(LIMITS);
    for round in 0..20 {
        pacing.on_throttled(at(round * 120), WORDS);
        assert_eq!(pacing.poll(at(round * 120)).state, PacingState::Slowed);
    }
}

#[test]
fn an_accepted_probe_recovers_step_by_step() {
    let mut pacing = suspended();
    pacing.on_accepted(at(400));
    check(&mut pacing, 400, PacingState::Recovering, 2, 60.0);
    check(&mut pacing, 459, PacingState::Recovering, 2, 60.0);
    check(&mut pacing, 460, PacingState::Recovering, 4, 120.0);
    check(&mut pacing, 520, PacingState::Recovering, 8, 240.0);
    check(&mut pacing, 580, PacingState::Normal, 16, 480.0);
}

#[test]
fn a_throttled_probe_suspends_for_longer_up_to_an_hour() {
    let mut pacing = suspended();
    let mut now = 390;
    for minutes in [10, 20, 40, 60, 60, 60] {
        assert_eq!(pacing.poll(at(now)).state, PacingState::Probing);
        pacing.on_throttled(at(now), WORDS);
        assert_eq!(pacing.poll(at(now)).until, Some(at(now + minutes * 60)));
        now += minutes * 60;
    }
}

#[test]
fn a_normal_state_makes_the_next_suspension_short_again() {
    let mut pacing = suspended();
    pacing.on_throttled(at(390), WORDS);
    pacing.on_accepted(at(1_000));
    assert_eq!(pacing.poll(at(2_000)).state, PacingState::Normal);
    for seconds in [2_000, 2_030, 2_060, 2_090] {
        pacing.on_throttled(at(seconds), WORDS);
    }
    assert_eq!(pacing.poll(at(2_090)).until, Some(at(2_390)));
}

#[test]
fn late_replies_do_not_move_a_suspension() {
    let mut pacing = suspended();
    pacing.on_throttled(at(100), "other words");
    pacing.on_accepted(at(200));
    check(&mut pacing, 389, PacingState::Suspended, 0, 0.0);
    assert_eq!(pacing.poll(at(389)).reason.as_deref(), Some(WORDS));
}

#[test]
fn throttling_during_recovery_slows_down() {
    let mut pacing = suspended();
    pacing.on_accepted(at(400));
    pacing.on_throttled(at(520), WORDS);
    check(&mut pacing, 520, PacingState::Slowed, 4, 120.0);
}

#[test]
fn a_stored_suspension_goes_on_and_is_probed() {
    let mut pacing = Pacing::new(LIMITS);
    pacing.restore(at(100), WORDS);
    check(&mut pacing, 99, PacingState::Suspended, 0, 0.0);
    check(&mut pacing, 100, PacingState::Probing, 1, 6.0);
    pacing.on_throttled(at(100), WORDS);
    assert_eq!(pacing.poll(at(100)).until, Some(at(700)), "longer than a first one");
}

#[test]
fn a_provider_without_a_rate_gets_one_while_it_is_slowed() {
    let mut pacing = Pacing::new(PacingLimits { connections_max: 10, per_minute: None });
    assert_eq!(pacing.poll(at(0)).per_minute, None);
    pacing.on_throttled(at(0), WORDS);
    check(&mut pacing, 0, PacingState::Slowed, 5, 300.0);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Throttled,
    Accepted,
    Restored,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Throttled),
        8 => Just(Step::Accepted),
        1 => Just(Step::Restored),
        6 => (0_u64..100).prop_map(Step::Wait),
        1 => (0_u64..8_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..120)
}

fn limits() -> impl Strategy<Value = PacingLimits> {
    let per_minute = prop::option::of(prop_oneof![0.1_f64..2.0, 2.0_f64..5_000.0]);
    (1_u32..100, per_minute)
        .prop_map(|(connections_max, per_minute)| PacingLimits { connections_max, per_minute })
}

proptest! {
    #[test]
    fn whatever_happens_the_limits_hold_and_success_leads_back_to_normal(limits in limits(), steps in steps()) {
        let mut pacing = Pacing::new(limits);
        let mut now = 0;
        for step in steps {
            match step {
                Step::Throttled => pacing.on_throttled(at(now), WORDS),
                Step::Accepted => pacing.on_accepted(at(now)),
                Step::Restored => pacing.restore(at(now + 50), WORDS),
                Step::Wait(seconds) => now += seconds,
            }
            let pace = pacing.poll(at(now));
            prop_assert!(pace.connections_max <= limits.connections_max);
            if let Some(limit) = limits.per_minute {
                prop_assert!(pace.per_minute.is_some_and(|rate| rate <= limit));
            }
            let is_suspended = pace.state == PacingState::Suspended;
            prop_assert_eq!(pace.connections_max == 0, is_suspended);
            prop_assert_eq!(pace.per_minute.is_some_and(|rate| rate <= 0.0), is_suspended);
            // What does not change by itself takes messages, and so changes with the next one.
            prop_assert!(pace.until.is_none_or(|until| until > at(now)));
            prop_assert!(pace.until.is_some() || !is_suspended);
        }
        // Two hours: the longest suspension, and the way back.
        let end = now + 7_200;
        while now < end && pacing.poll(at(now)).state != PacingState::Normal {
            if pacing.poll(at(now)).connections_max > 0 {
                pacing.on_accepted(at(now));
            }
            now += 20;
        }
        prop_assert_eq!(pacing.poll(at(now)).state, PacingState::Normal);
        prop_assert_eq!(pacing.poll(at(now)).per_minute, limits.per_minute);
    }

    #[test]
    fn steady_throttling_makes_the_pace_smaller_and_smaller(limits in limits()) {
        let mut pacing = Pacing::new(limits);
        let mut before = pacing.poll(at(0)).connections_max;
        for round in 0..4 {
            pacing.on_throttled(at(round * 30), WORDS);
            let connections = pacing.poll(at(round * 30)).connections_max;
            prop_assert!(connections < before || connections == 1);
            before = connections;
        }
        prop_assert_eq!(pacing.poll(at(90)).state, PacingState::Suspended);
    }
}
