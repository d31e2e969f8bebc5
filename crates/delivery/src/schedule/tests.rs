//! Tests of the schedule under a simulated clock, with simulated connection tasks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use postroad_mail::ReplyPhase;
use postroad_model::{
    AccountId, DomainName, GateAction, GateScope, MessageId, PoolId, RatePeriod, SendRate, ServerId,
    SourceId, Timestamp,
};
use postroad_store::{DeliverySetup, Gate, Pool, ServerDelivery, SetBy, SetupMark, Source};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::warm_up::WarmUpPlan;
use super::*;
use crate::pacing::{Reader, Reason};
use crate::providers::Providers;
use crate::route::{Dane, Route, RouteHost, RouteKind, Security};

const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

/// Waits shorter than this are not reported.
const LATE_AFTER: Duration = Duration::from_mins(5);
/// How long a message takes on the wire.
const ON_THE_WIRE: Duration = Duration::from_millis(20);

/// A simulated engine around a schedule.
struct World {
    schedule: Schedule,
    now: Timestamp,
    rng: StdRng,
    /// Connections by id.
    connections: HashMap<usize, Connection>,
    next_connection: usize,
    /// Future events and their times.
    agenda: BTreeMap<(Timestamp, usize), Event>,
    next_event: usize,
    /// Sent messages, in order.
    sent: Vec<SentMessage>,
    most_connections: usize,
    /// Sites whose hosts refuse connections.
    dead: Vec<String>,
    rules: crate::providers::Provider,
    /// Whether receivers accept a message only when it comes from the same source for the second time.
    greylists: bool,
    /// Messages with the sources they came from, as a greylisting receiver remembers them.
    greylisted_copies: HashSet<(i64, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct Connection {
    path: usize,
    attempt: u64,
    is_idle: bool,
    was_connected: bool,
}

#[derive(Debug)]
enum Event {
    Ask(usize, WorkRequest),
    Done(usize, CountedSource, LaneKey),
    Resolved(usize, LaneKey),
}

#[derive(Debug, Clone, PartialEq)]
struct SentMessage {
    server: i64,
    message: i64,
    at: Timestamp,
    source: i64,
    attempts: u32,
    waited: Option<Box<str>>,
}

impl World {
    fn new() -> Self {
        let providers = Providers::built_in();
        let rules = crate::providers::Provider {
            connections_max: 5,
            connections_per_minute: None,
            messages_per_minute: None,
            slow_start_connections: 1,
            ..crate::providers::Provider::clone(providers.find("mx.nowhere.example"))
        };
        Self {
            schedule: Schedule::new(
                vec![Duration::from_mins(1), Duration::from_mins(5)],
                "mx.here.example".to_owned(),
                WarmUpPlan::new(vec![10, 20]),
                100,
                1_000_000,
            ),
            now: START,
            rng: StdRng::seed_from_u64(7),
            connections: HashMap::new(),
            next_connection: 0,
            agenda: BTreeMap::new(),
            next_event: 0,
            sent: Vec::new(),
            most_connections: 0,
            dead: Vec::new(),
            rules,
            greylists: false,
            greylisted_copies: HashSet::new(),
        }
    }

    fn add(&mut self, server: i64, message: i64, domain: &str) {
        self.add_due(server, message, domain, self.now);
    }

    fn add_due(&mut self, server: i64, message: i64, domain: &str, due_at: Timestamp) {
        let entry = entry(server, message, due_at);
        self.schedule.add(DomainName::parse(domain).unwrap(), false, entry, self.now);
    }

    fn configure(&mut self, change: impl FnOnce(&mut DeliverySetup)) {
        let mut setup = DeliverySetup {
            servers: Vec::new(),
            pools: Vec::new(),
            sources: Vec::new(),
            gates: Vec::new(),
            live_nodes: 1,
            mark: SetupMark::default(),
        };
        change(&mut setup);
        self.schedule.configure(&setup, self.now);
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.next_event += 1;
        self.agenda.insert((self.now.plus(after), self.next_event), event);
    }

    fn perform_actions(&mut self) {
        for action in self.schedule.take_actions() {
            match action {
                Action::Resolve { lane, key, .. } => {
                    self.plan(Duration::from_millis(5), Event::Resolved(lane, key));
                }
                Action::Open { path, attempt } => {
                    self.next_connection += 1;
                    let id = self.next_connection;
                    self.connections
                        .insert(id, Connection { path, attempt, is_idle: false, was_connected: false });
                    self.most_connections = self.most_connections.max(self.connections.len());
                    self.plan(Duration::from_micros(50), Event::Ask(id, WorkRequest::First));
                }
                Action::Wake { path } => {
                    let idle = self.connections.iter_mut().find(|(_, c)| c.path == path && c.is_idle);
                    let id = idle.map(|(id, connection)| {
                        connection.is_idle = false;
                        *id
                    });
                    if let Some(id) = id {
                        self.plan(Duration::from_micros(50), Event::Ask(id, WorkRequest::AfterWait));
                    }
                }
                Action::AbortAttempt { .. } => {}
            }
        }
    }

    /// Runs for this long, in simulated time.
    fn run(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        loop {
            self.perform_actions();
            let next_event = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let next = [next_event, self.schedule.next_wakeup()].into_iter().flatten().min();
            match next {
                Some(next) if next <= end => self.now = next.max(self.now),
                _ => break,
            }
            self.schedule.tick(self.now);
            self.perform_actions();
            if let Some(entry) = self.agenda.first_entry()
                && entry.key().0 <= self.now
            {
                let event = entry.remove();
                self.handle(event);
            }
        }
        self.now = end;
        self.schedule.tick(self.now);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Resolved(lane, key) => {
                let route = self.route(&key);
                self.schedule.on_resolved(lane, route, self.now);
            }
            Event::Ask(id, request) => self.ask(id, request),
            Event::Done(id, source, lane) => {
                let path = self.connections[&id].path;
                self.schedule.on_accepted(path, &lane, ServerId(1), self.now);
                self.schedule.on_settled(&source, true);
                self.ask(id, WorkRequest::Again);
            }
        }
    }

    fn ask(&mut self, id: usize, request: WorkRequest) {
        let path = self.connections[&id].path;
        match self.schedule.next(path, request, self.now) {
            Next::Close => self.close(id, EndedWhile::Working),
            Next::Wait => {
                let has_connection = request != WorkRequest::First;
                if has_connection && self.rng.random_bool(0.9) {
                    self.connections.get_mut(&id).unwrap().is_idle = true;
                } else {
                    self.close(id, EndedWhile::Waiting);
                }
            }
            Next::Job(job) if self.dead.contains(&job.route.site.to_string()) => {
                self.schedule.on_connect_failed(path, "refused".into(), self.now);
                self.schedule.on_settled(&job.counted_source().unwrap(), false);
                // As the engine does after a SoftFail.
                let due_at = self.now.plus(Duration::from_mins(1));
                let entry = Entry { due_at, attempts: job.entry.attempts + 1, ..job.entry };
                self.schedule.add(job.lane.domain, false, entry, self.now);
                self.close(id, EndedWhile::Working);
            }
            Next::Job(job)
                if self.greylists
                    && self.greylisted_copies.insert((job.entry.message_id.0, job.source.id.0)) =>
            {
                self.connected(id);
                let (server, signal) = (job.entry.server_id, Some(postroad_mail::Signal::Greylisted));
                let reason = &Reason::of_message("451 come again", server);
                let reply = RefusalReply {
                    lane: &job.lane,
                    server,
                    greylisting: None,
                    phase: ReplyPhase::Data,
                    signal,
                    reason,
                };
                self.schedule.on_refused(path, reply, self.now);
                self.schedule.on_settled(&job.counted_source().unwrap(), false);
                let due_at = self.now.plus(Duration::from_mins(1));
                let (attempts, source) = (job.entry.attempts + 1, Some(job.source.id));
                let entry = Entry { due_at, attempts, source, ..job.entry };
                self.schedule.add(job.lane.domain, false, entry, self.now);
                self.plan(ON_THE_WIRE, Event::Ask(id, WorkRequest::Again));
            }
            Next::Job(job) => {
                self.sent.push(SentMessage {
                    server: job.entry.server_id.0,
                    message: job.entry.message_id.0,
                    at: self.now,
                    source: job.source.id.0,
                    attempts: job.entry.attempts + 1,
                    waited: job.waited.clone(),
                });
                self.connected(id);
                let counted = job.counted_source().unwrap();
                let is_slow = job.route.site.starts_with("mx.slow");
                let time = if is_slow { Duration::from_mins(1) } else { ON_THE_WIRE };
                self.plan(time, Event::Done(id, counted, job.lane));
            }
        }
    }

    fn connected(&mut self, id: usize) {
        let connection = self.connections.get_mut(&id).unwrap();
        if !std::mem::replace(&mut connection.was_connected, true) {
            self.schedule.on_connected(connection.path, connection.attempt, true, self.now);
        }
    }

    fn close(&mut self, id: usize, ended_while: EndedWhile) {
        let connection = self.connections.remove(&id).unwrap();
        self.schedule.on_closed(connection.path, ended_while, connection.was_connected, self.now);
    }

    /// Every domain has its own site.
    fn route(&self, key: &LaneKey) -> Route {
        let site: Arc<str> = format!("mx.{}", key.domain).into();
        let is_google = key.domain.as_str().ends_with(".google.example");
        let group = if is_google { "google".into() } else { Arc::clone(&self.rules.group) };
        Route {
            secured_site: Arc::clone(&site),
            site: Arc::clone(&site),
            provider: self.rules.name.as_str().into(),
            rules: Arc::new(crate::providers::Provider { group, ..self.rules.clone() }),
            hosts: vec![RouteHost {
                name: site.to_string(),
                preference: 0,
                address: None,
                port: 25,
                dane: Dane::Nothing,
            }],
            security: Security::Opportunistic,
            kind: RouteKind::Mx,
            is_exempt: false,
            valid_until: self.now.plus(Duration::from_mins(5)),
        }
    }

    fn sent_of(&self, server: i64) -> usize {
        self.sent.iter().filter(|sent| sent.server == server).count()
    }
}

fn entry(server: i64, message: i64, due_at: Timestamp) -> Entry {
    Entry {
        server_id: ServerId(server),
        message_id: MessageId(message),
        due_at,
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
    }
}

fn gate(scope: GateScope, action: GateAction, ends_at: Option<Timestamp>) -> Gate {
    Gate {
        scope,
        action,
        reason: "a test".to_owned(),
        automatic: false,
        set_by: SetBy::Operator,
        created_at: START,
        ends_at,
    }
}

fn server(id: i64, rate: Option<SendRate>) -> ServerDelivery {
    ServerDelivery {
        id: ServerId(id),
        suspended_reason: None,
        pool_id: None,
        send_rate: rate,
        account_id: AccountId(id),
        account_rate: None,
    }
}

#[test]
fn all_messages_go_out_over_no_more_connections_than_allowed() {
    let mut world = World::new();
    (0..1_000).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 1_000);
    assert_eq!(world.most_connections, 5);
    let ids: HashSet<_> = world.sent.iter().map(|sent| sent.message).collect();
    assert_eq!(ids.len(), 1_000, "none twice");
}

