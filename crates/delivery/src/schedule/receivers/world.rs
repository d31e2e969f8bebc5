//! A simulated engine around a schedule. Connection tasks are plain records, receivers are `testkit::HiddenReceiver`s,
//! and the clock jumps from event to event. The consequences of a reply are decided by the same functions as in the
//! real engine: `attempt::report` and `attempt::settle`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{BounceClass, DomainName, MessageId, PoolId, ServerId, SourceId, Status, Timestamp};
use postroad_smtp::{Phase, Reply};
use postroad_store::{DeliverySetup, Pool, SetupMark, Source, SourceCounts};
use postroad_testkit::hidden_receiver::{HiddenReceiver, OfferedMessage, Refusal, RefusedAt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::attempt::report::{
    FailedConnection, WaitsAgain, report_ending, report_failed_connection, waits_again,
};
use crate::attempt::settle::{Attempt, settle};
use crate::attempt::{Ending, Peer};
use crate::providers::{Provider, Providers};
use crate::retry::RetryPolicy;
use crate::route::{Dane, Route, RouteHost, RouteKind, Security};
use crate::schedule::warm_up::WarmUpPlan;
use crate::schedule::{Action, EndedWhile, Entry, Job, LaneKey, Next, Reaction, Schedule, WorkRequest};

pub(super) const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

pub(super) struct World {
    pub(super) schedule: Schedule,
    pub(super) now: Timestamp,
    pub(super) rng: StdRng,
    pub(super) receivers: Vec<HiddenReceiver>,
    pub(super) messages: Vec<Message>,
    /// The receiver of a domain's mail, and the name of its host. Mail to other domains goes to the first receiver.
    pub(super) hosts: HashMap<String, (usize, String)>,
    first_host: String,
    providers: Providers,
    policy: RetryPolicy,
    tasks: HashMap<usize, Task>,
    next_task: usize,
    agenda: BTreeMap<(Timestamp, usize), Event>,
    next_event: usize,
}

/// A message and its history.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) server: i64,
    pub(super) domain: String,
    pub(super) added_at: Timestamp,
    pub(super) sent_at: Option<Timestamp>,
    /// Number of times the message was accepted; more than one is a fault.
    pub(super) taken: u32,
    /// Number of times the message was offered to a host.
    pub(super) offered: u32,
    /// Number of temporary failures.
    pub(super) delayed: u32,
    /// Number of temporary failures without an offer, because the connection failed.
    pub(super) delayed_unoffered: u32,
    pub(super) failed: bool,
    pub(super) sources: Vec<i64>,
}

struct Task {
    path: usize,
    attempt: u64,
    receiver: usize,
    connection: Option<u64>,
    carried: u32,
    opened_at: Timestamp,
    was_connected: bool,
    is_idle: bool,
    rules: Option<Arc<Provider>>,
    /// Counts its waits, so that the time-out of an earlier wait does not end a later one.
    waits: usize,
}

enum Event {
    Add(usize),
    Ask(usize, WorkRequest),
    Connected(usize, Box<Job>),
    Replied(usize, Box<Job>, Result<(), Refusal>),
    IdleEnd(usize, usize),
    Resolved(usize, LaneKey),
}

/// Longer than any pause before a retry: no retry goes back to the store, which does not exist here.
const HORIZON: Duration = Duration::from_hours(100 * 24);
/// Maximum number of iterations of the event loop without a step of the clock.
const ITERATIONS_NOW_MAX: u32 = 10_000;

impl World {
    /// `host` names the receiver, and so its provider.
    pub(super) fn new(receivers: Vec<HiddenReceiver>, host: &str, seed: u64) -> Self {
        let policy = RetryPolicy::default();
        Self {
            schedule: Schedule::new(
                policy.pauses().to_vec(),
                "mx.here.example".to_owned(),
                WarmUpPlan::default(),
                1_000,
                1_000_000,
            ),
            now: START,
            rng: StdRng::seed_from_u64(seed),
            receivers,
            messages: Vec::new(),
            hosts: HashMap::new(),
            first_host: host.to_owned(),
            providers: Providers::built_in(),
            policy,
            tasks: HashMap::new(),
            next_task: 0,
            agenda: BTreeMap::new(),
            next_event: 0,
        }
    }

