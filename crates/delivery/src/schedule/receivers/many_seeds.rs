//! Hundreds of small random worlds. Whatever the receivers do, every message is sent exactly once, or never if its
//! domain refuses everything. Mail to a healthy receiver does not wait for the others, and at a limited receiver a
//! small server does not wait for another's backlog.

use std::time::Duration;

use postroad_testkit::hidden_receiver::{
    BlockedTime, Greylist, HiddenLimits, HiddenReceiver, RateLimit, RefusedAt, Window,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::seeds;
use super::world::{Message, START, World};

const SEEDS: u64 = 200;
/// The server with a backlog; those with higher numbers send little.
const GREEDY: i64 = 1;
const DOMAINS_OF_EACH: usize = 3;
/// Longest wait of mail to the healthy receiver.
const HEALTHY_WAIT_MAX: Duration = Duration::from_secs(20);
/// Maximum number of backlog messages that a receiver takes before a small server's message, unless it refused or
/// delayed that message.
const OVERTAKEN_MAX: usize = 60;
/// Simulated time after which everything must be sent, however long receivers greylist and block.
const LENGTH: Duration = Duration::from_hours(12);

/// Simulated time between two checks whether everything is sent.
const STEP: Duration = Duration::from_mins(10);

/// Replies to RCPT TO, of domains that never accept anything.
const REFUSALS: [&str; 3] = [
    "550 5.7.1 Message rejected due to policy",
    "550 5.7.1 Service unavailable, client host blocked using a reputation list",
    "550 5.1.1 User unknown",
];

fn domain(receiver: usize, number: usize) -> String {
    format!("d{number}.r{receiver}.example")
}

fn random_limits(rng: &mut StdRng) -> HiddenLimits {
    let mut limits = HiddenLimits {
        connect_time: Duration::from_millis(rng.random_range(5..2_000)),
        message_time: Duration::from_millis(rng.random_range(10..500)),
        ..HiddenLimits::default()
    };
    let early = [RefusedAt::Banner, RefusedAt::MailFrom];
    if rng.random_bool(0.5) {
        let windows =
            [Window::Sliding, Window::Fixed, Window::Bucket { reserve_secs: rng.random_range(1..20) }];
        limits.rate = Some(RateLimit {
            per_minute: rng.random_range(20.0..600.0),
            window: *windows.choose(rng).unwrap(),
            at: *[RefusedAt::Banner, RefusedAt::MailFrom, RefusedAt::RcptTo, RefusedAt::EndOfData]
                .choose(rng)
                .unwrap(),
            reply: "421 4.7.28 Rate limit exceeded, slow down".to_owned(),
        });
        if rng.random_bool(0.3) {
            let at = Duration::from_secs(rng.random_range(10..400));
            limits.rate_steps.push((at, rng.random_range(10.0..900.0)));
        }
    }
    if rng.random_bool(0.4) {
        limits.connections_max = Some(rng.random_range(1..5));
        limits.connections_refused_at = *early.choose(rng).unwrap();
    }
    if rng.random_bool(0.3) {
        limits.messages_per_connection = Some(rng.random_range(1..20));
    }
    if rng.random_bool(0.3) {
        let wait = Duration::from_secs(rng.random_range(20..400));
        limits.greylist = Some(Greylist { wait, by_source: rng.random_bool(0.5) });
    }
    if rng.random_bool(0.3) {
        let from = Duration::from_secs(rng.random_range(0..300));
        let to = from + Duration::from_secs(rng.random_range(30..900));
        let (at, reply) = if rng.random_bool(0.3) {
            // The host is down.
            (RefusedAt::Banner, "")
        } else {
            (*early.choose(rng).unwrap(), "421 4.7.0 Temporarily deferred due to user complaints")
        };
        limits.blocks.push(BlockedTime { from, to, at, reply: reply.to_owned() });
    }
    if rng.random_bool(0.1) {
        // A tarpit.
        limits.message_time = Duration::from_secs(rng.random_range(5..30));
    }
    limits
}

/// The first receiver is healthy.
fn random_world(seed: u64) -> World {
    let mut rng = StdRng::seed_from_u64(seed);
    let count = rng.random_range(2..6);
    let healthy = HiddenLimits { message_time: Duration::from_millis(30), ..HiddenLimits::default() };
    let mut receivers = vec![HiddenReceiver::new(healthy, START)];
    for receiver in 1..count {
        let mut limits = random_limits(&mut rng);
        if rng.random_bool(0.3) {
            let refusing = domain(receiver, rng.random_range(0..DOMAINS_OF_EACH));
            limits.refused_domains.push((refusing, (*REFUSALS.choose(&mut rng).unwrap()).to_owned()));
        }
        receivers.push(HiddenReceiver::new(limits, START));
    }
    let mut world = World::new(receivers, "mx.r0.example", seed);
    if rng.random_bool(0.5) {
        let addresses: Vec<u32> = (0..rng.random_range(1..4)).map(|_| rng.random_range(1..4)).collect();
        world = world.with_addresses(&addresses);
    }
    for receiver in 0..count {
        for number in 0..DOMAINS_OF_EACH {
            world.hosts.insert(domain(receiver, number), (receiver, format!("mx.r{receiver}.example")));
        }
    }
    for _ in 0..rng.random_range(100..500) {
        let to = domain(rng.random_range(0..count), rng.random_range(0..DOMAINS_OF_EACH));
        world.add_at(Duration::ZERO, GREEDY, &to);
    }
    for _ in 0..rng.random_range(5..40) {
        let to = domain(rng.random_range(0..count), rng.random_range(0..DOMAINS_OF_EACH));
        let after = Duration::from_millis(rng.random_range(0..300_000));
        world.add_at(after, rng.random_range(GREEDY + 1..GREEDY + 5), &to);
    }
    world
}

fn is_healthy(message: &Message) -> bool {
    message.domain.ends_with(".r0.example")
}

/// Number of backlog messages that the receiver took while `message` waited.
fn count_overtaking(world: &World, message: &Message) -> usize {
    let site = |message: &Message| message.domain.split_once('.').map(|(_, site)| site.to_owned());
    let (of, sent_at) = (site(message), message.sent_at.unwrap_or(world.now));
    let others = world.messages.iter().filter(|other| other.server == GREEDY && site(other) == of);
    others.filter(|other| other.sent_at.is_some_and(|at| at > message.added_at && at < sent_at)).count()
}

/// Whether the message's domain never accepts anything.
fn is_refused(world: &World, message: &Message) -> bool {
    let mut refused = world.receivers.iter().flat_map(|receiver| &receiver.limits().refused_domains);
    refused.any(|(domain, _)| *domain == message.domain)
}

/// Plays the world of this seed. Returns the invariants that do not hold.
fn faults(seed: u64) -> Vec<String> {
    let mut world = random_world(seed);
    let mut length = STEP;
    let is_done =
        |world: &World, message: &Message| message.taken > 0 || message.failed || is_refused(world, message);
    while length <= LENGTH && !world.messages.iter().all(|message| is_done(&world, message)) {
        world.run_until(length);
        length += STEP;
    }
    let (mut faults, mut refused) = (Vec::new(), 0);
    for message in &world.messages {
        let described = |fault: &str| format!("seed {seed}: {fault}: {message:?}");
        if is_refused(&world, message) {
            refused += usize::from(!message.failed);
            if message.taken > 0 {
                faults.push(described("accepted by a domain that refuses everything"));
            }
            continue;
        }
        if message.taken != 1 || message.failed {
            faults.push(described("not sent exactly once"));
            continue;
        }
        let waited = message.sent_at.map_or(LENGTH, |at| at.since(message.added_at));
        if is_healthy(message) && waited > HEALTHY_WAIT_MAX {
            faults.push(described("late at a healthy receiver"));
        }
        let was_put_off = message.delayed > 0 || message.offered > 1;
        let overtaken = count_overtaking(&world, message);
        if message.server != GREEDY && !was_put_off && overtaken > OVERTAKEN_MAX {
            faults.push(described(&format!("{overtaken} of a backlog came first")));
        }
    }
    // `unfinished` includes a probe that a connection may be sending.
    let unfinished = world.unfinished();
    if unfinished != refused {
        faults.push(format!("seed {seed}: {unfinished} messages wait instead of {refused}"));
    }
    faults
}

#[test]
fn no_message_is_lost_sent_twice_or_starved_in_hundreds_of_random_worlds() {
    let seeds: Vec<u64> = (0..seeds::bench_seed_count().unwrap_or(SEEDS).max(SEEDS)).collect();
    let begun = std::time::Instant::now();
    let faults = seeds::play_all(&seeds, faults).concat();
    println!("{} random worlds in {:.1} s", seeds.len(), begun.elapsed().as_secs_f64());
    assert!(faults.is_empty(), "{} faults, first {:#?}", faults.len(), &faults[..faults.len().min(5)]);
}
