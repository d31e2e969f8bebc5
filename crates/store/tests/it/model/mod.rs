//! Random operations on a store and on a simple model of it: every answer and the whole history must agree. With the
//! same seed both engines must give the same history (invariant 5 of ARCHITECTURE.md).
//!
//! A failure names its seed; `POSTROAD_SEED=…` runs that one alone.

mod store_model;

use std::time::Duration;

use postroad_model::{EventKind, HoldReason, MessageId, ServerId, Status, SuppressionReason, Timestamp};
use postroad_store::{
    Accepted, BeginRequest, BeginResult, ClaimSkips, Event, Idempotency, InitialState, NewDelivery, NewEvent,
    NewSend, NewSuppression, OTHER_PROVIDER, Outcome,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::fixture::Fixture;
use store_model::{BeginVerdict, Key, StoreModel};

const OPERATIONS: usize = 300;
const ADDRESSES: [&str; 4] = ["a@example.com", "b@example.org", "c@example.com", "d@example.net"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_engines_give_the_history_of_the_model() {
    let seeds: Vec<u64> = match std::env::var("POSTROAD_SEED") {
        Ok(seed) => vec![seed.parse().expect("POSTROAD_SEED is a number")],
        Err(_) => vec![1, 2, rand::random()],
    };
    for seed in seeds {
        println!("POSTROAD_SEED={seed}");
        let sqlite = ModelRun::new(Fixture::sqlite().await, seed).finish().await;
        let postgres = ModelRun::new(Fixture::postgres().await, seed).finish().await;
        assert!(sqlite.len() > 100, "seed {seed} did nothing");
        assert_eq!(sqlite, postgres, "the engines differ with POSTROAD_SEED={seed}");
    }
}

/// A store and its model, going through the same operations.
struct ModelRun {
    fixture: Fixture,
    model: StoreModel,
    /// The store's ids of the model's messages, which are numbered in the order of acceptance.
    ids: Vec<(ServerId, MessageId)>,
    rng: StdRng,
    /// Every operation and its answer, without ids.
    history: Vec<String>,
}

impl ModelRun {
    fn new(fixture: Fixture, seed: u64) -> Self {
        let (model, rng) = (StoreModel::default(), StdRng::seed_from_u64(seed));
        Self { fixture, model, ids: Vec::new(), rng, history: Vec::new() }
    }

    async fn finish(mut self) -> Vec<String> {
        for number in 0..OPERATIONS {
            self = self.step().await;
            if number % 50 == 49 {
                self.compare_histories().await;
            }
        }
        self.compare_histories().await;
        self.history
    }

    async fn step(mut self) -> Self {
        let line = match self.rng.random_range(0..100) {
            0..28 => self.accept().await,
            28..43 => self.claim().await,
            43..52 => self.begin().await,
            52..70 => self.settle().await,
            70..74 => self.release().await,
            74..80 => self.administer_queue().await,
            80..83 => self.suppress().await,
            83..85 => self.expire_holds().await,
            85..95 => self.advance(),
            95..97 => self.purge().await,
            _ => {
                self = self.reopen().await;
                "reopen".to_owned()
            }
        };
        self.history.push(line);
        self
    }

    fn server(&self, number: usize) -> ServerId {
        [self.fixture.server, self.fixture.other_server][number]
    }

    async fn accept(&mut self) -> String {
        let server = self.rng.random_range(0..2);
        let now = self.fixture.now();
        let state = match self.rng.random_range(0..10) {
            0..6 => InitialState::Pending,
            6..8 => InitialState::Scheduled(self.random_soon()),
            8 => InitialState::Held {
                reason: HoldReason::Development,
                details: "held".into(),
                expiry: self.random_soon(),
            },
            _ => InitialState::TestSent { details: "test".into() },
        };
        let addresses: Vec<&str> = ADDRESSES[..self.rng.random_range(1..=4)].to_vec();
        let body = vec![b'x'; self.rng.random_range(0..2_000)];
        let mut send = self.fixture.send(self.server(server), &addresses, state, &body);
        send.info.options.expires_at = self.rng.random_bool(0.3).then(|| self.random_soon());
        let key = self.rng.random_bool(0.5).then(|| Key {
            server,
            text: format!("key {}", self.rng.random_range(0..6)),
            fingerprint: self.rng.random_range(0..3),
            answer: format!("answer {}", self.history.len()),
            expires_at: now.plus(Duration::from_hours(1)),
        });
        send.idempotency = key.as_ref().map(|key| Idempotency {
            key: key.text.clone(),
            fingerprint: [key.fingerprint; 32],
            answer: key.answer.clone(),
            expires_at: key.expires_at,
        });
        let (ids, wanted) = (message_ids(&send), self.model.accept(&send, server, key, now));
        let actual = self.fixture.store.accept(send).await.expect("the store works");
        assert_eq!(actual, wanted, "{}", self.recent_history());
        if actual == Accepted::Stored(Vec::new()) {
            self.ids.extend(ids);
        }
        format!("accept {actual:?}")
    }

    async fn claim(&mut self) -> String {
        let due_by = if self.rng.random_bool(0.8) { self.fixture.now() } else { self.random_soon() };
        let limit = self.rng.random_range(0..6);
        let skipped: Vec<usize> = (0..2).filter(|_| self.rng.random_bool(0.2)).collect();
        let wanted = self.model.claim(due_by, limit, &skipped, self.fixture.now());
        let servers = skipped.iter().map(|server| self.server(*server)).collect();
        let skip = ClaimSkips { servers, domains: Vec::new() };
        // Claims nothing: scheduled messages become pending, all at once instead of in turns of their servers.
        let none = self.fixture.store.claim(Timestamp::from_micros(0), 1_000, skip.clone()).await;
        assert!(none.expect("the store works").is_empty());
        let actual = self.fixture.store.claim(due_by, limit, skip).await.expect("the store works");
        let actual: Vec<_> = actual
            .iter()
            .map(|entry| {
                let number = self.number_of(entry.message_id);
                (number, entry.domain.to_string(), entry.due_at, entry.expires_at, entry.attempts)
            })
            .collect();
        assert_eq!(actual, wanted, "{}", self.recent_history());
        format!("claim {actual:?}")
    }

    /// Stores outcomes, mostly of claimed messages; some of other messages, some twice, some impossible.
    async fn settle(&mut self) -> String {
        let mut batch = Vec::new();
        for _ in 0..self.rng.random_range(1..5) {
            let Some(number) = self.random_message(0.85) else { continue };
            let statuses = [
                Status::Sent,
                Status::SoftFail,
                Status::SoftFail,
                Status::SoftFail,
                Status::HardFail,
                Status::Held,
                Status::Bounced,
            ];
            let status = *statuses.choose(&mut self.rng).expect("there are some");
            let mut delivery = NewDelivery::local(self.fixture.now(), status, format!("{status}"));
            delivery.output = "remote\0words".repeat(self.rng.random_range(0..2));
            delivery.code = self.rng.random_bool(0.5).then_some(250);
            delivery.next_attempt_at = self.rng.random_bool(0.9).then(|| self.random_soon());
            let (server_id, message_id) = self.ids[number];
            let outcome = Outcome {
                server_id,
                message_id,
                claimed_due_at: None,
                counts_as_attempt: self.rng.random_bool(0.7),
                hold_expiry: self.rng.random_bool(0.7).then(|| self.random_soon()),
                keep_claim: self.rng.random_bool(0.3),
                suppress: None,
                transcript: None,
                source_id: None,
                provider: OTHER_PROVIDER.into(),
                retry_source_id: None,
                delivery,
                event: NewEvent { kind: EventKind::Delayed, data: format!(r#"{{"n":{number}}}"#) },
            };
            batch.push((number, outcome));
        }
        let wanted = self.model.finish(&batch);
        let numbers: Vec<usize> = batch.iter().map(|(number, _)| *number).collect();
        let outcomes = batch.into_iter().map(|(_, outcome)| outcome).collect();
        let actual = self.fixture.store.finish(outcomes).await.expect("the store works");
        assert_eq!(actual, wanted, "of {numbers:?}; {}", self.recent_history());
        format!("finish {numbers:?} {actual:?}")
    }

    async fn begin(&mut self) -> String {
        let mut batch = Vec::new();
        for _ in 0..self.rng.random_range(1..5) {
            let Some(number) = self.random_message(0.9) else { continue };
            let due_at = self.model.due_at(number).filter(|_| self.rng.random_bool(0.9));
            batch.push((number, due_at.unwrap_or_else(|| self.random_soon())));
        }
        let wanted: Vec<_> =
            batch.iter().map(|(number, due_at)| self.model.begin(*number, *due_at)).collect();
        let requests = batch.iter().map(|(number, due_at)| {
            let (server_id, message_id) = self.ids[*number];
            BeginRequest { server_id, message_id, due_at: *due_at, needs_message: true }
        });
        let begun = self.fixture.store.begin(requests.collect()).await.expect("the store works");
        let actual: Vec<BeginVerdict> = begun
            .iter()
            .map(|begun| match begun {
                BeginResult::Go(message) => {
                    assert!(message.is_some(), "the message was needed");
                    BeginVerdict::Go
                }
                BeginResult::Suppressed(..) => BeginVerdict::Suppressed,
                BeginResult::Gone => BeginVerdict::Gone,
            })
            .collect();
        assert_eq!(actual, wanted, "of {batch:?}; {}", self.recent_history());
        format!("begin {batch:?} {actual:?}")
    }

    async fn administer_queue(&mut self) -> String {
        let Some(number) = self.random_message(0.5) else { return "nothing to do".to_owned() };
        let ((server, id), now) = (self.ids[number], self.fixture.now());
        if self.rng.random_bool(0.5) {
            let wanted = self.model.cancel(number, now);
            let actual = self.fixture.store.cancel(server, id).await.expect("the store works");
            assert_eq!(actual, wanted, "of {number}; {}", self.recent_history());
            format!("cancel {number} {actual:?}")
        } else {
            let wanted = self.model.retry(number, now);
            let actual = self
                .fixture
                .store
                .retry(server, id, crate::fixture::simulator_domain())
                .await
                .expect("the store works");
            assert_eq!(actual, wanted, "of {number}; {}", self.recent_history());
            format!("retry {number} {actual:?}")
        }
    }

    async fn suppress(&mut self) -> String {
        let (server, address) =
            (self.rng.random_range(0..2), *ADDRESSES.choose(&mut self.rng).expect("some"));
        let (store, server_id) = (&self.fixture.store, self.server(server));
        if self.rng.random_bool(0.6) {
            let wanted = self.model.unsuppress(server, address);
            let actual = store.remove_suppression(server_id, address.to_uppercase()).await;
            assert_eq!(actual.expect("the store works"), wanted, "{}", self.recent_history());
            return format!("unsuppress {server} {address}");
        }
        self.model.suppress(server, address, self.fixture.now());
        let new = NewSuppression {
            address: address.to_owned(),
            reason: SuppressionReason::Manual,
            details: String::new(),
            origin_message_id: None,
            expires_at: None,
        };
        store.add_suppression(server_id, new).await.expect("the store works");
        format!("suppress {server} {address}")
    }

    async fn expire_holds(&mut self) -> String {
        let limit = self.rng.random_range(1..4);
        let wanted = self.model.expire_holds(self.fixture.now(), limit);
        let actual = self.fixture.store.expire_holds(limit).await.expect("the store works");
        assert_eq!(actual, wanted as u64, "{}", self.recent_history());
        format!("expire {actual} holds")
    }

    async fn release(&mut self) -> String {
        let count = self.rng.random_range(1..4);
        let numbers: Vec<usize> = (0..count).filter_map(|_| self.random_message(0.8)).collect();
        self.model.release(&numbers);
        let keys = numbers.iter().map(|number| self.ids[*number]).collect();
        self.fixture.store.release_claims(keys).await.expect("the store works");
        format!("release {numbers:?}")
    }

    fn advance(&mut self) -> String {
        let seconds = *[1, 60, 60, 600, 3_600, 8 * 24 * 3_600].choose(&mut self.rng).expect("there are some");
        self.fixture.clock.advance(Duration::from_secs(seconds));
        format!("advance {seconds} s")
    }

    async fn purge(&mut self) -> String {
        let limit = self.rng.random_range(1..4);
        let wanted = self.model.purge(self.fixture.now(), limit);
        let actual = self.fixture.store.purge_idempotency_keys(limit).await.expect("the store works");
        assert_eq!(actual, wanted as u64, "{}", self.recent_history());
        format!("purge {actual}")
    }

    /// After the restart of a node and its first reaping all claims are free, on either engine.
    async fn reopen(mut self) -> Self {
        self.fixture = self.fixture.reopen().await;
        self.fixture.store.reap().await.expect("the store works");
        // Begun messages wait until the node releases them.
        self.fixture.store.release_previous_claims().await.expect("the store works");
        self.model.forget_claims();
        self
    }

    /// Number of a random message; with a probability of `claimed_share`, of a claimed message.
    fn random_message(&mut self, claimed_share: f64) -> Option<usize> {
        let claimed = self.model.claimed();
        if self.rng.random_bool(claimed_share) && !claimed.is_empty() {
            return claimed.choose(&mut self.rng).copied();
        }
        (!self.ids.is_empty()).then(|| self.rng.random_range(0..self.ids.len()))
    }

    fn random_soon(&mut self) -> Timestamp {
        self.fixture.in_secs(self.rng.random_range(0..5) * 30)
    }

    fn number_of(&self, id: MessageId) -> usize {
        self.ids.iter().position(|(_, known)| *known == id).expect("only accepted messages are claimed")
    }

    fn recent_history(&self) -> String {
        format!("after {:#?}", self.history.iter().rev().take(12).rev().collect::<Vec<_>>())
    }

    async fn compare_histories(&mut self) {
        for (number, (server, id)) in self.ids.iter().copied().enumerate() {
            let store = &self.fixture.store;
            let message =
                store.find_message(server, id).await.expect("the store works").expect("it is there");
            let deliveries = store.list_deliveries(server, id).await.expect("the store works");
            let events = store.list_events(server, id).await.expect("the store works");
            assert!(deliveries.windows(2).all(|pair| pair[0].id < pair[1].id));
            let body = store.read_body(server, message.send.id, message.send.size).await;
            let body = body.expect("the body is whole");
            let actual = store_model::Message {
                status: message.status,
                hold_expiry: message.hold_expiry,
                last_delivery_at: message.last_delivery_at,
                next_attempt_at: message.next_attempt_at,
                rcpt_to: message.rcpt_to,
                test: message.send.test,
                body_bytes: body.len(),
                deliveries: deliveries.into_iter().map(|delivery| delivery.record).collect(),
                events: events
                    .into_iter()
                    .map(|event| {
                        let Event { seq, at, test, kind, data, .. } = event;
                        (seq, at, test, NewEvent { kind, data })
                    })
                    .collect(),
            };
            assert_eq!(&actual, self.model.message(number), "message {number}; {}", self.recent_history());
            self.history.push(format!("{number}: {actual:?}"));
        }
    }
}

fn message_ids(send: &NewSend) -> Vec<(ServerId, MessageId)> {
    send.recipients.iter().map(|recipient| (send.info.server_id, recipient.id)).collect()
}