#[test]
fn connections_are_added_as_messages_are_accepted() {
    let mut world = World::new();
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_millis(6));
    assert_eq!(world.connections.len(), 1);
    world.run(Duration::from_millis(25));
    assert_eq!(world.connections.len(), 2);
}

#[test]
fn one_message_waits_few_turns_behind_a_hundred_thousand_of_another_server() {
    let mut world = World::new();
    (0..100_000).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_secs(2));
    let before = world.sent.len();
    world.add(2, 100_000, "one.example");
    world.run(Duration::from_secs(2));
    let turns = world.sent[before..].iter().position(|sent| sent.server == 2).unwrap();
    assert!(turns <= 2, "after {turns} others");
}

#[test]
fn no_message_goes_out_before_it_is_due_or_after_it_expired() {
    let mut world = World::new();
    let due = START.plus(Duration::from_mins(3));
    world.add_due(1, 1, "one.example", due);
    let expiring = Entry { expires_at: Some(START.plus(Duration::from_secs(5))), ..entry(1, 2, START) };
    world.configure(|setup| {
        let end = Some(START.plus(Duration::from_secs(10)));
        setup.gates.push(gate(GateScope::Everything, GateAction::Suspend, end));
    });
    world.schedule.add(DomainName::parse("one.example").unwrap(), false, expiring, START);
    world.run(Duration::from_mins(2));
    assert!(world.sent.is_empty());
    let expired = world.schedule.take_expired();
    assert_eq!(expired.iter().map(|entry| entry.message_id.0).collect::<Vec<_>>(), [2]);
    world.run(Duration::from_mins(2));
    assert_eq!(world.sent.len(), 1);
    assert!(world.sent[0].at >= due);
}

#[test]
fn a_gate_keeps_back_only_mail_of_its_scope_and_lifting_it_resumes_at_once() {
    let domain = || DomainName::parse("one.example").unwrap();
    let scopes = [
        GateScope::Domain(domain()),
        GateScope::Lane { pool: "default".into(), domain: domain() },
        GateScope::Path { source: "0.0.0.0".parse().unwrap(), site: "mx.one.example".into() },
    ];
    for scope in scopes {
        let mut world = World::new();
        world.configure(|setup| setup.gates.push(gate(scope.clone(), GateAction::Suspend, None)));
        (0..50).for_each(|id| world.add(1, id, "one.example"));
        (50..100).for_each(|id| world.add(1, id, "two.example"));
        world.run(Duration::from_mins(1));
        assert_eq!(world.sent.len(), 50, "{scope}");
        assert!(world.sent.iter().all(|sent| sent.message >= 50), "{scope}");
        world.configure(|_| {});
        world.run(Duration::from_secs(5));
        assert_eq!(world.sent.len(), 100, "{scope}");
    }
}

#[test]
fn wide_gates_keep_all_mail_back_until_they_end() {
    let scopes = [
        GateScope::Everything,
        GateScope::Pool("default".into()),
        GateScope::Provider("default".into()),
        GateScope::Server(ServerId(1)),
        GateScope::SourceProvider { source: "0.0.0.0".parse().unwrap(), provider: "default".into() },
    ];
    for scope in scopes {
        let mut world = World::new();
        let end = START.plus(Duration::from_mins(2));
        world.configure(|setup| setup.gates.push(gate(scope.clone(), GateAction::Suspend, Some(end))));
        (0..50).for_each(|id| world.add(1, id, "one.example"));
        world.run(Duration::from_secs(119));
        assert!(world.sent.is_empty(), "{scope}");
        world.run(Duration::from_secs(10));
        assert_eq!(world.sent.len(), 50, "{scope}");
    }
}

