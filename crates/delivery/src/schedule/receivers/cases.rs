//! Single cases with simulated receivers; `rows.rs` has the cases of the benchmark's table.

use std::time::Duration;

use postroad_model::{GateAction, GateScope};
use postroad_store::{DeliverySetup, Gate, SetBy, SetupMark};
use postroad_testkit::hidden_receiver::{BlockedTime, Greylist, HiddenLimits, HiddenReceiver, RefusedAt};

use super::world::{START, World};

fn world(limits: HiddenLimits) -> World {
    World::new(vec![HiddenReceiver::new(limits, START)], "mx.receiver.example", 7)
}

fn suspended_until(after_start: Duration) -> DeliverySetup {
    let gate = Gate {
        scope: GateScope::Everything,
        action: GateAction::Suspend,
        reason: "a test".to_owned(),
        automatic: false,
        set_by: SetBy::Operator,
        created_at: START,
        ends_at: Some(START.plus(after_start)),
    };
    DeliverySetup {
        servers: Vec::new(),
        pools: Vec::new(),
        sources: Vec::new(),
        gates: vec![gate],
        live_nodes: 1,
        mark: SetupMark::default(),
    }
}

#[test]
fn our_own_delay_is_not_taken_for_a_long_greylisting() {
    let greylist = Some(Greylist { wait: Duration::from_mins(1), by_source: false });
    let mut world = world(HiddenLimits { greylist, ..HiddenLimits::default() });
    world.add_at(Duration::ZERO, 1, "domain.example");
    world.run_until(Duration::from_secs(30));
    let gate_ends = Duration::from_hours(2);
    world.schedule.configure(&suspended_until(gate_ends), world.now);
    let next = world.add_at(gate_ends + Duration::from_mins(10), 1, "domain.example");
    world.run_until(gate_ends + Duration::from_mins(30));
    let (first, next) = (&world.messages[0], &world.messages[next]);
    assert!(first.sent_at.unwrap().since(first.added_at) >= gate_ends, "it was greylisted, then suspended");
    let waited = next.sent_at.unwrap().since(next.added_at);
    assert!(waited <= Duration::from_secs(70), "{waited:?}");
}

#[test]
fn retries_come_from_the_first_address_again_after_an_outage() {
    let greylist = Some(Greylist { wait: Duration::from_mins(1), by_source: true });
    let (from, to) = (Duration::from_secs(40), Duration::from_secs(200));
    let blocks = vec![BlockedTime { from, to, at: RefusedAt::Banner, reply: String::new() }];
    let mut world =
        world(HiddenLimits { greylist, blocks, ..HiddenLimits::default() }).with_addresses(&[1; 4]);
    for id in 0..12 {
        world.add_at(Duration::from_secs(id), 1, "domain.example");
    }
    world.run_until(Duration::from_hours(1));
    for message in &world.messages {
        assert!(message.sent_at.is_some_and(|at| at.since(START) >= to), "{message:?}");
        let first = message.sources[0];
        assert!(message.sources.iter().all(|source| *source == first), "{message:?}");
    }
}
