//! Tests of the single estimates; `schedule::receivers` tests their interaction.

use std::time::Duration;

use postroad_model::{ServerId, Timestamp};
use proptest::prelude::*;

use super::*;

fn refusal() -> Reason {
    Reason::of_connection("421 4.7.28 slow down")
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_micros(1_794_711_600_000_000).plus(Duration::from_secs_f64(seconds))
}

/// Sends as fast as it may for `length` seconds, to a receiver that accepts one message per `interval`, and about 20 at
/// once after a pause. Returns how many were accepted and refused.
fn play(rate: &mut RateEstimate, from: f64, length: f64, interval: f64) -> (u32, u32) {
    let (mut now, mut free_at, mut accepted, mut refused) = (from, from, 0, 0);
    while now < from + length {
        if rate.blocked_until(at(now)).is_none() {
            rate.on_send(at(now));
            if now >= free_at {
                free_at = free_at.max(now - 20.0 * interval) + interval;
                rate.on_accepted(at(now));
                accepted += 1;
            } else {
                rate.on_too_fast(&refusal(), at(now));
                refused += 1;
            }
        }
        now += 0.01;
    }
    (accepted, refused)
}

#[test]
fn sending_is_not_limited_before_the_first_refusal() {
    let mut rate = RateEstimate::default();
    for message in 0..10_000 {
        let now = at(f64::from(message) * 0.001);
        assert!(rate.blocked_until(now).is_none());
        rate.on_send(now);
        rate.on_accepted(now);
    }
    assert!(!rate.is_limiting() && rate.per_minute(at(10.0)).is_none());
}

#[test]
fn a_rate_is_found_and_kept_with_few_refusals() {
    let mut rate = RateEstimate::default();
    play(&mut rate, 0.0, 120.0, 0.2);
    let (accepted, refused) = play(&mut rate, 120.0, 600.0, 0.2);
    assert!(accepted > 2_700, "{accepted} of 3,000");
    assert!(refused < 30, "{refused}");
}

#[test]
fn refusals_of_messages_already_under_way_count_once() {
    let mut rate = RateEstimate::default();
    for message in 0..600 {
        rate.on_accepted(at(f64::from(message) * 0.1));
    }
    rate.on_too_fast(&refusal(), at(60.0));
    let before = rate.known().unwrap().0;
    for message in 0..20 {
        rate.on_too_fast(&refusal(), at(60.0 + f64::from(message) * 0.05));
    }
    let (after, reason) = rate.known().unwrap();
    assert!((after - before).abs() < 1e-9, "{before} {after}");
    assert_eq!(reason, refusal());
}

#[test]
fn after_a_pause_the_reply_to_one_message_decides_whether_sending_continues() {
    let mut rate = RateEstimate::default();
    rate.on_accepted(at(0.0));
    rate.on_too_fast(&refusal(), at(1.0));
    let until = rate.blocked_until(at(1.0)).unwrap();
    assert!(rate.blocked_until(until).is_none());
    rate.on_send(until);
    assert!(rate.blocked_until(until).is_some(), "the second message waits for the reply to the first");
    rate.on_accepted(until);
    let soon = until.plus(Duration::from_secs(20));
    assert!(rate.blocked_until(soon).is_none());
}

#[test]
fn after_too_many_connections_the_open_ones_are_the_limit_and_one_more_is_tried_later() {
    let mut estimate = ConnectionEstimate::default();
    assert_eq!(estimate.limit(at(0.0)), None);
    estimate.on_refused(3, &refusal(), at(0.0));
    assert_eq!(estimate.limit(at(1.0)), Some(3));
    assert!(estimate.blocked_until(at(1.0)).is_none());
    assert_eq!(estimate.limit(at(10.0)), Some(4));
    estimate.on_refused(3, &refusal(), at(10.0));
    assert_eq!((estimate.limit(at(25.0)), estimate.limit(at(30.0))), (Some(3), Some(4)));
    estimate.on_accepted(4, at(30.0));
    assert_eq!((estimate.limit(at(31.0)), estimate.limit(at(40.0))), (Some(4), Some(5)));
}

#[test]
fn a_receiver_that_accepts_no_connection_is_not_dialled_for_some_seconds() {
    let mut estimate = ConnectionEstimate::default();
    estimate.on_refused(0, &refusal(), at(0.0));
    assert_eq!(estimate.blocked_until(at(0.0)), Some(at(5.0)));
    estimate.on_refused(0, &refusal(), at(5.0));
    assert_eq!(estimate.blocked_until(at(5.0)), Some(at(15.0)));
    estimate.on_accepted(1, at(15.0));
    assert!(estimate.blocked_until(at(15.0)).is_none());
}