#[test]
fn wake_ups_do_not_multiply_while_an_address_warms_up() {
    let mut world = World::new();
    let end = START.plus(Duration::from_hours(1));
    let of_domain = GateScope::Domain(DomainName::parse("one.example").unwrap());
    let rate = SendRate { count: 60, per: RatePeriod::Minute };
    // The counts of the address change all the time, and the gates and rates do not.
    let configure = |world: &mut World, sent_today: u64| {
        world.configure(|setup| {
            setup.pools = vec![pool(1, true)];
            setup.servers = (1..=20).map(|id| server(id, Some(rate))).collect();
            setup.sources = vec![
                Source { warmup_started_at: Some(START), sent_today, ..source(1, 1, 1) },
                source(2, 1, 1),
            ];
            setup.gates = vec![gate(of_domain.clone(), GateAction::Suspend, Some(end))];
        });
    };
    configure(&mut world, 0);
    for server in 1..=20 {
        world.add(server, server, "one.example");
        (0..20).for_each(|id| world.add(server, server * 1_000 + id, "two.example"));
    }
    for second in 1..1_000 {
        configure(&mut world, second);
        world.run(Duration::from_secs(1));
    }
    let waiting = world.schedule.wakes.len();
    assert!(waiting < 100, "{waiting} wake-ups");
    world.run(Duration::from_hours(1));
    assert_eq!(world.sent.len(), 20 * 21);
}

#[test]
fn a_slow_down_gate_limits_the_messages_a_minute() {
    let mut world = World::new();
    let slow = GateAction::Slow { per_minute: 30 };
    world.configure(|setup| setup.gates.push(gate(GateScope::Server(ServerId(1)), slow, None)));
    (0..200).for_each(|id| world.add(1, id, "one.example"));
    (200..400).for_each(|id| world.add(2, id, "one.example"));
    world.run(Duration::from_mins(2));
    assert_eq!(world.sent_of(2), 200);
    let slowed = world.sent_of(1);
    assert!((55..=60).contains(&slowed), "{slowed}");
}

#[test]
fn a_send_rate_paces_one_server_and_loses_no_message() {
    let mut world = World::new();
    let rate = SendRate { count: 10, per: RatePeriod::Second };
    world.configure(|setup| setup.servers = vec![server(1, Some(rate)), server(2, None)]);
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    (100..300).for_each(|id| world.add(2, id, "one.example"));
    world.run(Duration::from_secs(5));
    assert_eq!(world.sent_of(2), 200);
    let paced = world.sent_of(1);
    assert!((45..=50).contains(&paced), "{paced}");
    world.run(Duration::from_secs(20));
    assert_eq!(world.sent_of(1), 100);
}

#[test]
fn the_servers_of_an_account_share_its_rate_in_turns() {
    let mut world = World::new();
    let of_account = |id, account| ServerDelivery {
        account_id: AccountId(account),
        account_rate: SendRate::parse("10/s"),
        ..server(id, None)
    };
    world.configure(|setup| {
        setup.servers = vec![of_account(1, 7), of_account(2, 7), of_account(3, 7), of_account(4, 8)];
    });
    for (server, site) in [(1, "one.example"), (2, "one.example"), (3, "two.example"), (4, "two.example")] {
        (0..60).for_each(|id| world.add(server, server * 100 + id, site));
    }
    world.run(Duration::from_secs(9));
    let sent = [1, 2, 3].map(|server| world.sent_of(server));
    assert!((80..=90).contains(&sent.iter().sum::<usize>()), "{sent:?}");
    assert!(sent.iter().all(|count| (24..=34).contains(count)), "{sent:?}");
    assert_eq!(world.sent_of(4), 60, "another account's rate is its own");
    world.run(Duration::from_secs(12));
    assert_eq!(
        [1, 2, 3].map(|server| world.sent_of(server)),
        [60; 3],
        "nothing is lost, and no turn is wasted"
    );
}

#[test]
fn a_suspended_server_waits_and_comes_back() {
    let mut world = World::new();
    world.configure(|setup| {
        setup.servers = vec![
            ServerDelivery { suspended_reason: Some("unpaid".into()), ..server(1, None) },
            server(2, None),
        ];
    });
    (0..10).for_each(|id| world.add(1, id, "one.example"));
    (10..20).for_each(|id| world.add(2, id, "one.example"));
    world.run(Duration::from_secs(10));
    assert_eq!((world.sent_of(1), world.sent_of(2)), (0, 10));
    world.configure(|setup| setup.servers = vec![server(1, None), server(2, None)]);
    world.run(Duration::from_secs(10));
    assert_eq!(world.sent_of(1), 10);
}

#[test]
fn servers_that_a_setup_leaves_out_keep_their_settings() {
    let mut world = World::new();
    let suspended = |id| ServerDelivery { suspended_reason: Some("unpaid".into()), ..server(id, None) };
    world.configure(|setup| setup.servers = vec![suspended(1), suspended(2), server(3, None)]);
    (1..=3).for_each(|server| (0..10).for_each(|id| world.add(server, server * 10 + id, "one.example")));
    world.run(Duration::from_secs(10));
    assert_eq!([1, 2, 3].map(|server| world.sent_of(server)), [0, 0, 10]);
    world.configure(|setup| setup.servers = vec![server(1, None)]);
    world.run(Duration::from_secs(10));
    assert_eq!([1, 2, 3].map(|server| world.sent_of(server)), [10, 0, 10]);
    world.configure(|setup| setup.servers = vec![suspended(3), server(2, None)]);
    (0..10).for_each(|id| world.add(3, 40 + id, "one.example"));
    world.run(Duration::from_secs(10));
    assert_eq!([1, 2, 3].map(|server| world.sent_of(server)), [10, 10, 10]);
}

#[test]
fn rates_of_unchanged_servers_are_shared_with_new_nodes_too() {
    let mut world = World::new();
    let of_account = ServerDelivery { account_rate: SendRate::parse("10/s"), ..server(2, None) };
    world.configure(|setup| setup.servers = vec![server(1, SendRate::parse("10/s")), of_account]);
    world.configure(|setup| setup.live_nodes = 2);
    (1..=2).for_each(|server| (0..100).for_each(|id| world.add(server, server * 100 + id, "one.example")));
    world.run(Duration::from_secs(10));
    for server in [1, 2] {
        let sent = world.sent_of(server);
        assert!((45..=55).contains(&sent), "{sent}");
    }
}

/// Why a message of the first server waits.
fn why_waiting(world: &mut World, message: i64, domain: &str) -> String {
    let domain = DomainName::parse(domain).unwrap();
    let server = ServerId(1);
    world.schedule.why_waiting(&domain, server, MessageId(message), Reader::Server(server), world.now)
}

#[test]
fn a_dead_site_is_left_alone_for_a_while_and_tried_again() {
    let mut world = World::new();
    world.dead.push("mx.one.example".into());
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    (100..150).for_each(|id| world.add(1, id, "two.example"));
    world.run(Duration::from_secs(50));
    assert_eq!(world.sent.len(), 50);
    let cause = why_waiting(&mut world, 99, "one.example");
    assert!(cause.contains("could not be reached (refused)"), "{cause}");
    world.dead.clear();
    world.run(Duration::from_mins(10));
    assert_eq!(world.sent.len(), 150);
}

#[test]
fn messages_behind_a_dead_host_are_reported_after_five_minutes_without_an_attempt() {
    let mut world = World::new();
    world.dead.push("mx.one.example".into());
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(4));
    let (waiting, now) = (world.schedule.entry_count(), world.now);
    assert_eq!(waiting, 100, "those that failed with their connections, and those that wait");
    assert!(world.schedule.take_late(1_000, LATE_AFTER, now).is_empty(), "they have not waited for long");
    world.run(Duration::from_mins(2));
    let now = world.now;
    let late = world.schedule.take_late(50, LATE_AFTER, now);
    assert_eq!(late.len(), 50);
    assert!(late.iter().all(|late| late.entry.attempts == 0), "none of them was offered to anybody");
    assert!(late[0].block.cause.to_string().contains("could not be reached (refused)"), "{late:?}");
    assert_eq!(world.schedule.entry_count(), 50);
    let rest = world.schedule.take_late(1_000, LATE_AFTER, now);
    assert!(rest.len() > 30, "{}", rest.len());
    for late in late.into_iter().chain(rest) {
        let entry = Entry { delay_notice_at: Some(now.plus(Duration::from_mins(10))), ..late.entry };
        world.schedule.put_back(late.lane, entry, now);
    }
    assert!(world.schedule.take_late(1_000, LATE_AFTER, now).is_empty(), "they are not reported twice");
    world.dead.clear();
    world.run(Duration::from_mins(10));
    assert_eq!(world.sent.len(), 100);
}