    /// Mail leaves from a pool of addresses with these weights; their ids count from 1.
    pub(super) fn with_addresses(mut self, weights: &[u32]) -> Self {
        let address = |(index, weight): (usize, &u32)| Source {
            id: SourceId(index as i64 + 1),
            pool_id: PoolId(1),
            address: format!("192.0.2.{}", index + 1).parse().unwrap(),
            helo: DomainName::parse("mx.here.example").unwrap(),
            weight: *weight,
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
            warmup_counts: SourceCounts::default(),
        };
        let setup = DeliverySetup {
            servers: Vec::new(),
            pools: vec![Pool {
                id: PoolId(1),
                name: "main".to_owned(),
                shared: true,
                account_id: None,
                created_at: START,
                updated_at: START,
            }],
            sources: weights.iter().enumerate().map(address).collect(),
            gates: Vec::new(),
            live_nodes: 1,
            mark: SetupMark::default(),
        };
        self.schedule.configure(&setup, self.now);
        self
    }

    /// Adds a message at this time after the start.
    pub(super) fn add_at(&mut self, after: Duration, server: i64, domain: &str) -> usize {
        let id = self.messages.len();
        self.messages.push(Message {
            server,
            domain: domain.to_owned(),
            added_at: START.plus(after),
            sent_at: None,
            taken: 0,
            offered: 0,
            delayed: 0,
            delayed_unoffered: 0,
            failed: false,
            sources: Vec::new(),
        });
        self.plan(START.plus(after), Event::Add(id));
        id
    }

    /// Number of messages without a final reply: not added yet, in the schedule, or being sent.
    pub(super) fn unfinished(&self) -> usize {
        let with_tasks = self.agenda.values().filter(|event| match event {
            Event::Connected(..) | Event::Add(_) => true,
            Event::Replied(_, _, reply) => reply.is_err(),
            _ => false,
        });
        self.schedule.entry_count() + with_tasks.count()
    }

    fn plan(&mut self, at: Timestamp, event: Event) {
        self.next_event += 1;
        self.agenda.insert((at, self.next_event), event);
    }

    fn plan_in(&mut self, after: Duration, event: Event) {
        self.plan(self.now.plus(after), event);
    }

    /// Runs until this time after the start. Panics if the schedule wants to be woken at once again and again.
    pub(super) fn run_until(&mut self, after_start: Duration) {
        let end = START.plus(after_start);
        let mut iterations_now = 0;
        loop {
            self.perform_actions();
            let next_event = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match [next_event, self.schedule.next_wakeup()].into_iter().flatten().min() {
                Some(next) if next <= end => {
                    iterations_now = if next > self.now { 0 } else { iterations_now + 1 };
                    assert!(
                        iterations_now < ITERATIONS_NOW_MAX,
                        "time stands still at {:?}: next event {next_event:?}, wakeup {:?}",
                        self.now,
                        self.schedule.next_wakeup()
                    );
                    self.now = next.max(self.now);
                }
                _ => break,
            }
            self.schedule.tick(self.now);
            self.perform_actions();
            while let Some(entry) = self.agenda.first_entry()
                && entry.key().0 <= self.now
            {
                let event = entry.remove();
                self.handle(event);
            }
        }
        self.now = end;
    }

