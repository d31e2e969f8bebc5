//! Events added up: each counts once, where it belongs, and what is not to count does not.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_model::{DomainName, EventKind, MessageId, Status};
use postroad_store::{
    CountingRules, Counts, Folded, Grain, InitialState, Metric, NewEvent, NewSend, Outcome, Sums,
};

use crate::fixture::{Fixture, Place, on_both_engines};

on_both_engines!(
    what_happened_is_counted_where_it_belongs,
    an_event_counts_once_however_often_it_is_folded,
    a_message_held_twice_counts_once,
    tests_and_the_simulator_do_not_count,
    latencies_leave_out_what_was_held,
    providers_are_learned_and_forgotten,
    other_servers_are_apart,
    too_many_tags_are_counted_together,
);

const FOREVER: i64 = i64::MAX / 2_000_000;

pub(crate) fn rules() -> CountingRules {
    CountingRules { simulator_domain: DomainName::parse("sim.postroad.test").expect("a domain") }
}

/// Until nothing is left. On PostgreSQL another test's transaction may be in the way for a moment.
pub(crate) async fn fold_all(fixture: &Fixture) {
    loop {
        let servers = fixture.store.list_uncounted_servers().await.expect("reading works");
        for server in &servers {
            while fixture.store.fold_events(*server, &rules()).await.expect("folding works")
                != Folded::AllDone
            {}
        }
        // On PostgreSQL some may wait for another transaction to end.
        let is_counted = match fixture.place {
            Place::Sqlite(_) => "e.id <= c.event_id",
            Place::Postgres(_) => "(e.xact, e.id) <= (c.xact, c.event_id)",
        };
        let uncounted = format!(
            "SELECT count(*) FROM events e LEFT JOIN counter_marks c ON c.server_id = e.server_id
             WHERE c.server_id IS NULL OR NOT ({is_counted})"
        );
        if fixture.query_int(&uncounted).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn totals(fixture: &Fixture, grain: Grain) -> BTreeMap<i64, Sums> {
    let rows = fixture.store.list_totals(fixture.server, grain, 0, FOREVER).await.expect("reading works");
    rows.into_iter().map(|row| (row.at, row.sums)).collect()
}

async fn total(fixture: &Fixture) -> Sums {
    let mut all = Sums::default();
    for sums in totals(fixture, Grain::Day).await.values() {
        all.add(sums);
    }
    all
}

fn non_zero(counts: &Counts) -> Vec<(&'static str, u64)> {
    let all = Metric::ALL.iter().map(|metric| (metric.as_str(), counts.of(*metric)));
    all.filter(|(_, count)| *count > 0).collect()
}

fn send(fixture: &Fixture, address: &str, change: impl FnOnce(&mut NewSend)) -> NewSend {
    let mut send = fixture.send_to(&[address]);
    send.info.from_domain = "shop.example".into();
    change(&mut send);
    send
}

/// Accepts it and settles its attempts in order, each a minute after the one before.
async fn live(fixture: &Fixture, send: NewSend, fates: &[(Status, EventKind, &str)]) -> MessageId {
    let id = fixture.accept(send).await[0];
    for (number, (status, kind, data)) in fates.iter().enumerate() {
        fixture.clock.advance(Duration::from_mins(1));
        fixture.store.claim(fixture.in_secs(3_600), 1_000, Vec::new()).await.expect("claiming works");
        let data = data.replace("ATTEMPT", &(number + 1).to_string());
        let outcome = Outcome { event: NewEvent { kind: *kind, data }, ..fixture.outcome(id, *status) };
        assert!(fixture.finish(outcome).await, "{status}");
    }
    id
}

const DELIVERED: (Status, EventKind, &str) =
    (Status::Sent, EventKind::Delivered, r#"{"attempt": ATTEMPT, "time": 1.5}"#);
const DELAYED: (Status, EventKind, &str) =
    (Status::SoftFail, EventKind::Delayed, r#"{"attempt": ATTEMPT, "time": 0.5}"#);
const REFUSED: (Status, EventKind, &str) =
    (Status::HardFail, EventKind::Bounced, r#"{"attempt": ATTEMPT, "bounce": {"kind": "sync"}}"#);
const SUPPRESSED: (Status, EventKind, &str) = (Status::Held, EventKind::Held, r#"{"reason": "suppressed"}"#);

async fn what_happened_is_counted_where_it_belongs(fixture: Fixture) {
    let started = fixture.now();
    live(&fixture, send(&fixture, "a@one.example", |_| {}), &[DELAYED, DELAYED, DELIVERED]).await;
    live(&fixture, send(&fixture, "b@ONE.example", |_| {}), &[REFUSED]).await;
    live(&fixture, send(&fixture, "c@two.example", |send| send.info.tag = None), &[SUPPRESSED]).await;
    fold_all(&fixture).await;

    let expected =
        [("accepted", 3), ("sent", 1), ("soft_fail", 2), ("hard_fail", 1), ("held", 1), ("suppressed", 1)];
    assert_eq!(non_zero(&total(&fixture).await.counts), expected);
    let quarters = totals(&fixture, Grain::Quarter).await;
    assert!(quarters.keys().all(|at| at % 900 == 0));
    assert!(quarters.contains_key(&Grain::Quarter.start(started)), "{:?}", quarters.keys());

    let sets = fixture.store.list_dimensions(fixture.server, 0).await.expect("the store answers");
    let tags: Vec<(&str, &str)> =
        sets.iter().map(|(_, set)| (set.tag.as_str(), set.domain.as_str())).collect();
    assert_eq!(tags, [("orders", "shop.example"), ("", "shop.example")]);
    for grain in Grain::ALL {
        let numbers = sets.iter().map(|(number, _)| *number).collect();
        let rows = fixture
            .store
            .list_counters(fixture.server, grain, numbers, (0, FOREVER), 1_000)
            .await
            .expect("the store answers");
        let mut all = Counts::default();
        for row in &rows {
            all.add(&row.sums.counts);
        }
        assert_eq!(non_zero(&all), expected, "{grain:?}");
    }
    let mut domains = fixture
        .store
        .list_recipient_domains(fixture.server, (0, FOREVER), 10)
        .await
        .expect("the store answers");
    domains.sort_by(|a, b| a.0.cmp(&b.0));
    let accepted: Vec<(&str, u64)> =
        domains.iter().map(|(name, counts)| (name.as_str(), counts.of(Metric::Accepted))).collect();
    assert_eq!(accepted, [("one.example", 2), ("two.example", 1)]);
}

async fn an_event_counts_once_however_often_it_is_folded(fixture: Fixture) {
    let send = |number: usize| send(&fixture, &format!("u{number}@one.example"), |_| {});
    for number in 0..20 {
        fixture.accept(send(number)).await;
    }
    // As many nodes do it: all read the same events, one of them writes what they add.
    let folds: Vec<_> = (0..8)
        .map(|_| {
            let (store, server) = (fixture.store.clone(), fixture.server);
            tokio::spawn(async move { store.fold_events(server, &rules()).await })
        })
        .collect();
    for fold in folds {
        fold.await.expect("no panic").expect("nobody fails");
    }
    fold_all(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 20);

    // A crash after the counters and before the mark cannot be: they are one transaction. After a restart it goes on.
    let fixture = fixture.reopen().await;
    let one_more = fixture.send_to(&["late@one.example"]);
    fixture.accept(one_more).await;
    fold_all(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 21);
}

async fn a_message_held_twice_counts_once(fixture: Fixture) {
    let id = live(&fixture, send(&fixture, "a@one.example", |_| {}), &[SUPPRESSED]).await;
    for _ in 0..2 {
        fixture.store.retry(fixture.server, id).await.expect("a held message is released");
        fixture.claim_due().await;
        let held = NewEvent { kind: EventKind::Held, data: r#"{"reason": "suppressed"}"#.into() };
        assert!(fixture.finish(Outcome { event: held, ..fixture.outcome(id, Status::Held) }).await);
        // Sometimes both are in one batch, sometimes not.
        fold_all(&fixture).await;
    }
    assert_eq!(non_zero(&total(&fixture).await.counts), [("accepted", 1), ("held", 1), ("suppressed", 1)]);
}

async fn tests_and_the_simulator_do_not_count(fixture: Fixture) {
    let state = InitialState::TestSent { details: "only a test".into() };
    let test = fixture.send(fixture.server, &["a@one.example"], state, b"Subject: x\r\n\r\n");
    fixture.accept(test).await;
    live(&fixture, send(&fixture, "delivered@SIM.postroad.test", |_| {}), &[DELIVERED]).await;
    fixture
        .store
        .add_server_event(fixture.server, NewEvent { kind: EventKind::SendLimitExceeded, data: "{}".into() })
        .await
        .expect("the store answers");
    fold_all(&fixture).await;
    assert!(total(&fixture).await.counts.is_zero());
    assert!(
        fixture
            .store
            .list_recipient_domains(fixture.server, (0, FOREVER), 10)
            .await
            .expect("the store answers")
            .is_empty()
    );
}

async fn latencies_leave_out_what_was_held(fixture: Fixture) {
    live(&fixture, send(&fixture, "a@one.example", |_| {}), &[DELIVERED]).await;
    live(&fixture, send(&fixture, "b@one.example", |_| {}), &[DELAYED, DELAYED, DELIVERED]).await;
    let held = live(&fixture, send(&fixture, "c@one.example", |_| {}), &[SUPPRESSED]).await;
    fixture.clock.advance(Duration::from_hours(5));
    fixture.store.retry(fixture.server, held).await.expect("a held message is released");
    fixture.claim_due().await;
    let sent = NewEvent { kind: EventKind::Delivered, data: r#"{"attempt": 1, "time": 1.5}"#.into() };
    assert!(fixture.finish(Outcome { event: sent, ..fixture.outcome(held, Status::Sent) }).await);
    fold_all(&fixture).await;

    let sums = total(&fixture).await;
    assert_eq!((sums.counts.of(Metric::Sent), sums.sent.total(), sums.first_attempt.total()), (3, 2, 2));
    let seconds =
        |share, of: &postroad_store::Histogram| of.percentile(share).expect("there are some").as_secs_f64();
    // An attempt that took 1.5 s and ended after a minute began after 58.5 s.
    assert!((seconds(0.5, &sums.first_attempt) / 58.5 - 1.0).abs() < 0.04);
    assert!((seconds(1.0, &sums.sent) / 180.0 - 1.0).abs() < 0.04);
}

async fn providers_are_learned_and_forgotten(fixture: Fixture) {
    let domain = |name: &str| DomainName::parse(name).expect("a domain");
    let learn = async |provider: &str| {
        let found = vec![(domain("corp.example"), provider.to_owned())];
        fixture.store.learn_recipient_providers(found).await.expect("the store answers");
        fixture.accept(send(&fixture, "a@Corp.example", |_| {})).await;
        fold_all(&fixture).await;
    };
    learn("google").await;
    learn("yahoo").await;
    learn("other").await;
    let sets = fixture.store.list_dimensions(fixture.server, 0).await.expect("the store answers");
    let providers: Vec<&str> = sets.iter().map(|(_, set)| set.provider.as_str()).collect();
    assert_eq!(providers, ["google", "yahoo", "other"]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM recipient_providers").await, 0);
}

async fn other_servers_are_apart(fixture: Fixture) {
    fixture.accept(send(&fixture, "a@one.example", |_| {})).await;
    let other =
        fixture.send(fixture.other_server, &["b@one.example", "c@one.example"], InitialState::Pending, b"x");
    fixture.accept(other).await;
    fold_all(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 1);
    let theirs = fixture
        .store
        .list_totals(fixture.other_server, Grain::Day, 0, FOREVER)
        .await
        .expect("the store answers");
    assert_eq!(theirs[0].sums.counts.of(Metric::Accepted), 2);
}

async fn too_many_tags_are_counted_together(fixture: Fixture) {
    let tagged = |tag: &str| send(&fixture, "a@one.example", |send| send.info.tag = Some(tag.to_owned()));
    fixture.accept(tagged("first")).await;
    fold_all(&fixture).await;
    // The last number that a set of dimensions of its own may have.
    fixture.execute("UPDATE counter_dimensions SET id = 10000; UPDATE counters SET dimensions = 10000 WHERE dimensions = 1").await;
    for tag in ["second", "third", "first"] {
        fixture.accept(tagged(tag)).await;
    }
    fold_all(&fixture).await;
    let sets = fixture.store.list_dimensions(fixture.server, 0).await.expect("the store answers");
    let tags: Vec<(i64, &str)> = sets.iter().map(|(number, set)| (*number, set.tag.as_str())).collect();
    assert_eq!(tags, [(10_000, "first"), (10_001, "(other)")]);
    let numbers = vec![10_001];
    let rows = fixture
        .store
        .list_counters(fixture.server, Grain::Day, numbers, (0, FOREVER), 10)
        .await
        .expect("the store answers");
    assert_eq!(rows[0].sums.counts.of(Metric::Accepted), 2);
}