#[test]
fn messages_that_wait_for_a_rate_are_reported_and_keep_their_order() {
    let mut world = World::new();
    let rate = SendRate { count: 1, per: RatePeriod::Minute };
    world.configure(|setup| setup.servers = vec![server(1, Some(rate)), server(2, None)]);
    (0..20).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(4));
    let now = world.now;
    assert!(world.schedule.take_late(1_000, LATE_AFTER, now).is_empty(), "they have not waited for long");
    world.run(Duration::from_mins(2));
    let now = world.now;
    let late = world.schedule.take_late(5, LATE_AFTER, now);
    assert_eq!(late.len(), 5);
    for late in late {
        let cause = late.block.cause.to_string();
        assert!(cause.starts_with("the server's send rate of 1/m is used up"), "{cause}");
        assert!(late.block.cause.is_ours(), "no message is given up for a limit of ours");
        let due_at = now.plus(Duration::from_secs(5));
        let entry = Entry { due_at, delay_notice_at: Some(now.plus(Duration::from_hours(1))), ..late.entry };
        world.schedule.add(late.lane.domain, false, entry, now);
    }
    world.run(Duration::from_mins(30));
    let order: Vec<i64> = world.sent.iter().map(|sent| sent.message).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn messages_without_a_dns_answer_wait_and_are_reported_after_five_minutes() {
    let mut world = World::new();
    (0..3).for_each(|id| world.add(1, id, "silent.example"));
    let until = world.now.plus(Duration::from_mins(10));
    for action in world.schedule.take_actions() {
        if let Action::Resolve { lane, .. } = action {
            world.schedule.on_unresolved(lane, until, "SERVFAIL".into(), false, world.now);
        }
    }
    let now = world.now.plus(Duration::from_mins(4));
    assert!(world.schedule.take_late(1_000, LATE_AFTER, now).is_empty());
    let now = world.now.plus(Duration::from_mins(5));
    let late = world.schedule.take_late(2, LATE_AFTER, now);
    assert_eq!(late.len(), 2);
    let cause = late[0].block.cause.to_string();
    assert_eq!(cause, "the DNS does not say where mail for silent.example goes (SERVFAIL)");
    assert!(!late[0].block.cause.is_ours());
    assert_eq!(
        (world.schedule.take_late(1_000, LATE_AFTER, now).len(), world.schedule.entry_count()),
        (1, 0)
    );
}

#[test]
fn suspended_messages_wait_although_their_domain_or_host_does_not_answer() {
    let mut world = World::new();
    world.dead.push("mx.one.example".into());
    for id in 0..100 {
        world.add(1 + id % 2, id, "one.example");
        world.add(1 + id % 2, 100 + id, "silent.example");
    }
    let until = world.now.plus(Duration::from_hours(1));
    let silent = DomainName::parse("silent.example").unwrap();
    for action in world.schedule.take_actions() {
        match action {
            Action::Resolve { lane, key, .. } if key.domain == silent => {
                world.schedule.on_unresolved(lane, until, "SERVFAIL".into(), false, world.now);
            }
            other => world.schedule.actions.push(other),
        }
    }
    let suspended = ServerDelivery { suspended_reason: Some("a test".into()), ..server(1, None) };
    world.configure(|setup| setup.servers = vec![suspended, server(2, None)]);
    world.run(Duration::from_mins(6));
    let late = world.schedule.take_late(1_000, LATE_AFTER, world.now);
    let of = |server: i64| late.iter().filter(|late| late.entry.server_id == ServerId(server)).count();
    assert!(of(2) > 80, "{}", of(2));
    assert_eq!(of(1), 0, "they wait until the server is resumed");
    world.configure(|setup| {
        setup.servers = vec![server(1, None), server(2, None)];
        setup.gates.push(gate(GateScope::Domain(silent.clone()), GateAction::Suspend, None));
    });
    let late = world.schedule.take_late(1_000, LATE_AFTER, world.now);
    assert!(late.iter().any(|late| late.lane.domain != silent), "{late:?}");
    assert!(late.iter().all(|late| late.lane.domain != silent), "an operator has suspended the domain");
    world.configure(|setup| setup.gates.clear());
    let late = world.schedule.take_late(1_000, LATE_AFTER, world.now);
    let order: Vec<i64> = late.iter().map(|late| late.entry.message_id.0).collect();
    assert_eq!(order, (100..200).step_by(2).collect::<Vec<_>>());
}

#[test]
fn late_message_is_reported_even_if_an_earlier_one_of_its_domain_was_reported_before() {
    let mut world = World::new();
    let minute = |minute: u64| START.plus(Duration::from_mins(minute));
    world.add(1, 1, "silent.example");
    let fail = |world: &mut World, now: Timestamp| {
        for action in world.schedule.take_actions() {
            if let Action::Resolve { lane, .. } = action {
                let until = now.plus(Duration::from_secs(30));
                world.schedule.on_unresolved(lane, until, "no answer".into(), false, now);
            }
        }
    };
    let mut late_messages: Vec<(i64, u64)> = Vec::new();
    for now in (0..100).map(minute) {
        if now == minute(71) {
            world.schedule.add(DomainName::parse("silent.example").unwrap(), false, entry(1, 2, now), now);
        }
        world.schedule.tick(now);
        fail(&mut world, now);
        for late in world.schedule.take_late(500, LATE_AFTER, now) {
            late_messages.push((late.entry.message_id.0, now.since(START).as_secs() / 60));
            // As the engine does: the message is reported again later, and waits meanwhile.
            let delay_notice_at = Some(now.plus(Duration::from_hours(1)));
            let entry = Entry { due_at: now.plus(Duration::from_secs(5)), delay_notice_at, ..late.entry };
            world.schedule.add(late.lane.domain, false, entry, now);
        }
    }
    assert_eq!(late_messages, [(1, 5), (1, 65), (2, 76)]);
}

#[test]
fn many_late_messages_of_one_domain_do_not_delay_the_record_of_another_domain() {
    let mut world = World::new();
    (0..2_000).for_each(|id| world.add(1, id, "many.example"));
    world.add(2, 2_000, "single.example");
    let now = world.now.plus(Duration::from_mins(6));
    let late = world.schedule.take_late(500, LATE_AFTER, now);
    assert_eq!(late.len(), 500);
    assert!(late.iter().any(|late| late.entry.message_id.0 == 2_000));
    let next = world.schedule.take_late(500, LATE_AFTER, now);
    assert_eq!(next.iter().map(|late| late.entry.message_id.0).min(), Some(499), "in order");
}

#[test]
fn messages_that_only_wait_for_a_connection_are_reported_after_five_minutes() {
    let mut world = World::new();
    world.rules.connections_max = 1;
    (0..30).for_each(|id| world.add(1, id, "slow.example"));
    world.run(Duration::from_secs(299));
    assert!(world.schedule.take_late(500, LATE_AFTER, world.now).is_empty());
    world.run(Duration::from_secs(1));
    let late = world.schedule.take_late(500, LATE_AFTER, world.now);
    let ids: Vec<i64> = late.iter().map(|late| late.entry.message_id.0).collect();
    assert!(ids.contains(&10), "{ids:?}");
    let cause = &late[0].block.cause;
    assert_eq!(cause.to_string(), "1 of 1 connections to mx.slow.example are in use");
    assert!(cause.is_ours(), "a limit of ours fails no message");
}