    fn perform_actions(&mut self) {
        for action in self.schedule.take_actions() {
            match action {
                Action::AbortAttempt { .. } => {}
                Action::Resolve { lane, key, .. } => {
                    self.plan_in(Duration::from_millis(5), Event::Resolved(lane, key));
                }
                Action::Open { path, attempt } => {
                    self.next_task += 1;
                    let id = self.next_task;
                    let task = Task {
                        path,
                        attempt,
                        receiver: 0,
                        connection: None,
                        carried: 0,
                        opened_at: self.now,
                        was_connected: false,
                        is_idle: false,
                        rules: None,
                        waits: 0,
                    };
                    self.tasks.insert(id, task);
                    self.plan_in(Duration::from_micros(100), Event::Ask(id, WorkRequest::First));
                }
                Action::Wake { path } => {
                    let mut idle: Vec<usize> = self
                        .tasks
                        .iter()
                        .filter(|(_, task)| task.path == path && task.is_idle)
                        .map(|(id, _)| *id)
                        .collect();
                    idle.sort_unstable();
                    if let Some(id) = idle.first() {
                        self.tasks.get_mut(id).unwrap().is_idle = false;
                        // A connection of the real engine wakes about this much later.
                        let delay = Duration::from_micros(self.rng.random_range(100..1_500));
                        self.plan_in(delay, Event::Ask(*id, WorkRequest::AfterWait));
                    }
                }
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Add(id) => {
                let message = &self.messages[id];
                let entry = entry(message.server, id, self.now);
                let domain = DomainName::parse(&message.domain).unwrap();
                self.schedule.add(domain, false, entry, self.now);
            }
            Event::Resolved(lane, key) => {
                let route = self.route(&key);
                self.schedule.on_resolved(lane, route, self.now);
            }
            Event::Ask(id, request) => self.ask(id, request),
            Event::Connected(id, job) => self.connected(id, job),
            Event::Replied(id, job, reply) => self.replied(id, *job, reply),
            Event::IdleEnd(id, waits) => {
                if self.tasks.get(&id).is_some_and(|task| task.is_idle && task.waits == waits) {
                    self.close(id, EndedWhile::Waiting);
                }
            }
        }
    }

    fn ask(&mut self, id: usize, request: WorkRequest) {
        let task = &self.tasks[&id];
        if let Some(rules) = &task.rules
            && task.connection.is_some()
            && (task.carried >= rules.messages_per_connection_max
                || self.now.since(task.opened_at) >= rules.connection_age_max)
        {
            let ended_while =
                if request == WorkRequest::AfterWait { EndedWhile::Woken } else { EndedWhile::Working };
            return self.close(id, ended_while);
        }
        let (path, has_connection) = (task.path, task.connection.is_some());
        match self.schedule.next(path, request, self.now) {
            Next::Close => self.close(id, EndedWhile::Working),
            Next::Wait if has_connection => {
                let task = self.tasks.get_mut(&id).unwrap();
                task.is_idle = true;
                task.waits += 1;
                let (idle_max, waits) = (Duration::from_secs(30), task.waits);
                self.plan_in(idle_max, Event::IdleEnd(id, waits));
            }
            Next::Wait => self.close(id, EndedWhile::Waiting),
            Next::Job(job) if has_connection => self.offer(id, job),
            Next::Job(job) => {
                let receiver = self.receiver_of(job.lane.domain.as_str());
                let task = self.tasks.get_mut(&id).unwrap();
                task.receiver = receiver;
                task.rules = Some(Arc::clone(&job.route.rules));
                let time = self.jittered(self.receivers[receiver].limits().connect_time);
                self.plan_in(time, Event::Connected(id, job));
            }
        }
    }

    fn connected(&mut self, id: usize, job: Box<Job>) {
        let task = &self.tasks[&id];
        match self.receivers[task.receiver].connect(job.source.id.0, self.now) {
            Ok(number) => {
                let task = self.tasks.get_mut(&id).unwrap();
                (task.connection, task.carried, task.opened_at) = (Some(number), 0, self.now);
                let is_first = !std::mem::replace(&mut task.was_connected, true);
                self.schedule.on_connected(task.path, task.attempt, is_first, self.now);
                self.offer(id, job);
            }
            Err(refusal) => self.not_connected(id, *job, &refusal),
        }
    }

    fn offer(&mut self, id: usize, job: Box<Job>) {
        let task = &self.tasks[&id];
        let number = job.entry.message_id.0;
        let message = &mut self.messages[number as usize];
        message.offered += 1;
        message.sources.push(job.source.id.0);
        let (sender, recipient) =
            (format!("news@sender{}.example", message.server), recipient(number, message));
        let offered = OfferedMessage { id: number, sender: &sender, recipient: &recipient };
        let receiver = &mut self.receivers[task.receiver];
        let reply = receiver.offer_message(task.connection.unwrap(), offered, self.now);
        let whole = receiver.limits().message_time;
        if reply.is_ok() {
            message.taken += 1;
        }
        let is_early = reply.as_ref().is_err_and(|refusal| refusal.at != RefusedAt::EndOfData);
        let time = self.jittered(if is_early { whole / 4 } else { whole });
        self.plan_in(time, Event::Replied(id, job, reply));
    }

    fn close(&mut self, id: usize, ended_while: EndedWhile) {
        self.disconnect(id);
        let task = self.tasks.remove(&id).unwrap();
        self.schedule.on_closed(task.path, ended_while, task.was_connected, self.now);
    }

    fn jittered(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.rng.random_range(0.8..1.2))
    }

    fn receiver_of(&self, domain: &str) -> usize {
        self.hosts.get(domain).map_or(0, |(receiver, _)| *receiver)
    }

    fn route(&self, key: &LaneKey) -> Route {
        let host = self.hosts.get(key.domain.as_str()).map_or(&self.first_host, |(_, host)| host);
        let rules = self.providers.find(host);
        let site: Arc<str> = host.as_str().into();
        let provider = if rules.is_default() { Arc::clone(&site) } else { rules.name.as_str().into() };
        Route {
            secured_site: Arc::clone(&site),
            site: Arc::clone(&site),
            provider,
            rules: Arc::clone(rules),
            hosts: vec![RouteHost {
                name: host.clone(),
                preference: 0,
                address: None,
                port: 25,
                dane: Dane::Nothing,
            }],
            security: Security::Opportunistic,
            kind: RouteKind::Mx,
            is_exempt: false,
            valid_until: self.now.plus(Duration::from_hours(12)),
        }
    }
}

fn recipient(id: i64, message: &Message) -> String {
    format!("user{id}@{}", message.domain)
}

