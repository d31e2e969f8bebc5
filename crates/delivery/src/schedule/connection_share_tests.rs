//! Tests of connection shares, with simulated hosts: some answer at once, some never.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};

use super::warm_up::WarmUpPlan;
use super::*;
use crate::providers::Providers;
use crate::route::{Dane, Route, RouteHost, RouteKind, Security};

const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

/// A schedule with simulated connection tasks. Sites whose name begins with `silent` do not greet unless a test calls
/// `answer`.
struct World {
    schedule: Schedule,
    now: Timestamp,
    /// Attempts without an answer: path and job.
    dialling: BTreeMap<u64, (usize, Job)>,
    /// Connections that carry a message: path and job.
    busy: Vec<(usize, Job)>,
    opened: HashSet<String>,
    /// Sites whose hosts do not greet now.
    hanging: HashSet<String>,
    aborted: usize,
    next_message: i64,
}

impl World {
    fn new(connections_max: u32) -> Self {
        let pauses = vec![Duration::from_mins(1)];
        let schedule =
            Schedule::new(pauses, "mx.test".to_owned(), WarmUpPlan::default(), connections_max, 1_000_000);
        let (dialling, busy, opened) = (BTreeMap::new(), Vec::new(), HashSet::new());
        let hanging = HashSet::new();
        Self { schedule, now: START, dialling, busy, opened, hanging, aborted: 0, next_message: 0 }
    }

    fn add(&mut self, server: i64, domain: &str) {
        self.next_message += 1;
        let entry = Entry {
            server_id: ServerId(server),
            message_id: MessageId(self.next_message),
            due_at: self.now,
            expires_at: None,
            attempts: 0,
            chosen_pool: None,
            source: None,
            greylisting: None,
            delay_notice_at: None,
            was_tried_before_claim: false,
            was_aborted: false,
            is_begun: false,
            loaded_message: None,
        };
        let require_tls = domain.starts_with("tls.");
        let domain = domain.trim_start_matches("tls.");
        self.schedule.add(DomainName::parse(domain).unwrap(), require_tls, entry, self.now);
        self.perform_actions();
    }

    /// Does everything that the schedule asks for.
    fn perform_actions(&mut self) {
        loop {
            let actions = self.schedule.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Resolve { lane, key, .. } => {
                        self.schedule.on_resolved(lane, route(&key), self.now);
                    }
                    Action::Open { path, attempt } => self.open(path, attempt),
                    Action::AbortAttempt { attempt } => self.abort_attempt(attempt),
                    Action::Wake { .. } => {}
                }
            }
        }
    }

    fn open(&mut self, path: usize, attempt: u64) {
        let Next::Job(job) = self.schedule.next(path, WorkRequest::First, self.now) else {
            self.schedule.on_attempt_ended(path, attempt, self.now);
            return self.schedule.on_closed(path, EndedWhile::Working, false, self.now);
        };
        self.opened.insert(job.route.secured_site.to_string());
        self.schedule.note_dialling(path, attempt, self.now);
        let site = job.route.site.to_string();
        if site.starts_with("silent") || self.hanging.contains(&site) {
            self.dialling.insert(attempt, (path, *job));
        } else {
            self.schedule.note_greeting(path, attempt, self.now);
            self.schedule.on_connected(path, attempt, true, self.now);
            self.busy.push((path, *job));
        }
    }

    /// The host answers after all.
    fn answer(&mut self, attempt: u64) {
        let (path, job) = self.dialling.remove(&attempt).unwrap();
        self.schedule.note_greeting(path, attempt, self.now);
        self.schedule.on_connected(path, attempt, true, self.now);
        self.busy.push((path, job));
        self.perform_actions();
    }

    fn abort_attempt(&mut self, attempt: u64) {
        let Some((path, job)) = self.dialling.remove(&attempt) else { return };
        self.aborted += 1;
        self.schedule.on_attempt_ended(path, attempt, self.now);
        self.schedule.put_back(job.lane, job.entry, self.now);
        self.schedule.on_closed(path, EndedWhile::Working, false, self.now);
    }

    /// The attempt's timeout passes.
    fn time_out(&mut self, attempt: u64) {
        let (path, _) = self.dialling[&attempt];
        self.schedule.note_silence(path, self.now);
        self.refuse(attempt);
    }

    /// The host refuses the connection.
    fn refuse(&mut self, attempt: u64) {
        let (path, _) = self.dialling.remove(&attempt).unwrap();
        self.schedule.on_connect_failed(path, "no connection".to_owned(), self.now);
        self.schedule.on_attempt_ended(path, attempt, self.now);
        self.schedule.on_closed(path, EndedWhile::Working, false, self.now);
        self.perform_actions();
    }

    fn advance(&mut self, time: Duration) {
        for _ in 0..time.as_millis() / 50 {
            self.now = self.now.plus(Duration::from_millis(50));
            self.schedule.tick(self.now);
            self.perform_actions();
        }
    }

    /// A connection has sent its message and asks for the next.
    fn send_one(&mut self) -> i64 {
        let (path, job) = self.busy.remove(0);
        self.schedule.on_accepted(path, &job.lane, job.entry.server_id, self.now);
        match self.schedule.next(path, WorkRequest::Again, self.now) {
            Next::Job(next) => self.busy.push((path, *next)),
            Next::Wait => self.schedule.on_closed(path, EndedWhile::Waiting, true, self.now),
            Next::Close => self.schedule.on_closed(path, EndedWhile::Working, true, self.now),
        }
        self.perform_actions();
        job.entry.server_id.0
    }
}