#[test]
fn cause_of_a_wait_is_the_one_in_the_pool_of_the_message() {
    let mut world = World::new();
    let domain = DomainName::parse("slow.example").unwrap();
    let closed = GateScope::Lane { pool: "pool1".into(), domain: domain.clone() };
    world.configure(|setup| {
        setup.pools = vec![pool(1, true), pool(2, false)];
        setup.sources = vec![source(1, 1, 1), source(2, 2, 1)];
        setup.gates.push(gate(closed, GateAction::Suspend, None));
    });
    for id in 0..20 {
        let chosen_pool = Some(PoolId(1 + id % 2));
        world.schedule.add(domain.clone(), false, Entry { chosen_pool, ..entry(1, id, START) }, START);
    }
    world.run(Duration::from_secs(5));
    let mut cause =
        |id| world.schedule.why_waiting(&domain, ServerId(1), MessageId(id), Reader::Operator, world.now);
    assert!(cause(18).contains("is stopped by the operator: a test"), "{}", cause(18));
    assert!(cause(19).starts_with("It waits for its turn"), "{}", cause(19));
}

/// Refuses the mail of these servers at three sites of a provider as too fast. Returns whether the whole provider is
/// slowed.
fn provider_is_slowed(servers: [i64; 3], accepts_between: bool) -> bool {
    let mut world = World::new();
    for (id, domain) in (0..).zip(["one.example", "two.example", "three.example"]) {
        world.add(1, id, domain);
    }
    world.run(Duration::from_secs(1));
    let now = world.now;
    let paths: Vec<usize> = world.schedule.paths.iter().map(|(id, _)| id).collect();
    let lanes: Vec<LaneKey> = world.schedule.lanes.iter().map(|(_, lane)| lane.key.clone()).collect();
    assert_eq!((paths.len(), lanes.len()), (3, 3));
    for (at, server) in servers.into_iter().enumerate() {
        let (server, signal) = (ServerId(server), Some(postroad_mail::Signal::TooFast));
        let reason = &Reason::of_message("451 slow down", server);
        let reply = RefusalReply {
            lane: &lanes[at],
            server,
            greylisting: None,
            phase: ReplyPhase::Data,
            signal,
            reason,
        };
        if accepts_between && at == 2 {
            world.schedule.on_accepted(paths[0], &lanes[0], server, now);
        }
        world.schedule.on_refused(paths[at], reply, now);
    }
    world.schedule.source_providers.values().any(|source_provider| source_provider.rate.is_paused())
}

#[test]
fn a_provider_is_slowed_when_several_of_its_sites_refuse_several_servers_as_too_fast() {
    assert!(provider_is_slowed([1, 2, 1], false));
    assert!(!provider_is_slowed([1, 1, 1], false), "one server is no evidence against all");
    assert!(!provider_is_slowed([1, 2, 1], true), "the provider has accepted mail in between");
}

#[test]
fn refusal_of_one_recipient_ends_the_standstill_of_a_provider() {
    for ends_by in [None, Some(postroad_mail::Signal::Greylisted)] {
        let mut world = World::new();
        world.add(1, 0, "one.example");
        world.run(Duration::from_secs(1));
        let (path, _) = world.schedule.paths.iter().next().unwrap();
        let lane = world.schedule.lanes.iter().next().unwrap().1.key.clone();
        let reason = &Reason::of_message("550 5.1.1 user unknown", ServerId(1));
        let source_provider = world.schedule.source_providers.values_mut().next().unwrap();
        assert!(source_provider.has_several_sites);
        assert!(source_provider.standstill.on_refused(1, reason, world.now));
        let phase = ReplyPhase::Recipient;
        let reply = RefusalReply {
            lane: &lane,
            server: ServerId(1),
            greylisting: None,
            phase,
            signal: ends_by,
            reason,
        };
        world.schedule.on_refused(path, reply, world.now);
        assert!(
            world
                .schedule
                .source_providers
                .values()
                .all(|source_provider| !source_provider.standstill.is_stopped()),
            "{ends_by:?}"
        );
    }
}

/// Whether refusals for reputation at this many domains stop the whole provider; one server sends all.
fn one_server_stops_provider(domains: i64, other_waits: bool) -> bool {
    let mut world = World::new();
    (0..domains).for_each(|id| world.add(1, id, &format!("domain{id}.example")));
    world.run(Duration::from_secs(1));
    if other_waits {
        let suspended = gate(GateScope::Server(ServerId(2)), GateAction::Suspend, None);
        world.configure(|setup| setup.gates.push(suspended));
        world.add(2, 1_000, "domain0.example");
        world.run(Duration::from_secs(1));
    }
    let lanes: Vec<LaneKey> = world.schedule.lanes.iter().map(|(_, lane)| lane.key.clone()).collect();
    for lane in &lanes {
        let site: Arc<str> = format!("mx.{}", lane.domain).into();
        let path = world.schedule.paths.iter().find(|(_, path)| path.secured_site == site).unwrap().0;
        let (server, signal) = (ServerId(1), Some(postroad_mail::Signal::Reputation));
        let reason = &Reason::of_message("550 5.7.1 on our block list", server);
        let phase = ReplyPhase::Recipient;
        let reply = RefusalReply { lane, server, greylisting: None, phase, signal, reason };
        world.schedule.on_refused(path, reply, world.now);
    }
    world.schedule.source_providers.values().any(|source_provider| source_provider.standstill.is_stopped())
}

#[test]
fn refused_mail_of_one_server_stops_a_provider_only_at_many_domains_and_if_no_other_server_waits() {
    assert!(!one_server_stops_provider(11, false));
    assert!(one_server_stops_provider(12, false));
    assert!(!one_server_stops_provider(12, true), "others could tell whether it takes mail");
}

#[test]
fn refusal_reports_the_conclusion_without_the_words_of_the_receiver() {
    let mut world = World::new();
    (0..50).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_secs(1));
    let (path, _) = world.schedule.paths.iter().next().unwrap();
    let lane = world.schedule.lanes.iter().next().unwrap().1.key.clone();
    let server = ServerId(2);
    let mut refuse = |signal| {
        let reason = &Reason::of_message("451 4.7.1 <jane@one.example> secret words", server);
        let phase = ReplyPhase::Data;
        let reply =
            RefusalReply { lane: &lane, server, greylisting: None, phase, signal: Some(signal), reason };
        world.schedule.on_refused(path, reply, world.now).conclusion
    };
    assert_eq!(refuse(postroad_mail::Signal::Content), None, "one refusal stops nothing");
    refuse(postroad_mail::Signal::Content);
    let stopped = refuse(postroad_mail::Signal::Content).unwrap();
    assert_eq!(stopped, "mail to one.example is stopped, and one message at a time tries again");
    let slowed = refuse(postroad_mail::Signal::TooFast).unwrap();
    let expected = "mail to mx.one.example from this address is slowed to about ";
    assert!(slowed.starts_with(expected) && slowed.ends_with(" messages a minute"), "{slowed}");
    let narrowed = refuse(postroad_mail::Signal::TooManyConnections).unwrap();
    assert!(narrowed.starts_with("mail to mx.one.example from this address uses at most "), "{narrowed}");
}