fn entry(server: i64, message: usize, due_at: Timestamp) -> Entry {
    Entry {
        server_id: ServerId(server),
        message_id: MessageId(message as i64),
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

/// Consequences of a reply: the functions of the real engine decide, without its store and its sockets.
impl World {
    fn not_connected(&mut self, id: usize, job: Job, refusal: &Refusal) {
        let task = &self.tasks[&id];
        let (path, attempt, was_connected) = (task.path, task.attempt, task.was_connected);
        self.schedule.on_attempt_ended(path, attempt, self.now);
        let reply = (!refusal.reply.is_empty()).then(|| smtp_reply(&refusal.reply));
        let class = if reply.is_some() { BounceClass::Policy } else { BounceClass::Other };
        let failed = FailedConnection {
            problem: &refusal.reply,
            class,
            reply: reply.as_ref(),
            was_tried: true,
            was_dns_busy: false,
            was_connected,
        };
        if report_failed_connection(&mut self.schedule, path, &job, failed, self.now) {
            self.put_back(job);
        } else {
            let problem = refusal.reply.clone();
            let ending = Ending::Unreachable { problem, class, reply, was_tried: true };
            self.settle(&job, ending, Reaction::default());
        }
        self.close(id, EndedWhile::Working);
    }

    fn replied(&mut self, id: usize, job: Job, reply: Result<(), Refusal>) {
        let (path, was_used) = (self.tasks[&id].path, self.tasks[&id].carried > 0);
        let is_closed = reply.as_ref().is_err_and(|refusal| refusal.closes);
        let ending = match reply {
            Ok(()) => Ending::Accepted(smtp_reply("250 2.0.0 taken")),
            Err(refusal) => Ending::Refused { reply: smtp_reply(&refusal.reply), phase: phase(refusal.at) },
        };
        let is_marked = matches!(ending, Ending::Accepted(_) | Ending::Refused { phase: Phase::Final, .. });
        let reaction = report_ending(&mut self.schedule, path, &job, &ending, self.now);
        let waits = waits_again(&ending, was_used, is_marked);
        if is_closed || waits.is_some() {
            self.disconnect(id);
        }
        if waits.is_some() {
            self.put_back(job);
        } else {
            self.tasks.get_mut(&id).unwrap().carried += 1;
            self.settle(&job, ending, reaction);
        }
        match waits {
            Some(WaitsAgain::TaskEnds) => self.close(id, EndedWhile::Working),
            Some(WaitsAgain::TaskContinues) | None => self.ask(id, WorkRequest::Again),
        }
    }

    /// Settles the attempt at once: there is no store here, which would take time or fail.
    fn settle(&mut self, job: &Job, ending: Ending, reaction: Reaction) {
        let was_offered = !matches!(ending, Ending::Unreachable { .. });
        let attempt = Attempt {
            entry: job.entry.clone(),
            domain: job.lane.domain.clone(),
            loaded_message: None,
            peer: Peer::default(),
            source: job.counted_source(),
            ip_pool: None,
            is_encrypted: false,
            is_simulated: false,
            started_at: self.now,
            ended_at: None,
            transcript: String::new(),
            flight: None,
            retry_after: reaction.retry_after,
            conclusion: reaction.conclusion,
            dkim: None,
        };
        let horizon_end = self.now.plus(HORIZON);
        let settlement = settle(&attempt, ending, &self.policy, self.now, horizon_end, &mut self.rng);
        let message = &mut self.messages[job.entry.message_id.0 as usize];
        match settlement.outcome.delivery.status {
            Status::Sent => message.sent_at = Some(self.now),
            Status::SoftFail => {
                message.delayed += 1;
                message.delayed_unoffered += u32::from(!was_offered);
            }
            _ => message.failed = true,
        }
        settlement.conclude(&mut self.schedule, true, self.now);
    }

    fn put_back(&mut self, job: Job) {
        if let Some(source) = job.counted_source() {
            self.schedule.on_settled(&source, false);
        }
        self.schedule.put_back(job.lane, job.entry, self.now);
    }

    fn disconnect(&mut self, id: usize) {
        let task = self.tasks.get_mut(&id).unwrap();
        if let Some(number) = task.connection.take() {
            self.receivers[task.receiver].disconnect(number);
        }
    }
}

fn phase(at: RefusedAt) -> Phase {
    match at {
        RefusedAt::Banner => Phase::Banner,
        RefusedAt::MailFrom => Phase::MailFrom,
        RefusedAt::RcptTo => Phase::RcptTo,
        RefusedAt::EndOfData => Phase::Final,
    }
}

fn smtp_reply(text: &str) -> Reply {
    let (code, text) = text.split_once(' ').unwrap();
    Reply::new(code.parse().unwrap(), vec![text.to_owned()])
}
