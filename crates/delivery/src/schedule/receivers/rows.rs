//! The rows of the table of `cargo xtask bench pacing`: each has a receiver, a load, and the values to measure.

use std::time::Duration;

use postroad_model::Timestamp;
use postroad_testkit::hidden_receiver::{
    BlockedTime, Greylist, HiddenLimits, HiddenReceiver, RateLimit, RefusedAt, Window,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::world::{Message, START, World};

/// MX host of an unknown receiver, and of a large one.
const UNKNOWN_HOST: &str = "mx.receiver.example";
const LARGE_HOST: &str = "aspmx.l.google.com";
/// Suffix of the MX hosts of a provider where each domain has its own host.
const HOST_SUFFIX_OF_DOMAINS: &str = "mail.protection.outlook.com";

/// Measurements of a row with one seed; `None` for values that the row does not measure.
#[derive(Debug, Clone, Default)]
pub(super) struct Measurements {
    /// Used share of the receiver's capacity, in percent.
    pub(super) share: Option<f64>,
    /// Refused share of the attempts, in percent.
    pub(super) refused: Option<f64>,
    /// Number of refusals.
    pub(super) refusals: Option<f64>,
    /// 90th percentile of the waits, in seconds; some rows measure another time, as their functions say.
    pub(super) p90: Option<f64>,
    /// 95th percentile of the waits, in seconds.
    pub(super) p95: Option<f64>,
    /// The largest difference of an address's messages from its share, in percent of the share.
    pub(super) uneven: Option<f64>,
    /// Temporary failures without an offer: the connection that was opened for the message failed.
    pub(super) unoffered: Option<f64>,
    /// Messages sent twice or lost; also failed ones, unless the receiver replies with 5xx.
    pub(super) faults: f64,
}

fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

/// A rate limit. The seed chooses how the receiver counts, where it refuses and what it replies.
fn rate(per_minute: f64, seed: u64) -> RateLimit {
    let windows = [
        Window::Sliding,
        Window::Bucket { reserve_secs: 10 },
        Window::Fixed,
        Window::Bucket { reserve_secs: 2 },
    ];
    let refused_at = [RefusedAt::MailFrom, RefusedAt::EndOfData, RefusedAt::Banner];
    let replies =
        ["421 4.7.28 Rate limit exceeded, slow down", "451 4.7.1 Too many messages, try again slower"];
    let (at, reply) = (refused_at[seed as usize % 3], replies[(seed / 3) as usize % 2]);
    RateLimit { per_minute, window: windows[(seed / 2) as usize % 4], at, reply: reply.to_owned() }
}

fn limits(seed: u64) -> HiddenLimits {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    HiddenLimits {
        connect_time: Duration::from_millis(rng.random_range(20..150)),
        message_time: Duration::from_millis(rng.random_range(30..110)),
        ..HiddenLimits::default()
    }
}

fn world(limits: HiddenLimits, host: &str, seed: u64) -> World {
    World::new(vec![HiddenReceiver::new(limits, START)], host, seed)
}

/// Three servers with a backlog for a few domains of the receiver.
fn backlog(world: &mut World, count: usize) {
    for id in 0..count {
        world.add_at(Duration::ZERO, 1 + id as i64 % 3, &format!("domain{}.example", id % 7));
    }
}

fn accepted_between(world: &World, from: Duration, to: Duration) -> f64 {
    let is_in = |at: &Timestamp| (from..to).contains(&at.since(START));
    world.receivers[0].accepted.iter().filter(|(_, at)| is_in(at)).count() as f64
}

fn refused_between(world: &World, from: Duration, to: Duration) -> f64 {
    let is_in = |at: &Timestamp| (from..to).contains(&at.since(START));
    world.receivers[0].refused.iter().filter(|(_, at)| is_in(at)).count() as f64
}

fn share(world: &World, from: Duration, to: Duration) -> f64 {
    100.0 * accepted_between(world, from, to) / world.receivers[0].limits().capacity(from, to)
}

fn refused_share(world: &World, from: Duration, to: Duration) -> f64 {
    let (refused, accepted) = (refused_between(world, from, to), accepted_between(world, from, to));
    100.0 * refused / (refused + accepted).max(1.0)
}

/// Quantile of the waits of these servers' messages, in seconds; a message that was not sent counts as waiting until
/// now.
fn wait(world: &World, servers: &[i64], quantile: f64) -> f64 {
    let of = world.messages.iter().filter(|message| servers.contains(&message.server));
    let mut waits: Vec<f64> = of
        .map(|message| message.sent_at.unwrap_or(world.now).since(message.added_at).as_secs_f64())
        .collect();
    waits.sort_by(f64::total_cmp);
    waits[((waits.len() - 1) as f64 * quantile) as usize]
}

fn unoffered(world: &World) -> f64 {
    world.messages.iter().map(|message| f64::from(message.delayed_unoffered)).sum()
}

/// Number of messages that were sent twice, lost or failed. Every other message was sent once or still waits.
fn faults(world: &World) -> f64 {
    let failed = world.messages.iter().filter(|message| message.failed).count();
    twice_or_lost(world) + failed as f64
}

/// Like `faults`, for receivers that reply with 5xx, where messages may fail.
fn twice_or_lost(world: &World) -> f64 {
    let twice = world.messages.iter().filter(|message| message.taken > 1).count();
    let waiting = world.messages.iter().filter(|message| message.taken == 0 && !message.failed).count();
    let lost = waiting.saturating_sub(world.unfinished());
    (twice + lost) as f64
}

/// Seconds from the end of a block until the first message is taken; infinite if none is.
fn first_accepted_after(world: &World, end: Duration) -> f64 {
    let times = world.receivers[0].accepted.iter().map(|(_, at)| at.since(START));
    times.filter(|at| *at >= end).min().map_or(f64::INFINITY, |at| at.saturating_sub(end).as_secs_f64())
}

/// A rate that the receiver does not publish, for `length` minutes.
pub(super) fn rate_limit(per_minute: f64, length: u64, seed: u64) -> Measurements {
    let mut world =
        world(HiddenLimits { rate: Some(rate(per_minute, seed)), ..limits(seed) }, UNKNOWN_HOST, seed);
    backlog(&mut world, (per_minute * (length as f64 + 1.5)) as usize);
    world.run_until(minutes(length));
    Measurements {
        share: Some(share(&world, minutes(2), minutes(length))),
        refused: Some(refused_share(&world, minutes(2), minutes(length))),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// A receiver that accepts `most` connections at once, and replies "too many connections" to others.
pub(super) fn connection_limit(most: u32, refused_at: RefusedAt, seed: u64) -> Measurements {
    let limits = HiddenLimits {
        connections_max: Some(most),
        connections_refused_at: refused_at,
        message_time: Duration::from_millis(300),
        ..limits(seed)
    };
    let length = minutes(5);
    let mut world = world(limits, UNKNOWN_HOST, seed);
    let capacity = world.receivers[0].limits().capacity(Duration::ZERO, length);
    backlog(&mut world, capacity as usize + 100);
    world.run_until(length);
    Measurements {
        share: Some(share(&world, Duration::ZERO, length)),
        refused: Some(refused_share(&world, Duration::ZERO, length)),
        unoffered: Some(unoffered(&world)),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// The limit changes after five minutes.
pub(super) fn changed_limit(before: f64, after: f64, seed: u64) -> Measurements {
    let (at, length) = (minutes(5), minutes(12));
    let limits =
        HiddenLimits { rate: Some(rate(before, seed)), rate_steps: vec![(at, after)], ..limits(seed) };
    let mut world = world(limits, UNKNOWN_HOST, seed);
    backlog(&mut world, (before.max(after) * 12.0) as usize);
    world.run_until(length);
    Measurements {
        share: Some(share(&world, at + minutes(3), length)),
        refusals: Some(refused_between(&world, at, at + minutes(3))),
        faults: faults(&world),
        ..Measurements::default()
    }
}

pub(super) fn greylisting(wait_for: Duration, seed: u64) -> Measurements {
    let greylist = Some(Greylist { wait: wait_for, by_source: false });
    let mut world = world(HiddenLimits { greylist, ..limits(seed) }, UNKNOWN_HOST, seed);
    for id in 0..300_u64 {
        world.add_at(Duration::from_millis(id * 2_000), 1, "domain.example");
    }
    world.run_until(minutes(40));
    Measurements {
        p90: Some(wait(&world, &[1], 0.9)),
        p95: Some(wait(&world, &[1], 0.95)),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// Addresses with these weights send `count` messages to each of `domains` domains, each with its own host.
pub(super) fn addresses(weights: &[u32], domains: usize, count: usize, seed: u64) -> Measurements {
    let mut world = world(limits(seed), UNKNOWN_HOST, seed).with_addresses(weights);
    let mut rng = StdRng::seed_from_u64(seed);
    for id in 0..domains * count {
        let domain = format!("domain{}.example", id % domains);
        world.hosts.insert(domain.clone(), (0, format!("mx.{domain}")));
        // All at once, or one after another.
        let spread = [0, 10_000, 60_000][seed as usize % 3];
        world.add_at(Duration::from_millis(rng.random_range(0..=spread)), 1 + id as i64 % 3, &domain);
    }
    world.run_until(minutes(10));
    let all: u32 = weights.iter().sum();
    let uneven = weights.iter().enumerate().map(|(index, weight)| {
        let share = (domains * count) as f64 * f64::from(*weight) / f64::from(all);
        let is_from_it = |source: &&i64| **source == index as i64 + 1;
        let sent =
            world.messages.iter().filter_map(|message| message.sources.last()).filter(is_from_it).count();
        100.0 * (sent as f64 - share).abs() / share
    });
    Measurements { uneven: uneven.reduce(f64::max), faults: faults(&world), ..Measurements::default() }
}

/// A pool of four addresses, and a receiver that greylists by address. `share` is the percentage of messages accepted
/// at their second attempt.
pub(super) fn greylisting_by_address(seed: u64) -> Measurements {
    let greylist = Some(Greylist { wait: minutes(1), by_source: true });
    let limits = HiddenLimits { greylist, ..limits(seed) };
    let mut world = world(limits, UNKNOWN_HOST, seed).with_addresses(&[1; 4]);
    for id in 0..100_u64 {
        world.add_at(Duration::from_millis(id * 500), 1, "domain.example");
    }
    world.run_until(minutes(40));
    let second = world.messages.iter().filter(|message| message.offered == 2).count();
    Measurements {
        share: Some(100.0 * second as f64 / world.messages.len() as f64),
        p90: Some(wait(&world, &[1], 0.9)),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// One recipient domain at a large receiver refuses by its own policy; other servers send to other domains there.
pub(super) fn refusing_domain(seed: u64) -> Measurements {
    let reply = "550 5.7.1 Message rejected due to policy".to_owned();
    let limits = HiddenLimits { refused_domains: vec![("picky.example".to_owned(), reply)], ..limits(seed) };
    let mut world = world(limits, LARGE_HOST, seed);
    for id in 0..12_u64 {
        world.add_at(Duration::from_secs(30) + Duration::from_secs(id * 5), 1, "picky.example");
    }
    for id in 0..1_200_u64 {
        let domain = format!("domain{}.example", id % 30);
        world.add_at(Duration::from_secs(id), 2 + id as i64 % 4, &domain);
    }
    world.run_until(minutes(25));
    Measurements {
        p95: Some(wait(&world, &[2, 3, 4, 5], 0.95)),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// Many domains of a large receiver refuse the mail of one server for its reputation. Once everything seems to be
/// refused, another server sends mail to the receiver's other domains.
pub(super) fn refused_server(seed: u64) -> Measurements {
    let reply = "550 5.7.1 Message blocked due to the poor reputation of the sender".to_owned();
    let refused = (0..14).map(|number| (format!("picky{number}.example"), reply.clone())).collect();
    let limits = HiddenLimits { refused_domains: refused, ..limits(seed) };
    let mut world = world(limits, LARGE_HOST, seed);
    for id in 0..240_u64 {
        world.add_at(Duration::from_secs(5 * id), 1, &format!("picky{}.example", id % 14));
    }
    for id in 0..60_u64 {
        world.add_at(minutes(5) + Duration::from_secs(10 * id), 2, &format!("domain{}.example", id % 7));
    }
    world.run_until(minutes(20));
    Measurements {
        p95: Some(wait(&world, &[2], 0.95)),
        refusals: Some(refused_between(&world, Duration::ZERO, minutes(20))),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// One domain at a large receiver accepts no more for now; other servers send to other domains there.
pub(super) fn rate_limited_domain(seed: u64) -> Measurements {
    let replies = [
        "451 4.7.1 Sorry, hourly limit exceeded",
        "451 4.7.1 Too many messages for busy.example, hourly limit exceeded",
    ];
    let reply = replies[seed as usize % 2].to_owned();
    let limits = HiddenLimits { refused_domains: vec![("busy.example".to_owned(), reply)], ..limits(seed) };
    let mut world = world(limits, LARGE_HOST, seed);
    for id in 0..60_u64 {
        world.add_at(Duration::from_secs(30) + Duration::from_secs(id * 5), 1, "busy.example");
    }
    for id in 0..1_200_u64 {
        let domain = format!("domain{}.example", id % 30);
        world.add_at(Duration::from_secs(id), 2 + id as i64 % 4, &domain);
    }
    world.run_until(minutes(25));
    Measurements {
        p95: Some(wait(&world, &[2, 3, 4, 5], 0.95)),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// One of four source addresses is on a block list, which a small receiver with a single domain uses.
pub(super) fn listed_address(seed: u64) -> Measurements {
    let reply = "554 5.7.1 Service unavailable; Client host [192.0.2.2] blocked using zen.spamhaus.org";
    let limits = HiddenLimits { refused_sources: vec![(2, reply.to_owned())], ..limits(seed) };
    let mut world = world(limits, UNKNOWN_HOST, seed).with_addresses(&[1; 4]);
    for id in 0..400_u64 {
        world.add_at(Duration::from_millis(id * 500), 1 + id as i64 % 3, "domain.example");
    }
    world.run_until(minutes(10));
    Measurements {
        refusals: Some(world.receivers[0].refused.len() as f64),
        p95: Some(wait(&world, &[1, 2, 3], 0.95)),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// For ten minutes, the host is down (`reply` is empty) or refuses connections with `reply`. `p90` is the time from the
/// end of the outage until the first message is taken, in seconds.
pub(super) fn outage(reply: &str, seed: u64) -> Measurements {
    let (from, to) = (minutes(2), minutes(12));
    let blocks = vec![BlockedTime { from, to, at: RefusedAt::Banner, reply: reply.to_owned() }];
    let mut world = world(HiddenLimits { blocks, ..limits(seed) }, UNKNOWN_HOST, seed);
    for id in 0..1_500_u64 {
        let domain = format!("domain{}.example", id % 30);
        world.add_at(Duration::from_secs(id), 1 + id as i64 % 2, &domain);
    }
    world.run_until(minutes(40));
    Measurements {
        p90: Some(first_accepted_after(&world, to)),
        unoffered: Some(unoffered(&world)),
        refusals: Some(refused_between(&world, from, to)),
        faults: faults(&world),
        ..Measurements::default()
    }
}

/// The receiver blocks us for ten minutes. `p90` is the time from the end of the block until the first message is
/// taken, in seconds.
pub(super) fn block(seed: u64) -> Measurements {
    let (from, to) = (minutes(2), minutes(12));
    let replies = [
        (
            RefusedAt::MailFrom,
            "421 4.7.0 [TSS04] Messages from 192.0.2.25 temporarily deferred due to user complaints",
        ),
        (
            RefusedAt::Banner,
            "554 5.7.1 Your access to this mail system has been rejected due to poor reputation",
        ),
        (RefusedAt::EndOfData, "550 5.7.1 blocked due to the very low reputation of the sending domain"),
    ];
    let (at, reply) = replies[seed as usize % 3];
    let blocks = vec![BlockedTime { from, to, at, reply: reply.to_owned() }];
    let mut world = world(HiddenLimits { blocks, ..limits(seed) }, LARGE_HOST, seed);
    for id in 0..1_500_u64 {
        let domain = format!("domain{}.example", id % 30);
        world.add_at(Duration::from_secs(id), 1 + id as i64 % 2, &domain);
    }
    world.run_until(minutes(40));
    Measurements {
        p90: Some(first_accepted_after(&world, to)),
        p95: Some(wait(&world, &[2], 0.95)),
        unoffered: Some(unoffered(&world)),
        refusals: Some(refused_between(&world, from, to)),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// Thirty domains at one provider, each with its own host, and mail of four servers.
fn provider_of_domains(limits: HiddenLimits, seed: u64) -> World {
    let mut world = world(limits, UNKNOWN_HOST, seed);
    for number in 0..30 {
        let host = format!("domain{number}-example.{HOST_SUFFIX_OF_DOMAINS}");
        world.hosts.insert(format!("domain{number}.example"), (0, host));
    }
    for id in 0..1_500_u64 {
        let domain = format!("domain{}.example", id % 30);
        world.add_at(Duration::from_secs(id), 1 + id as i64 % 4, &domain);
    }
    world
}

/// The whole provider blocks us for ten minutes, at every one of its domains. `p90` is as in `block`.
pub(super) fn provider_block(seed: u64) -> Measurements {
    let (from, to) = (minutes(2), minutes(12));
    let reply = "550 5.7.1 Unfortunately, messages from [192.0.2.25] weren't sent. Part of their network is on our block list (S3140)";
    let at = [RefusedAt::MailFrom, RefusedAt::RcptTo][seed as usize % 2];
    let blocks = vec![BlockedTime { from, to, at, reply: reply.to_owned() }];
    let mut world = provider_of_domains(HiddenLimits { blocks, ..limits(seed) }, seed);
    world.run_until(minutes(40));
    Measurements {
        p90: Some(first_accepted_after(&world, to)),
        unoffered: Some(unoffered(&world)),
        refusals: Some(refused_between(&world, from, to)),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// One domain of a provider refuses our address; mail to the others continues.
pub(super) fn refusing_domain_of_provider(seed: u64) -> Measurements {
    let reply = "550 5.7.1 Service unavailable, client host [192.0.2.25] blocked using a reputation list";
    let refused_domains = vec![("picky.example".to_owned(), reply.to_owned())];
    let mut world = provider_of_domains(HiddenLimits { refused_domains, ..limits(seed) }, seed);
    world.hosts.insert("picky.example".to_owned(), (0, format!("picky-example.{HOST_SUFFIX_OF_DOMAINS}")));
    for id in 0..60_u64 {
        world.add_at(Duration::from_secs(30 + id * 5), 5 + id as i64 % 3, "picky.example");
    }
    world.run_until(minutes(30));
    Measurements {
        p95: Some(wait(&world, &[1, 2, 3, 4], 0.95)),
        faults: twice_or_lost(&world),
        ..Measurements::default()
    }
}

/// A receiver that takes twenty seconds for each message. `share` is the used share of what ten connections can carry
/// after the first three minutes; `p95` is the wait of mail to others.
pub(super) fn tarpit(seed: u64) -> Measurements {
    let slow = HiddenLimits {
        connections_max: Some(10),
        connect_time: Duration::from_secs(2),
        message_time: Duration::from_secs(20),
        ..limits(seed)
    };
    let receivers = vec![HiddenReceiver::new(slow, START), HiddenReceiver::new(limits(seed), START)];
    let mut world = World::new(receivers, UNKNOWN_HOST, seed);
    backlog(&mut world, 400);
    for id in 0..600_u64 {
        let domain = format!("quick{}.example", id % 40);
        world.hosts.insert(domain.clone(), (1, format!("mx.{domain}")));
        world.add_at(Duration::from_secs(id), 1 + id as i64 % 4, &domain);
    }
    world.run_until(minutes(12));
    let quick = |message: &&Message| message.domain.starts_with("quick");
    let mut waits: Vec<f64> = world
        .messages
        .iter()
        .filter(quick)
        .map(|message| message.sent_at.unwrap_or(world.now).since(message.added_at).as_secs_f64())
        .collect();
    waits.sort_by(f64::total_cmp);
    Measurements {
        share: Some(share(&world, minutes(3), minutes(12))),
        p95: Some(waits[waits.len() * 95 / 100]),
        unoffered: Some(unoffered(&world)),
        faults: faults(&world),
        ..Measurements::default()
    }
}