#[test]
fn the_rate_of_a_provider_is_known_to_the_next_process() {
    let mut world = World::new();
    let provider = world.rules.name.clone();
    let domains = ["one.example", "two.example", "three.example"];
    for (id, domain) in domains.into_iter().enumerate() {
        world.add(1, id as i64, domain);
    }
    world.run(Duration::from_secs(1));
    let paths: Vec<usize> = world.schedule.paths.iter().map(|(id, _)| id).collect();
    assert_eq!(paths.len(), 3);
    let lane = world.schedule.lanes.iter().next().unwrap().1.key.clone();
    // More than a minute of mail, so that the rate is measured.
    for second in 0..90 {
        world.now = world.now.plus(Duration::from_secs(1));
        world.schedule.on_accepted(paths[second % 3], &lane, ServerId(1), world.now);
    }
    for (number, path) in paths.into_iter().enumerate() {
        let server = ServerId(1 + number as i64 % 2);
        let reason = &Reason::of_message("451 4.7.500 Server busy", server);
        let signal = Some(postroad_mail::Signal::TooFast);
        let reply = RefusalReply {
            lane: &lane,
            server,
            greylisting: None,
            phase: ReplyPhase::MailFrom,
            signal,
            reason,
        };
        let conclusion = world.schedule.on_refused(path, reply, world.now).conclusion.unwrap();
        let names_provider =
            conclusion.starts_with(&format!("mail to {provider} from this address is slowed"));
        assert_eq!(names_provider, number == 2, "{conclusion}");
    }
    let notes = world.schedule.take_pacing_notes(world.now);
    assert!(notes.iter().any(|note| note.site == format!("provider:{provider}")), "{notes:?}");
    let mut next = World::new();
    next.now = world.now;
    next.schedule.remember(notes, next.now);
    next.add(1, 9, "four.example");
    next.run(Duration::from_millis(100));
    let limited = next.schedule.source_providers.values().filter(|state| state.rate.is_limiting()).count();
    assert_eq!(limited, 1, "the new site is sent to at the provider's rate");
}

fn source(id: i64, pool: i64, weight: u32) -> Source {
    Source {
        id: SourceId(id),
        pool_id: PoolId(pool),
        address: format!("192.0.2.{id}").parse().unwrap(),
        helo: DomainName::parse(&format!("out{id}.here.example")).unwrap(),
        weight,
        version: 1,
        created_at: START,
        updated_at: START,
        warmup_started_at: None,
        warmup_paused_reason: None,
        warmup_paused_at: None,
        warmup_days_paused: 0,
        sent_today: 0,
        bounced_today: 0,
        complained_today: 0,
        today_by_provider: Vec::new(),
        warmup_counts: postroad_store::SourceCounts::default(),
    }
}

fn pool(id: i64, shared: bool) -> Pool {
    Pool {
        id: PoolId(id),
        name: format!("pool{id}"),
        shared,
        account_id: None,
        created_at: START,
        updated_at: START,
    }
}

#[test]
fn addresses_share_the_mail_by_their_weights() {
    let mut world = World::new();
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = vec![source(1, 1, 3), source(2, 1, 1)];
    });
    (0..1_000).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 1_000);
    let of_first = world.sent.iter().filter(|sent| sent.source == 1).count();
    assert!((730..=770).contains(&of_first), "{of_first}");
}

/// Number of messages sent from each source, in the order of the sources' ids.
fn by_source(world: &World, sources: i64) -> Vec<usize> {
    (1..=sources).map(|id| world.sent.iter().filter(|sent| sent.source == id).count()).collect()
}

#[test]
fn equal_addresses_share_single_messages_to_many_domains() {
    let mut world = World::new();
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = (1..=4).map(|id| source(id, 1, 1)).collect();
    });
    (0..200).for_each(|id| world.add(1, id, &format!("d{id}.example")));
    world.run(Duration::from_mins(1));
    let counts = by_source(&world, 4);
    assert!(counts.iter().all(|count| (40..=60).contains(count)), "{counts:?}");
    // The same holds when messages come one after another.
    for id in 200..400 {
        world.add(1, id, &format!("d{id}.example"));
        world.run(Duration::from_millis(10));
    }
    world.run(Duration::from_mins(1));
    let counts = by_source(&world, 4);
    assert_eq!(counts.iter().sum::<usize>(), 400);
    assert!(counts.iter().all(|count| (90..=110).contains(count)), "{counts:?}");
}

#[test]
fn addresses_share_the_mail_to_many_domains_by_their_weights() {
    for seed in 0..5 {
        let mut world = World::new();
        world.rng = StdRng::seed_from_u64(seed);
        world.configure(|setup| {
            setup.pools = vec![pool(1, true)];
            setup.sources = vec![source(1, 1, 1), source(2, 1, 2), source(3, 1, 5)];
        });
        (0..1_600).for_each(|id| world.add(1, id, &format!("d{}.example", id % 20)));
        world.run(Duration::from_mins(5));
        let counts = by_source(&world, 3);
        for (count, wanted) in counts.iter().zip([200.0_f64, 400.0, 1_000.0]) {
            assert!((*count as f64 - wanted).abs() <= wanted * 0.05, "{counts:?}");
        }
    }
}

#[test]
fn an_address_that_was_blocked_at_one_site_gets_no_more_than_its_share_at_others() {
    let mut world = World::new();
    let blocked = GateScope::Path { source: "192.0.2.1".parse().unwrap(), site: "mx.one.example".into() };
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = vec![source(1, 1, 1), source(2, 1, 1)];
        setup.gates.push(gate(blocked, GateAction::Suspend, None));
    });
    (0..500).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    assert_eq!(by_source(&world, 2), [0, 500]);
    (500..700).for_each(|id| world.add(1, id, &format!("d{id}.example")));
    world.run(Duration::from_mins(1));
    let counts = by_source(&world, 2);
    assert!((90..=110).contains(&counts[0]), "{counts:?}");
}

#[test]
fn an_address_does_not_wait_for_another_address_that_gets_no_connection() {
    let mut world = pool_of_four();
    world.rules.connections_max = 1;
    // Three addresses have their only connection to the provider at other sites, which take a minute for a message.
    for id in 0..3 {
        world.add(1, id, &format!("slow{id}.example"));
    }
    world.run(Duration::from_millis(100));
    let busy: HashSet<i64> = world.sent.iter().map(|sent| sent.source).collect();
    assert_eq!(busy.len(), 3);
    (100..200).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_secs(30));
    let sent = world.sent.iter().filter(|sent| sent.message >= 100).count();
    assert_eq!(sent, 100, "the address that has a connection sends all of it");
}

#[test]
fn a_sent_message_has_the_cause_of_its_wait() {
    let mut world = World::new();
    world.rules.connections_max = 1;
    // The only connection takes a minute for a message.
    (0..2).for_each(|id| world.add(1, id, "slow.example"));
    world.run(Duration::from_mins(3));
    let waits: Vec<Option<&str>> = world.sent.iter().map(|sent| sent.waited.as_deref()).collect();
    let cause = "queue: waited 60.0 s because 1 of 1 connections to mx.slow.example are in use";
    assert_eq!(waits, [None, Some(cause)]);
}

fn pool_of_four() -> World {
    let mut world = World::new();
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = (1..=4).map(|id| source(id, 1, 1)).collect();
    });
    world
}

#[test]
fn a_retry_keeps_its_source_address_while_that_address_can_send() {
    let mut world = pool_of_four();
    world.greylists = true;
    (0..100).for_each(|id| world.add(1 + id % 3, id, "one.example"));
    // Other messages are sent in between, which changes the address that is next.
    world.run(Duration::from_secs(50));
    (100..130).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(5));
    assert_eq!(world.sent.len(), 130);
    let others: Vec<_> = world.sent.iter().filter(|sent| sent.attempts != 2).collect();
    assert!(others.is_empty(), "all need two attempts: {others:?}");
    let counts = by_source(&world, 4);
    assert!(counts.iter().all(|count| (25..=40).contains(count)), "{counts:?}");
    assert_eq!(world.schedule.entry_count(), 0);
}

