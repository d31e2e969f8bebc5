//! Shares of the connections, with hosts that are just records: some answer at once, some never.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};

use super::warm_up::WarmUpPlan;
use super::*;
use crate::providers::Providers;
use crate::route::{Route, RouteHost, RouteKind, Security};

const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

/// A schedule whose connection tasks do what they are told. Sites whose name begins with `silent` never greet.
struct World {
    schedule: Schedule,
    now: Timestamp,
    /// Attempts without an answer, and connections that carry a message, by path.
    dialling: HashMap<usize, Job>,
    busy: Vec<(usize, Job)>,
    opened: HashSet<String>,
    next_message: i64,
}

impl World {
    fn new(connections_max: u32) -> Self {
        let pauses = vec![Duration::from_mins(1)];
        let schedule = Schedule::new(pauses, "mx.test".to_owned(), WarmUpPlan::default(), connections_max);
        let (dialling, busy, opened) = (HashMap::new(), Vec::new(), HashSet::new());
        Self { schedule, now: START, dialling, busy, opened, next_message: 0 }
    }

    fn add(&mut self, server: i64, domain: &str) {
        self.next_message += 1;
        let entry = Entry {
            server_id: ServerId(server),
            message_id: MessageId(self.next_message),
            due_at: self.now,
            expires_at: None,
            attempts: 0,
            pool_wish: None,
            source: None,
            greylisted_at: None,
            tell_at: None,
            begun: false,
            work: None,
        };
        self.schedule.add(DomainName::parse(domain).unwrap(), false, entry, self.now);
        self.work();
    }

    /// Does everything that the schedule asks for.
    fn work(&mut self) {
        loop {
            let actions = self.schedule.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Resolve { lane, key } => self.schedule.resolved(lane, route(&key), self.now),
                    Action::Open { path } => self.open(path),
                    Action::GiveWay { path } => self.give_way(path),
                    Action::Wake { .. } => {}
                }
            }
        }
    }

    fn open(&mut self, path: usize) {
        let Next::Job(job) = self.schedule.next(path, Asking::First, self.now) else {
            return self.schedule.closed(path, Left::Working, false, self.now);
        };
        self.opened.insert(job.route.site.to_string());
        self.schedule.dialling(path, self.now);
        if job.route.site.starts_with("silent") {
            assert!(self.dialling.insert(path, *job).is_none(), "one attempt for each silent site");
        } else {
            self.schedule.answered(path, self.now);
            self.schedule.connected(path, true, self.now);
            self.busy.push((path, *job));
        }
    }

    fn give_way(&mut self, path: usize) {
        let Some(job) = self.dialling.remove(&path) else { return };
        self.schedule.note_silence(path);
        self.schedule.put_back(job.lane, job.entry, self.now);
        self.schedule.connecting_ended(path, self.now);
        self.schedule.closed(path, Left::Working, false, self.now);
    }

    fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis() / 50 {
            self.now = self.now.plus(Duration::from_millis(50));
            self.schedule.tick(self.now);
            self.work();
        }
    }

    /// A connection has sent its message and asks for the next.
    fn send_one(&mut self) -> i64 {
        let (path, job) = self.busy.remove(0);
        self.schedule.accepted(path, &job.lane, self.now);
        match self.schedule.next(path, Asking::Again, self.now) {
            Next::Job(next) => self.busy.push((path, *next)),
            Next::Wait => self.schedule.closed(path, Left::Waiting, true, self.now),
            Next::Close => self.schedule.closed(path, Left::Working, true, self.now),
        }
        self.work();
        job.entry.server_id.0
    }
}

/// Every domain has a site and a provider of its own.
fn route(key: &LaneKey) -> Route {
    let site: Arc<str> = key.domain.as_str().into();
    let rules = crate::providers::Provider {
        connections_per_minute: None,
        ..crate::providers::Provider::clone(Providers::built_in().find("mx.nowhere.example"))
    };
    Route {
        site: Arc::clone(&site),
        base_site: Arc::clone(&site),
        provider: Arc::clone(&site),
        rules: Arc::new(rules),
        hosts: vec![RouteHost { name: site.to_string(), preference: 0, address: None, port: 25 }],
        security: Security::Opportunistic,
        kind: RouteKind::Mx,
        is_exempt: false,
        valid_until: START.plus(Duration::from_hours(1)),
    }
}

#[test]
fn sites_that_do_not_answer_hold_a_fifth_of_the_connections() {
    let mut world = World::new(100);
    world.add(1, "known.example");
    while !world.busy.is_empty() {
        world.send_one();
    }
    for n in 0..300 {
        for _ in 0..3 {
            world.add(1, &format!("silent-{n}.example"));
        }
    }
    assert_eq!(world.dialling.len(), 50, "half of them for sites that were never tried");
    // A site that answered lately has its connection at once, and a new one as soon as those before it had their time.
    world.add(1, "known.example");
    assert_eq!(world.send_one(), 1);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.dialling.len(), 20, "a fifth of them");
    assert!(world.opened.len() == 301, "each site was tried once: {}", world.opened.len());
    assert!(world.schedule.is_short_of_connections());
    world.add(1, "new.example");
    assert_eq!(world.send_one(), 1);
    assert_eq!(world.dialling.len(), 20);
}

#[test]
fn a_silent_site_that_gives_up_lets_the_next_one_try() {
    let mut world = World::new(10);
    for n in 0..6 {
        world.add(1, &format!("silent-{n}.example"));
    }
    world.pass(Duration::from_secs(3));
    let before: HashSet<usize> = world.dialling.keys().copied().collect();
    assert_eq!(before.len(), 2);
    for path in &before {
        world.dialling.remove(path);
        world.schedule.connect_failed(*path, "no greeting".to_owned(), world.now);
        world.schedule.connecting_ended(*path, world.now);
        world.schedule.closed(*path, Left::Working, false, world.now);
        world.work();
    }
    assert_eq!(world.dialling.len(), 2);
    assert!(world.dialling.keys().all(|path| !before.contains(path)), "others have their turn");
}

#[test]
fn a_server_gives_connections_up_while_another_waits() {
    let mut world = World::new(10);
    for n in 0..40 {
        for _ in 0..20 {
            world.add(1, &format!("a-{n}.example"));
        }
    }
    world.pass(Duration::from_secs(1));
    assert_eq!(world.busy.len(), 10);
    for n in 0..40 {
        for _ in 0..20 {
            world.add(2, &format!("b-{n}.example"));
        }
    }
    let sent: Vec<i64> = (0..200).map(|_| world.send_one()).collect();
    assert!(sent[..40].contains(&2), "the second server waits for a few messages only");
    let of_second = sent[100..].iter().filter(|server| **server == 2).count();
    assert!((30..=70).contains(&of_second), "{of_second} of 100");
}