#[test]
fn a_second_connection_is_tried_ever_more_rarely_where_only_one_is_accepted() {
    let mut estimate = ConnectionEstimate::default();
    estimate.on_refused(0, &refusal(), at(0.0));
    estimate.on_accepted(1, at(5.0));
    estimate.on_refused(1, &refusal(), at(10.0));
    assert_eq!((estimate.limit(at(29.0)), estimate.limit(at(30.0))), (Some(1), Some(2)));
    estimate.on_refused(1, &refusal(), at(30.0));
    assert_eq!((estimate.limit(at(69.0)), estimate.limit(at(70.0))), (Some(1), Some(2)));
}

#[test]
fn a_standstill_begins_after_several_refusals_in_a_row_and_is_probed_every_45_seconds() {
    let mut standstill = Standstill::default();
    assert!(!standstill.on_refused(3, &refusal(), at(0.0)));
    assert!(!standstill.on_refused(3, &refusal(), at(1.0)));
    standstill.end();
    assert!(!standstill.on_refused(3, &refusal(), at(2.0)));
    assert!(!standstill.on_refused(3, &refusal(), at(3.0)));
    assert!(standstill.on_refused(3, &refusal(), at(4.0)));
    let mut now = standstill.blocked_until(at(4.0)).unwrap();
    for _ in 0..20 {
        standstill.on_send(now);
        standstill.on_refused(3, &refusal(), now);
        let next = standstill.blocked_until(now).unwrap();
        assert!(next.since(now) <= Duration::from_mins(1));
        now = next;
    }
    standstill.on_send(now);
    assert!(standstill.end());
    assert!(standstill.blocked_until(now).is_none());
}

#[test]
fn a_greylisting_time_is_learned_and_a_shorter_wait_is_tried_now_and_then() {
    let pauses = [1, 5, 10].map(Duration::from_mins);
    let mut greylist = GreylistTime::default();
    assert_eq!(greylist.pause(&pauses), None);
    greylist.refused_after(Duration::from_secs(62));
    greylist.accepted_after(Duration::from_secs(366));
    assert_eq!(greylist.pause(&pauses), Some(Duration::from_mins(5)));
    greylist.accepted_after(Duration::from_secs(302));
    let pauses: Vec<_> =
        (0..40).filter_map(|_| greylist.pause(&pauses)).map(|pause| pause.as_secs()).collect();
    assert_eq!(pauses.iter().filter(|secs| **secs == 180).count(), 1, "{pauses:?}");
    assert_eq!(pauses.iter().filter(|secs| **secs == 300).count(), 39);
    greylist.refused_after(Duration::from_mins(10));
    assert_eq!(greylist.known(), None, "the greylisting time has become longer");
}

#[test]
fn a_learned_greylisting_time_is_never_longer_than_the_wait_of_the_retry_schedule() {
    let pauses = [1, 5, 10].map(Duration::from_mins);
    let mut greylist = GreylistTime::default();
    greylist.accepted_after(Duration::from_hours(2));
    assert_eq!(greylist.pause(&pauses), Some(Duration::from_mins(1)), "a minute may be enough");
    greylist.refused_after(Duration::from_secs(64));
    assert_eq!(greylist.pause(&pauses), Some(Duration::from_mins(6)));
    assert_eq!(GreylistTime::restored(Duration::from_mins(5)).pause(&pauses), Some(Duration::from_mins(5)));
}

#[test]
fn evidence_counts_refusing_parts_and_refused_servers_and_expires() {
    let mut evidence = Evidence::default();
    for part in 0..3 {
        evidence.add(part, ServerId(1), at(0.0));
        evidence.add(part, ServerId(1), at(1.0));
    }
    assert_eq!((evidence.part_count(), evidence.server_count()), (3, 1));
    evidence.add(3, ServerId(2), at(700.0));
    assert_eq!((evidence.part_count(), evidence.server_count()), (1, 1));
}

proptest! {
    /// Whatever a receiver replies, a message is tried again within about half a minute.
    #[test]
    fn a_rate_never_blocks_for_long(steps in prop::collection::vec((0_u8..3, 0.0_f64..40.0), 0..200)) {
        let mut rate = RateEstimate::default();
        let mut now = 0.0;
        for (step, wait) in steps {
            now += wait;
            match step {
                0 => rate.on_too_fast(&refusal(), at(now)),
                1 => rate.on_accepted(at(now)),
                _ if rate.blocked_until(at(now)).is_none() => rate.on_send(at(now)),
                _ => {}
            }
            if let Some(until) = rate.blocked_until(at(now)) {
                prop_assert!(until.since(at(now)) <= Duration::from_secs(31));
            }
            if let Some(per_minute) = rate.per_minute(at(now)) {
                prop_assert!(per_minute.is_finite() && per_minute > 1.0);
            }
        }
    }
}