#[test]
fn a_retry_leaves_its_source_address_when_that_address_is_blocked() {
    let mut world = pool_of_four();
    world.greylists = true;
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_secs(50));
    let blocked = GateScope::Path { source: "192.0.2.1".parse().unwrap(), site: "mx.one.example".into() };
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = (1..=3).map(|id| source(id, 1, 1)).collect();
        setup.gates.push(gate(blocked, GateAction::Suspend, None));
    });
    world.run(Duration::from_mins(5));
    assert_eq!(world.sent.len(), 100);
    let counts = by_source(&world, 4);
    assert_eq!((counts[0], counts[3]), (0, 0), "blocked, and gone from the pool");
    let kept = world.sent.iter().filter(|sent| sent.attempts == 2).count();
    assert!((40..=60).contains(&kept), "those of the other two need no third attempt: {kept}");
}

/// Adds retries that are due now; each keeps one of four addresses.
fn add_retries(world: &mut World, server: i64, count: i64) {
    for id in 0..count {
        let entry = Entry { source: Some(SourceId(1 + id % 4)), attempts: 1, ..entry(server, id, world.now) };
        world.schedule.add(DomainName::parse("one.example").unwrap(), false, entry, world.now);
    }
}

fn assert_sources_kept(world: &World, count: usize) {
    let retries: Vec<_> = world.sent.iter().filter(|sent| sent.attempts == 2).collect();
    assert_eq!(retries.len(), count);
    let moved: Vec<_> = retries.iter().filter(|sent| sent.source != 1 + sent.message % 4).collect();
    assert!(moved.is_empty(), "{moved:?}");
}

/// Sets up four addresses, with these servers and gates.
fn configure_four(world: &mut World, servers: Vec<ServerDelivery>, gates: Vec<Gate>) {
    world.configure(|setup| {
        setup.pools = vec![pool(1, true)];
        setup.sources = (1..=4).map(|id| source(id, 1, 1)).collect();
        (setup.servers, setup.gates) = (servers, gates);
    });
}

#[test]
fn the_reason_of_a_wait_names_the_address_that_a_retry_keeps() {
    let mut world = World::new();
    world.rules.messages_per_minute = Some(8.0);
    configure_four(&mut world, vec![server(1, None)], Vec::new());
    for id in 0..400 {
        let entry = Entry { source: Some(SourceId(1)), attempts: 1, ..entry(1, id, world.now) };
        world.schedule.add(DomainName::parse("one.example").unwrap(), false, entry, world.now);
    }
    let keeps = |world: &mut World| {
        (0..400).find(|id| why_waiting(world, *id, "one.example").contains("which its last attempt"))
    };
    let mut kept = None;
    for _ in 0..60 {
        world.run(Duration::from_secs(1));
        kept = kept.or_else(|| keeps(&mut world));
        if kept.is_some() {
            break;
        }
    }
    let cause = why_waiting(&mut world, kept.expect("a retry that keeps its address"), "one.example");
    assert!(cause.starts_with("It waits for 192.0.2."), "{cause}");
    let in_totals: usize = world.schedule.totals(world.now).paths.iter().map(|path| path.waiting).sum();
    assert!(in_totals >= 400 - world.sent.len(), "{in_totals}");
    world.run(Duration::from_mins(6));
    let late = world.schedule.take_late(1_000, LATE_AFTER, world.now);
    let is_kept = |entry: &Entry| entry.source.is_some();
    assert!(late.iter().any(|late| is_kept(&late.entry)), "{late:?}");
    assert_eq!(late.len() + world.sent.len() + world.schedule.entry_count(), 400);
}

#[test]
fn retries_that_keep_their_addresses_keep_to_the_rate_of_their_server() {
    let mut world = World::new();
    let rate = SendRate { count: 1, per: RatePeriod::Second };
    configure_four(&mut world, vec![server(1, Some(rate))], Vec::new());
    add_retries(&mut world, 1, 40);
    world.run(Duration::from_secs(10));
    assert!((9..=11).contains(&world.sent.len()), "{}", world.sent.len());
    world.run(Duration::from_secs(40));
    let is_early = |pair: &&[SentMessage]| pair[1].at.since(pair[0].at) < Duration::from_millis(900);
    assert_eq!(world.sent.windows(2).find(is_early), None);
    assert_sources_kept(&world, 40);
}

#[test]
fn retries_that_wait_for_their_addresses_stop_when_server_or_domain_is_suspended() {
    let suspended = ServerDelivery { suspended_reason: Some("a test".into()), ..server(1, None) };
    let scope = GateScope::Domain(DomainName::parse("one.example").unwrap());
    let gate = gate(scope, GateAction::Suspend, None);
    let slow = SendRate { count: 1, per: RatePeriod::Hour };
    for (servers, gates, sent_max) in [
        (vec![suspended], vec![], 0),
        (vec![server(1, None)], vec![gate], 0),
        (vec![server(1, Some(slow))], vec![], 1),
    ] {
        let mut world = World::new();
        configure_four(&mut world, vec![server(1, None)], Vec::new());
        add_retries(&mut world, 1, 100);
        world.run(Duration::from_millis(50));
        let before = world.sent.len();
        assert!((1..50).contains(&before), "{before}");
        configure_four(&mut world, servers, gates);
        world.run(Duration::from_mins(1));
        assert!(world.sent.len() <= before + sent_max, "{before} and then {}", world.sent.len());
        configure_four(&mut world, vec![server(1, None)], Vec::new());
        world.run(Duration::from_mins(1));
        assert_sources_kept(&world, 100);
    }
}

#[test]
fn retries_that_keep_their_addresses_do_not_hold_up_other_servers() {
    let mut world = pool_of_four();
    let domain = DomainName::parse("one.example").unwrap();
    for id in 0..4_000 {
        let entry = Entry { source: Some(SourceId(1)), attempts: 1, ..entry(1, id, world.now) };
        world.schedule.add(domain.clone(), false, entry, world.now);
    }
    world.run(Duration::from_secs(1));
    let before = world.sent.len();
    world.add(2, 4_000, "one.example");
    let entry = Entry { source: Some(SourceId(1)), attempts: 1, ..entry(3, 4_004, world.now) };
    world.schedule.add(domain, false, entry, world.now);
    world.run(Duration::from_secs(2));
    let turns = |server| world.sent[before..].iter().position(|sent| sent.server == server).unwrap();
    assert!(turns(2) <= 20 && turns(3) <= 40, "after {} and {} others", turns(2), turns(3));
}

#[test]
fn a_retry_waits_for_its_address_during_a_slow_down_or_a_pause() {
    let mut world = World::new();
    let slow = gate(GateScope::Everything, GateAction::Slow { per_minute: 60 }, None);
    configure_four(&mut world, Vec::new(), vec![slow]);
    add_retries(&mut world, 1, 30);
    world.run(Duration::from_mins(1));
    assert_sources_kept(&world, 30);
    let mut world = pool_of_four();
    add_retries(&mut world, 1, 100);
    world.run(Duration::from_millis(50));
    world.schedule.pause(PauseCause::Journal, "the disk is full".into());
    world.run(Duration::from_secs(20));
    assert!(world.sent.len() < 50, "{}", world.sent.len());
    let now = world.now;
    world.schedule.resume(PauseCause::Journal, now);
    world.run(Duration::from_mins(1));
    assert_sources_kept(&world, 100);
}

#[test]
fn an_address_whose_connections_are_just_opened_keeps_its_retries() {
    let mut world = pool_of_four();
    (100..140).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(5));
    assert_eq!(world.sent.len(), 40);
    for id in world.connections.keys().copied().collect::<Vec<_>>() {
        world.close(id, EndedWhile::Waiting);
    }
    add_retries(&mut world, 1, 100);
    world.run(Duration::from_mins(1));
    assert_sources_kept(&world, 100);
}