/// Every domain has its own site and provider.
fn route(key: &LaneKey) -> Route {
    let site: Arc<str> = key.domain.as_str().into();
    let secured_site: Arc<str> =
        if key.require_tls { format!("{site}+tls").into() } else { Arc::clone(&site) };
    let rules = crate::providers::Provider {
        connections_per_minute: None,
        ..crate::providers::Provider::clone(Providers::built_in().find("mx.nowhere.example"))
    };
    Route {
        secured_site: Arc::clone(&secured_site),
        site: Arc::clone(&site),
        provider: Arc::clone(&site),
        rules: Arc::new(rules),
        hosts: vec![RouteHost {
            name: secured_site.to_string(),
            preference: 0,
            address: None,
            port: 25,
            dane: Dane::Nothing,
        }],
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
    assert_eq!(world.dialling.len(), 70, "new sites get seven tenths of the connections");
    // A site that answered lately gets its connection at once. A new site gets one when the attempts before it are
    // overdue.
    world.add(1, "known.example");
    assert_eq!(world.send_one(), 1);
    world.advance(Duration::from_secs(10));
    assert_eq!(world.dialling.len(), 20, "a fifth of the connections");
    assert!(world.opened.len() == 301, "each site was tried once: {}", world.opened.len());
    assert!(world.schedule.shortage() > Shortage::None);
    world.add(1, "new.example");
    assert_eq!(world.send_one(), 1);
    assert_eq!(world.dialling.len(), 20);
}

#[test]
fn after_the_timeout_of_a_silent_site_another_silent_site_gets_the_connection() {
    let mut world = World::new(10);
    for n in 0..6 {
        world.add(1, &format!("silent-{n}.example"));
    }
    world.advance(Duration::from_secs(3));
    let before: HashSet<u64> = world.dialling.keys().copied().collect();
    assert_eq!(before.len(), 2);
    for attempt in &before {
        world.time_out(*attempt);
    }
    assert_eq!(world.dialling.len(), 2);
    let after: HashSet<u64> = world.dialling.keys().copied().collect();
    assert!(after.is_disjoint(&before), "other sites have their turn");
    world.advance(Duration::from_secs(20));
    assert!(
        world.dialling.keys().all(|attempt| after.contains(attempt)),
        "they keep their turn until they time out"
    );
}

#[test]
fn thousands_of_attempts_leave_no_wake_ups_behind() {
    let mut world = World::new(100);
    world.add(1, "silent-0.example");
    for n in 0..3_000 {
        world.add(1, &format!("site-{n}.example"));
        world.send_one();
        world.advance(Duration::from_millis(50));
        assert!(world.schedule.wakes.len() <= 20, "{} wake-ups", world.schedule.wakes.len());
    }
    assert_eq!(world.schedule.connection_shares.overdue.len(), 0);
}

#[test]
fn queues_that_share_the_connections_of_a_site_continue_when_the_site_answers() {
    let mut world = World::new(100);
    world.add(1, "silent.example");
    world.add(1, "tls.silent.example");
    assert_eq!(world.dialling.len(), 1, "a new site has one connection, whatever TLS its messages require");
    world.advance(Duration::from_secs(2));
    let attempt = *world.dialling.keys().next().unwrap();
    world.answer(attempt);
    world.send_one();
    assert_eq!(world.dialling.len(), 1, "the second queue has its turn");
}

#[test]
fn one_host_that_hangs_does_not_stop_a_site_that_replies() {
    let mut world = World::new(100);
    for _ in 0..200 {
        world.add(1, "large.example");
    }
    for _ in 0..20 {
        world.send_one();
    }
    assert_eq!(world.busy.len(), 10, "as many connections as one site may have");
    world.hanging.insert("large.example".to_owned());
    // Three connections have carried enough; the next ones meet the host that hangs.
    for _ in 0..3 {
        let (path, _) = world.busy.remove(0);
        world.schedule.on_closed(path, EndedWhile::Working, true, world.now);
        world.perform_actions();
    }
    assert_eq!(world.dialling.len(), 3);
    let first = *world.dialling.keys().next().unwrap();
    for _ in 0..3 {
        world.advance(Duration::from_secs(1));
        world.send_one();
    }
    assert!(world.dialling.contains_key(&first), "one attempt waits for that host");
    assert_eq!(world.aborted, 6, "the others are aborted, each after a second");
    world.hanging.clear();
    world.advance(Duration::from_secs(1));
    assert_eq!(world.busy.len(), 9, "the site gets connections to its other hosts");
}

#[test]
fn hosts_that_are_known_to_greet_late_are_waited_for() {
    let mut world = World::new(10);
    world.hanging.insert("late.example".to_owned());
    world.add(1, "late.example");
    world.advance(Duration::from_secs(4));
    world.answer(*world.dialling.keys().next().unwrap());
    world.send_one();
    for n in 0..5 {
        world.add(1, "late.example");
        world.add(1, &format!("silent-{n}.example"));
    }
    let late = world.dialling.iter().filter(|(_, (_, job))| &*job.route.secured_site == "late.example");
    let late: Vec<u64> = late.map(|(attempt, _)| *attempt).collect();
    assert!(!late.is_empty());
    world.advance(Duration::from_secs(5));
    assert!(late.iter().all(|attempt| world.dialling.contains_key(attempt)));
}

#[test]
fn an_attempt_without_a_greeting_is_not_aborted_while_there_is_room() {
    let mut world = World::new(100);
    for n in 0..20 {
        world.add(1, &format!("silent-{n}.example"));
    }
    world.advance(Duration::from_secs(20));
    assert_eq!((world.dialling.len(), world.aborted), (20, 0));
}

#[test]
fn sites_that_refuse_connections_do_not_count_as_silent() {
    let mut world = World::new(10);
    for n in 0..2 {
        world.add(1, &format!("silent-{n}.example"));
    }
    world.advance(Duration::from_secs(2));
    world.hanging.insert("refuses.example".to_owned());
    world.add(1, "refuses.example");
    let attempt = *world.dialling.keys().last().unwrap();
    world.refuse(attempt);
    world.advance(Duration::from_mins(2));
    world.add(1, "refuses.example");
    let sites: Vec<&str> = world.dialling.values().map(|(_, job)| &*job.route.secured_site).collect();
    assert!(sites.contains(&"refuses.example"), "it does not wait behind silent sites: {sites:?}");
}

#[test]
fn sites_that_greet_and_never_reply_to_a_message_leave_connections_to_the_others() {
    let mut world = World::new(100);
    world.add(1, "known.example");
    world.send_one();
    for n in 0..300 {
        for _ in 0..3 {
            world.add(1, &format!("stuck-{n}.example"));
        }
    }
    assert_eq!(world.busy.len(), 70, "sites without a reply get one each, and seven tenths in all");
    world.advance(Duration::from_mins(1));
    assert_eq!(world.busy.len(), 70);
    world.add(1, "known.example");
    let (path, job) = world.busy.pop().unwrap();
    assert_eq!(&*job.route.secured_site, "known.example");
    world.busy.insert(0, (path, job));
    world.send_one();
}

#[test]
fn a_server_gives_connections_up_while_another_server_waits_for_one() {
    let mut world = World::new(10);
    for n in 0..40 {
        for _ in 0..20 {
            world.add(1, &format!("a-{n}.example"));
        }
    }
    assert_eq!(world.busy.len(), 7, "new sites get seven tenths");
    for _ in 0..7 {
        world.send_one();
    }
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

#[test]
fn connections_that_wait_for_a_final_reply_leave_their_room_to_other_sites() {
    let mut world = World::new(10);
    for n in 0..30 {
        world.add(1, &format!("late-{n}.example"));
    }
    assert_eq!(world.busy.len(), 7, "new sites get seven tenths");
    let waiting = world.busy.split_off(0);
    let parked = waiting.iter().filter(|(path, _)| world.schedule.park(*path, world.now)).count();
    world.perform_actions();
    assert_eq!(parked, 5, "at most half of the node's connections are parked");
    assert_eq!(world.busy.len(), 5, "other sites use the freed connections");
    for _ in 0..parked {
        world.schedule.unpark();
    }
    for (path, job) in waiting {
        world.schedule.on_accepted(path, &job.lane, job.entry.server_id, world.now);
        world.schedule.on_closed(path, EndedWhile::Working, true, world.now);
    }
    while !world.busy.is_empty() {
        world.perform_actions();
        world.send_one();
    }
    assert_eq!(world.opened.len(), 30, "every site had its turn");
}

#[test]
fn sites_that_greet_and_then_hang_stay_in_the_share_of_silent_sites() {
    let mut world = World::new(10);
    for n in 0..30 {
        world.add(1, &format!("hangs-{n}.example"));
    }
    // The hosts say nothing after the greeting, so each message is aborted and put back. Only connections to sites
    // already known as silent stay in `busy`.
    while let Some(at) = world.busy.iter().position(|(_, job)| !job.is_site_silent) {
        let begun = world.now;
        world.advance(Duration::from_millis(100));
        let (path, job) = world.busy.remove(at);
        world.schedule.note_hang(path, begun, world.now);
        world.schedule.put_back(job.lane, job.entry, world.now);
        world.schedule.on_closed(path, EndedWhile::Working, true, world.now);
        world.perform_actions();
    }
    assert_eq!(world.opened.len(), 30, "each was tried once");
    assert_eq!(world.busy.len(), 2, "a fifth of the connections");
    world.add(1, "new.example");
    assert!(world.opened.contains("new.example"), "a new site has its connection at once");
}