#[test]
fn a_retry_leaves_the_shared_pool_for_the_new_pool_of_its_server() {
    let mut world = World::new();
    world.configure(|setup| {
        setup.pools = vec![pool(1, true), pool(2, false)];
        setup.sources =
            vec![source(1, 1, 1), source(2, 1, 1), source(3, 1, 1), source(4, 1, 1), source(5, 2, 1)];
        setup.servers = vec![ServerDelivery { pool_id: Some(PoolId(2)), ..server(1, None) }];
    });
    add_retries(&mut world, 1, 20);
    world.run(Duration::from_mins(1));
    assert_eq!(by_source(&world, 5), [0, 0, 0, 0, 20]);
}

#[test]
fn a_warming_address_sends_its_quota_and_other_messages_use_the_shared_pool() {
    let mut world = World::new();
    let warming = Source { warmup_started_at: Some(START), ..source(1, 1, 1) };
    world.configure(|setup| {
        setup.pools = vec![pool(1, false), pool(2, true)];
        setup.sources = vec![warming.clone(), source(2, 2, 1)];
        setup.servers = vec![ServerDelivery { pool_id: Some(PoolId(1)), ..server(1, None) }];
    });
    (0..100).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    let of = |id| world.sent.iter().filter(|sent| sent.source == id).count();
    assert_eq!((of(1), of(2)), (10, 90), "the plan of `World` begins with ten messages a day");
}

#[test]
fn a_warm_up_counts_each_receiver_group_separately() {
    let mut world = World::new();
    let counts = postroad_store::SourceCounts { sent: 4, bounced: 0, complained: 0 };
    let warming = Source {
        warmup_started_at: Some(START),
        today_by_provider: vec![("google".into(), counts)],
        ..source(1, 1, 1)
    };
    world.configure(|setup| {
        setup.pools = vec![pool(1, false), pool(2, true)];
        setup.sources = vec![warming.clone(), source(2, 2, 1)];
        setup.servers = vec![ServerDelivery { pool_id: Some(PoolId(1)), ..server(1, None) }];
    });
    (0..50).for_each(|id| world.add(1, id, &format!("d{}.google.example", id % 2)));
    world.run(Duration::from_mins(1));
    assert_eq!(by_source(&world, 2), [6, 44], "ten a day, and four were sent before");
    // Mail to Google does not use up the quota for other receivers, whether their domains were seen before or not.
    (50..70).for_each(|id| world.add(1, id, &format!("d{}.example", id % 4)));
    world.run(Duration::from_mins(1));
    assert_eq!(by_source(&world, 2), [16, 54]);
    (70..80).for_each(|id| world.add(1, id, "new.google.example"));
    world.run(Duration::from_mins(1));
    assert_eq!(by_source(&world, 2), [16, 64]);
    assert_eq!(world.schedule.entry_count(), 0);
}

#[test]
fn without_a_shared_pool_messages_beyond_the_warm_up_quota_wait() {
    let mut world = World::new();
    let warming = Source { warmup_started_at: Some(START), ..source(1, 1, 1) };
    world.configure(|setup| {
        setup.pools = vec![pool(1, false)];
        setup.sources = vec![warming.clone()];
        setup.servers = vec![ServerDelivery { pool_id: Some(PoolId(1)), ..server(1, None) }];
    });
    (0..15).for_each(|id| world.add(1, id, "a.google.example"));
    (15..20).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 15);
    let cause = why_waiting(&mut world, 14, "a.google.example");
    assert_eq!(cause, "It waits because today's warm-up quota of 192.0.2.1 for google is used up.");
}

#[test]
fn every_message_is_sent_once_whatever_changes_meanwhile() {
    for seed in 0..40 {
        let mut world = World::new();
        let mut rng = StdRng::seed_from_u64(seed);
        // Every second world has a pool of three addresses, and receivers that greylist.
        world.greylists = seed % 2 == 1;
        let sources: Vec<Source> =
            if world.greylists { (1..=3).map(|id| source(id, 1, id as u32)).collect() } else { Vec::new() };
        let domains = ["one.example", "two.example", "three.example"];
        let mut added = 0;
        for _ in 0..60 {
            for _ in 0..rng.random_range(0..30) {
                let due = world.now.plus(Duration::from_secs(rng.random_range(0..20)));
                world.add_due(rng.random_range(1..4), added, domains[rng.random_range(0..3)], due);
                added += 1;
            }
            let rate = rng.random_bool(0.3).then_some(SendRate { count: 5, per: RatePeriod::Second });
            let scopes = [
                GateScope::Everything,
                GateScope::Server(ServerId(2)),
                GateScope::Domain(DomainName::parse("two.example").unwrap()),
                GateScope::Provider("default".into()),
            ];
            let scope = scopes[rng.random_range(0..4)].clone();
            let (gated, slow, dead) = (rng.random_bool(0.4), rng.random_bool(0.3), rng.random_bool(0.1));
            world.configure(|setup| {
                setup.servers = vec![server(1, rate), server(2, None), server(3, None)];
                setup.pools = vec![pool(1, true)];
                let out = rng.random_range(0..6);
                setup.sources = sources.iter().filter(|source| source.id.0 != out).cloned().collect();
                let action = if slow { GateAction::Slow { per_minute: 120 } } else { GateAction::Suspend };
                setup.gates.extend(gated.then(|| gate(scope, action, None)));
            });
            world.dead = if dead { vec!["mx.one.example".into()] } else { vec![] };
            world.run(Duration::from_millis(rng.random_range(1..8_000)));
            if rng.random_bool(0.1) {
                world.schedule.sweep(world.now);
            }
        }
        world.dead.clear();
        world.configure(|_| {});
        world.run(Duration::from_hours(2));
        let mut ids: Vec<i64> = world.sent.iter().map(|sent| sent.message).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..added).collect::<Vec<_>>(), "seed {seed}");
        assert!(world.most_connections <= 15 * (sources.len() + 1), "seed {seed}");
        assert_eq!(world.schedule.entry_count(), 0, "seed {seed}");
        let in_lanes: usize = world.schedule.lanes.iter().map(|(_, lane)| lane.entry_count).sum();
        assert_eq!(in_lanes, 0, "seed {seed}");
        assert!(world.schedule.full_servers().is_empty(), "seed {seed}");
    }
}

#[test]
fn domains_without_waiting_messages_are_forgotten_when_there_are_too_many() {
    let mut world = World::new();
    world.schedule.memory = MemoryLimit::new(1_000);
    for message in 0..90 {
        world.add(1, message, &format!("d{message}.example"));
    }
    world.run(Duration::from_mins(1));
    world.schedule.sweep(world.now);
    assert_eq!((world.sent.len(), world.schedule.lanes.len()), (90, 90));
    for message in 90..300 {
        world.add(1, message, &format!("d{message}.example"));
    }
    world.run(Duration::from_mins(1));
    world.schedule.sweep(world.now);
    assert_eq!((world.sent.len(), world.schedule.lanes.len()), (300, 0));
    world.add(1, 300, "d7.example");
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 301);
}

#[test]
fn all_messages_wait_until_the_last_cause_of_a_pause_is_gone() {
    let mut world = World::new();
    world.schedule.pause(PauseCause::Journal, "the disk is full".into());
    world.schedule.pause(PauseCause::Outcomes, "the store is away".into());
    (0..10).for_each(|id| world.add(1, id, "one.example"));
    world.run(Duration::from_mins(1));
    let now = world.now;
    world.schedule.resume(PauseCause::Outcomes, now);
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 0);
    let now = world.now;
    world.schedule.resume(PauseCause::Journal, now);
    world.run(Duration::from_mins(1));
    assert_eq!(world.sent.len(), 10);
}
