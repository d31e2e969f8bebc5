//! Counting of events: each counts once, in the right counters, and excluded events do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postroad_model::{DomainName, EventKind, MessageId, ServerId, Status};
use postroad_store::{
    Breakdown, ClaimSkips, CountProgress, CounterRow, CountingRules, Counts, Dimensions, Grain, InitialState,
    LIMITED_VALUES_MAX, Metric, NewEvent, NewSend, Outcome, Sums,
};
use postroad_testkit::{eventually, eventually_within};

use crate::domains::{
    DOMAINS_V19_POSTGRES, DOMAINS_V19_SQLITE, UNDO_ACCOUNTS, UNDO_BATCHES, UNDO_DELIVERY_POLICY, UNDO_SEARCH,
    undo_setup_changes,
};
use crate::fixture::{EngineFiles, Fixture, on_both_engines, simulator_domain};

on_both_engines!(
    events_are_counted_in_every_grain_and_breakdown,
    an_event_counts_once_when_several_nodes_count_it,
    a_message_held_twice_counts_once,
    test_messages_and_simulated_recipients_do_not_count,
    held_messages_are_left_out_of_latencies,
    providers_are_learned_and_forgotten,
    servers_are_counted_separately,
    totals_of_several_servers_are_read_together,
    tags_beyond_the_limit_are_counted_together,
    a_removed_dimension_set_is_created_again,
    a_batch_with_many_dimension_sets_is_counted_in_parts,
    events_are_counted_again_after_an_upgrade_from_version_8,
);

/// End of a range in seconds that includes everything; still fits an `i64` in microseconds.
const FOREVER: i64 = i64::MAX / 2_000_000;

pub(crate) fn rules() -> CountingRules {
    CountingRules { simulator_domain: DomainName::parse("sim.postroad.test").expect("a domain") }
}

/// Counts all events, one batch of each server per round: thousands of events take minutes on a slow machine.
pub(crate) async fn count_all_events(fixture: &Fixture) {
    eventually_within(Duration::from_mins(5), async || {
        for server in fixture.store.list_uncounted_servers().await.expect("reading works") {
            let progress = fixture.store.count_events(server, &rules()).await.expect("counting works");
            if progress != CountProgress::AllDone {
                return Err("more events wait to be counted".to_owned());
            }
        }
        // On PostgreSQL some events can be counted only when a transaction of another test has ended.
        let is_counted = match fixture.engine_files {
            EngineFiles::Sqlite(_) => "e.id <= c.event_id",
            EngineFiles::Postgres(_) => "(e.xact, e.id) <= (c.xact, c.event_id)",
        };
        let uncounted = format!(
            "SELECT count(*) FROM events e LEFT JOIN counter_marks c ON c.server_id = e.server_id
             WHERE c.server_id IS NULL OR NOT ({is_counted})"
        );
        match fixture.query_int(&uncounted).await {
            0 => Ok(()),
            count => Err(format!("{count} events are not counted")),
        }
    })
    .await;
}

/// Totals of the server by the start of each span of this grain.
pub(crate) async fn totals(fixture: &Fixture, grain: Grain) -> BTreeMap<i64, Sums> {
    totals_of(fixture, fixture.server, grain).await
}

async fn totals_of(fixture: &Fixture, server: ServerId, grain: Grain) -> BTreeMap<i64, Sums> {
    let all = vec![(0, FOREVER)];
    let rows = fixture
        .store
        .list_counters(server, (grain, Breakdown::Total), all, 1_000)
        .await
        .expect("reading works");
    rows.into_iter().map(|row| (row.at, row.sums)).collect()
}

async fn sets(fixture: &Fixture, breakdown: Breakdown) -> Vec<(i64, Dimensions)> {
    let sets = fixture.store.list_dimensions(fixture.server, breakdown, 0, 10_000).await;
    sets.expect("the store answers").expect("they are not too many")
}

/// The totals of all days, added up.
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

/// Accepts a message and settles its attempts in order, each a minute after the one before.
async fn accept_and_settle(
    fixture: &Fixture,
    send: NewSend,
    outcomes: &[(Status, EventKind, &str)],
) -> MessageId {
    let id = fixture.accept(send).await[0];
    for (number, (status, kind, data)) in outcomes.iter().enumerate() {
        fixture.clock.advance(Duration::from_mins(1));
        fixture
            .store
            .claim(fixture.in_secs(3_600), 1_000, ClaimSkips::default())
            .await
            .expect("claiming works");
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

async fn events_are_counted_in_every_grain_and_breakdown(fixture: Fixture) {
    let started = fixture.now();
    accept_and_settle(&fixture, send(&fixture, "a@one.example", |_| {}), &[DELAYED, DELAYED, DELIVERED])
        .await;
    accept_and_settle(&fixture, send(&fixture, "b@ONE.example", |_| {}), &[REFUSED]).await;
    accept_and_settle(&fixture, send(&fixture, "c@two.example", |send| send.info.tag = None), &[SUPPRESSED])
        .await;
    count_all_events(&fixture).await;

    let expected =
        [("accepted", 3), ("sent", 1), ("soft_fail", 2), ("hard_fail", 1), ("held", 1), ("suppressed", 1)];
    assert_eq!(non_zero(&total(&fixture).await.counts), expected);
    let quarters = totals(&fixture, Grain::Quarter).await;
    assert!(quarters.keys().all(|at| at % 900 == 0));
    assert!(quarters.contains_key(&Grain::Quarter.start(started)), "{:?}", quarters.keys());

    let mut tags: Vec<(String, String)> =
        sets(&fixture, Breakdown::Full).await.into_iter().map(|(_, set)| (set.tag, set.domain)).collect();
    tags.sort();
    assert_eq!(tags, [("", "shop.example"), ("orders", "shop.example")].map(|(a, b)| (a.into(), b.into())));
    let single = sets(&fixture, Breakdown::Domain).await;
    let domain = Dimensions { domain: "shop.example".into(), ..Dimensions::default() };
    assert_eq!(single.iter().map(|(_, set)| set).collect::<Vec<_>>(), [&domain]);
    for (breakdown, grain) in
        Breakdown::NUMBERED.into_iter().flat_map(|breakdown| Grain::ALL.map(|grain| (breakdown, grain)))
    {
        let kind = (grain, breakdown);
        let listed = fixture.store.list_counters(fixture.server, kind, vec![(0, FOREVER)], 1_000).await;
        let mut listed = listed.expect("the store answers");
        let mut all = Counts::default();
        for row in &listed {
            all.add(&row.sums.counts);
        }
        assert_eq!(non_zero(&all), expected, "{breakdown:?} {grain:?}");
        // `find_counters` finds the same rows by key: for one set, at times with and without counts.
        let number = sets(&fixture, breakdown).await[0].0;
        listed.retain(|row| row.dimensions == number);
        let (first, length) = (grain.start(started), grain.seconds());
        let starts: Vec<i64> = (-1..20).map(|step| first + step * length).collect();
        let found = fixture.store.find_counters(fixture.server, kind, vec![number, 999], starts).await;
        let by_time = |rows: Vec<CounterRow>| -> BTreeMap<i64, Vec<(&'static str, u64)>> {
            rows.into_iter().map(|row| (row.at, non_zero(&row.sums.counts))).collect()
        };
        assert_eq!(by_time(found.expect("the store answers")), by_time(listed), "{breakdown:?} {grain:?}");
    }
    let too_many = fixture.store.list_dimensions(fixture.server, Breakdown::Full, 0, 1).await;
    assert!(too_many.expect("the store answers").is_none());
    let mut domains = fixture
        .store
        .list_recipient_domains(fixture.server, (0, FOREVER), 2)
        .await
        .expect("the store answers")
        .expect("there are two");
    let too_many = fixture.store.list_recipient_domains(fixture.server, (0, FOREVER), 1).await;
    assert!(too_many.expect("the store answers").is_none());
    domains.sort_by(|a, b| a.0.cmp(&b.0));
    let accepted: Vec<(&str, u64)> =
        domains.iter().map(|(name, counts)| (name.as_str(), counts.of(Metric::Accepted))).collect();
    assert_eq!(accepted, [("one.example", 2), ("two.example", 1)]);
}

async fn an_event_counts_once_when_several_nodes_count_it(fixture: Fixture) {
    let send = |number: usize| send(&fixture, &format!("u{number}@one.example"), |_| {});
    for number in 0..20 {
        fixture.accept(send(number)).await;
    }
    // Like several nodes: all read the same events, but only one writes their sums.
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, server) = (fixture.store.clone(), fixture.server);
            tokio::spawn(async move { store.count_events(server, &rules()).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("nobody fails");
    }
    count_all_events(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 20);

    // Counters and mark are one transaction, so that counting goes on after a restart.
    let fixture = fixture.reopen().await;
    let one_more = fixture.send_to(&["late@one.example"]);
    fixture.accept(one_more).await;
    count_all_events(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 21);
}

async fn a_message_held_twice_counts_once(fixture: Fixture) {
    let id = accept_and_settle(&fixture, send(&fixture, "a@one.example", |_| {}), &[SUPPRESSED]).await;
    for _ in 0..2 {
        fixture
            .store
            .retry(fixture.server, id, simulator_domain())
            .await
            .expect("a held message is released");
        fixture.claim_due().await;
        let held = NewEvent { kind: EventKind::Held, data: r#"{"reason": "suppressed"}"#.into() };
        assert!(fixture.finish(Outcome { event: held, ..fixture.outcome(id, Status::Held) }).await);
        // The first two holds are in one batch, the third is not.
        count_all_events(&fixture).await;
    }
    assert_eq!(non_zero(&total(&fixture).await.counts), [("accepted", 1), ("held", 1), ("suppressed", 1)]);
}

async fn test_messages_and_simulated_recipients_do_not_count(fixture: Fixture) {
    let state = InitialState::TestSent { details: "only a test".into() };
    let test = fixture.send(fixture.server, &["a@one.example"], state, b"Subject: x\r\n\r\n");
    fixture.accept(test).await;
    accept_and_settle(&fixture, send(&fixture, "delivered@SIM.postroad.test", |_| {}), &[DELIVERED]).await;
    fixture
        .store
        .add_server_event(fixture.server, NewEvent { kind: EventKind::SendLimitExceeded, data: "{}".into() })
        .await
        .expect("the store answers");
    count_all_events(&fixture).await;
    assert!(total(&fixture).await.counts.is_zero());
    assert!(
        fixture
            .store
            .list_recipient_domains(fixture.server, (0, FOREVER), 10)
            .await
            .expect("the store answers")
            .expect("there are few")
            .is_empty()
    );
}

async fn held_messages_are_left_out_of_latencies(fixture: Fixture) {
    accept_and_settle(&fixture, send(&fixture, "a@one.example", |_| {}), &[DELIVERED]).await;
    accept_and_settle(&fixture, send(&fixture, "b@one.example", |_| {}), &[DELAYED, DELAYED, DELIVERED])
        .await;
    let held = accept_and_settle(&fixture, send(&fixture, "c@one.example", |_| {}), &[SUPPRESSED]).await;
    fixture.clock.advance(Duration::from_hours(5));
    fixture.store.retry(fixture.server, held, simulator_domain()).await.expect("a held message is released");
    fixture.claim_due().await;
    let sent = NewEvent { kind: EventKind::Delivered, data: r#"{"attempt": 1, "time": 1.5}"#.into() };
    assert!(fixture.finish(Outcome { event: sent, ..fixture.outcome(held, Status::Sent) }).await);
    count_all_events(&fixture).await;

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
        fixture.store.save_recipient_providers(found).await.expect("the store answers");
        fixture.accept(send(&fixture, "a@Corp.example", |_| {})).await;
        count_all_events(&fixture).await;
    };
    learn("google").await;
    learn("yahoo").await;
    learn("other").await;
    let providers: BTreeSet<String> =
        sets(&fixture, Breakdown::Provider).await.into_iter().map(|(_, set)| set.provider).collect();
    assert_eq!(providers, ["google", "yahoo", "other"].map(ToOwned::to_owned).into());
    assert_eq!(fixture.query_int("SELECT count(*) FROM recipient_providers").await, 0);
}

async fn servers_are_counted_separately(fixture: Fixture) {
    fixture.accept(send(&fixture, "a@one.example", |_| {})).await;
    let other =
        fixture.send(fixture.other_server, &["b@one.example", "c@one.example"], InitialState::Pending, b"x");
    fixture.accept(other).await;
    count_all_events(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 1);
    let theirs = totals_of(&fixture, fixture.other_server, Grain::Day).await;
    assert_eq!(theirs.values().map(|sums| sums.counts.of(Metric::Accepted)).collect::<Vec<_>>(), [2]);
}

async fn totals_of_several_servers_are_read_together(fixture: Fixture) {
    fixture.accept(send(&fixture, "a@one.example", |_| {})).await;
    let other =
        fixture.send(fixture.other_server, &["b@one.example", "c@one.example"], InitialState::Pending, b"x");
    fixture.accept(other).await;
    let servers = vec![fixture.server, fixture.other_server, ServerId(999)];
    let accepted = async |ranges: Vec<(Grain, i64, i64)>| {
        let sums = fixture.store.sum_totals(servers.clone(), ranges).await.expect("the store works");
        let accepted = sums.into_iter().map(|(server, sums)| (server, sums.counts.of(Metric::Accepted)));
        accepted.collect::<BTreeMap<_, _>>()
    };
    let today = Grain::Day.start(fixture.now());
    let day = (Grain::Day, today, today + Grain::Day.seconds());
    assert_eq!(accepted(vec![day]).await, BTreeMap::new(), "nothing is counted yet");
    count_all_events(&fixture).await;
    let expected = BTreeMap::from([(fixture.server, 1), (fixture.other_server, 2)]);
    assert_eq!(accepted(vec![day]).await, expected);
    let twice = expected.iter().map(|(server, count)| (*server, 2 * count)).collect();
    let hour = Grain::Hour.start(fixture.now());
    assert_eq!(accepted(vec![day, (Grain::Hour, hour, hour + 1)]).await, twice, "the ranges are added up");
    assert_eq!(accepted(vec![(Grain::Hour, hour + 1, hour + 3_600)]).await, BTreeMap::new());
}

/// Accepted messages by tag, from the counters of this breakdown.
async fn accepted_by_tag(fixture: &Fixture, breakdown: Breakdown) -> BTreeMap<String, u64> {
    let mut accepted = BTreeMap::new();
    for (number, set) in sets(fixture, breakdown).await {
        let (kind, today) = ((Grain::Day, breakdown), Grain::Day.start(fixture.now()));
        let rows = fixture.store.find_counters(fixture.server, kind, vec![number], vec![today]).await;
        for row in rows.expect("the store answers") {
            *accepted.entry(set.tag.clone()).or_default() += row.sums.counts.of(Metric::Accepted);
        }
    }
    accepted
}

async fn tags_beyond_the_limit_are_counted_together(fixture: Fixture) {
    let tagged = |tag: &str| {
        send(&fixture, "a@corp.example", |send| send.info.tag = (!tag.is_empty()).then(|| tag.to_owned()))
    };
    fixture.accept(tagged("first")).await;
    fixture.accept(tagged("")).await;
    count_all_events(&fixture).await;
    // Further tags, until only one more fits; their counts do not matter here.
    let (server, tag_count) = (fixture.server, LIMITED_VALUES_MAX - 2);
    let numbers = match fixture.engine_files {
        EngineFiles::Sqlite(_) => {
            format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {tag_count})")
        }
        EngineFiles::Postgres(_) => format!("WITH n(i) AS (SELECT generate_series(1, {tag_count}))"),
    };
    let columns = "server_id, id, shape, domain, tag, provider, template, pool_id, credential_id, last_day";
    fixture
        .execute(&format!(
            "{numbers} INSERT INTO counter_dimensions ({columns})
             SELECT {server}, 50000 + i, 2, '', 'other tag ' || i, '', '', 0, 0, 0 FROM n"
        ))
        .await;
    // With a provider: the combination is new, although the tag is not.
    let found = vec![(DomainName::parse("corp.example").expect("a domain"), "google".to_owned())];
    fixture.store.save_recipient_providers(found).await.expect("the store answers");
    // Messages that never count do not use up the limit.
    fixture.accept(send(&fixture, "a@sim.postroad.test", |send| send.info.tag = Some("played".into()))).await;
    for tag in ["last", "surplus", "first", "", "surplus too", "last"] {
        fixture.accept(tagged(tag)).await;
    }
    count_all_events(&fixture).await;
    let expected = [("", 2), ("(other)", 2), ("first", 2), ("last", 2)];
    let expected: BTreeMap<String, u64> = expected.map(|(tag, count)| (tag.to_owned(), count)).into();
    assert_eq!(accepted_by_tag(&fixture, Breakdown::Tag).await, expected);
    assert_eq!(accepted_by_tag(&fixture, Breakdown::Full).await, expected);
    // After a tag was removed, a new one fits again.
    fixture.execute("DELETE FROM counter_dimensions WHERE tag = 'other tag 1'").await;
    fixture.accept(tagged("fresh")).await;
    count_all_events(&fixture).await;
    assert_eq!(accepted_by_tag(&fixture, Breakdown::Tag).await.get("fresh"), Some(&1));
}

async fn a_removed_dimension_set_is_created_again(fixture: Fixture) {
    fixture.accept(send(&fixture, "a@one.example", |_| {})).await;
    count_all_events(&fixture).await;
    fixture.clock.advance(Duration::from_hours(24));
    let before = Grain::Day.start(fixture.now());
    for grain in Grain::ALL {
        fixture.store.remove_old_counters(grain, before).await.expect("the store answers");
    }
    fixture.store.remove_old_day_counts(before).await.expect("the store answers");
    assert!(sets(&fixture, Breakdown::Full).await.is_empty());
    fixture.accept(send(&fixture, "a@one.example", |_| {})).await;
    count_all_events(&fixture).await;
    assert_eq!(sets(&fixture, Breakdown::Full).await.len(), 1);
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 1);
}

async fn a_batch_with_many_dimension_sets_is_counted_in_parts(fixture: Fixture) {
    // 300 messages, each with its own combinations of dimensions: more rows than one call writes.
    for number in 0..300 {
        let one = send(&fixture, &format!("a@d{number}.example"), |send| {
            send.info.tag = Some(format!("tag {number}"));
            send.info.from_domain = format!("shop{number}.example");
        });
        fixture.accept(one).await;
    }
    // On PostgreSQL a transaction of another test may hide the newest events for a moment: then the first part is
    // smaller.
    let mut is_delayed = false;
    let (first, counted) = eventually(async || {
        let progress = fixture.store.count_events(fixture.server, &rules()).await.expect("counting works");
        match (progress, total(&fixture).await.counts.of(Metric::Accepted)) {
            (CountProgress::AllDone, counted) if counted < 300 => {
                is_delayed = true;
                Err(format!("{counted} of 300 messages are counted"))
            }
            part => Ok(part),
        }
    })
    .await;
    assert!(is_delayed || first == CountProgress::MoreLeft, "{counted}");
    assert!(is_delayed || (1..300).contains(&counted), "{counted}");
    count_all_events(&fixture).await;
    assert_eq!(total(&fixture).await.counts.of(Metric::Accepted), 300);
    assert_eq!(accepted_by_tag(&fixture, Breakdown::Tag).await.len(), 300);
}

/// Replaces the tables of counters by those of version 8, as far as migration 9 needs them.
const COUNTER_TABLES_V8: &str = "DROP TABLE counters; CREATE TABLE counters (at BIGINT);
    DROP TABLE counter_dimensions; CREATE TABLE counter_dimensions (id BIGINT);
    DROP TABLE recipient_domains; CREATE TABLE recipient_domain_days (day BIGINT)";

async fn events_are_counted_again_after_an_upgrade_from_version_8(fixture: Fixture) {
    accept_and_settle(&fixture, send(&fixture, "a@one.example", |_| {}), &[DELAYED, DELIVERED]).await;
    count_all_events(&fixture).await;
    let counted = total(&fixture).await;
    fixture.execute(COUNTER_TABLES_V8).await;
    // Undoes the later migrations too, so that they can run again.
    undo_setup_changes(&fixture).await;
    fixture.execute(UNDO_SEARCH).await;
    fixture.execute(UNDO_BATCHES).await;
    let back_to_8: &[&str] = match fixture.engine_files {
        EngineFiles::Sqlite(_) => &[
            "DROP INDEX queue_scheduled; DROP INDEX queue_by_expiry; ALTER TABLE queue DROP COLUMN scheduled",
            "ALTER TABLE servers DROP COLUMN retention_bodies",
            "ALTER TABLE servers DROP COLUMN retention_messages",
            "DROP TABLE logins; DROP INDEX credentials_by_successor",
            "ALTER TABLE sources DROP COLUMN warmup_paused_at",
            "ALTER TABLE sources DROP COLUMN warmup_days_paused",
            "ALTER TABLE servers DROP COLUMN mode_ceiling",
            "ALTER TABLE servers DROP COLUMN send_rate_ceiling",
            "ALTER TABLE servers DROP COLUMN hourly_limit_ceiling",
            "ALTER TABLE servers DROP COLUMN retention_bodies_ceiling",
            "ALTER TABLE servers DROP COLUMN retention_messages_ceiling",
            "ALTER TABLE queue DROP COLUMN source_id",
            "DROP TABLE source_days; CREATE TABLE source_days (source_id INTEGER NOT NULL, day INTEGER NOT NULL, sent INTEGER NOT NULL,
                bounced INTEGER NOT NULL, complained INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (source_id, day)) WITHOUT ROWID",
            "DROP TABLE pacing_notes",
            "DROP TABLE template_versions; DROP TABLE templates",
            UNDO_DELIVERY_POLICY,
            UNDO_ACCOUNTS,
            DOMAINS_V19_SQLITE,
            "PRAGMA user_version = 8",
        ],
        EngineFiles::Postgres(_) => &[
            "ALTER TABLE queue DROP COLUMN scheduled",
            "DROP INDEX queue_by_expiry",
            "CREATE INDEX queue_by_due ON queue (due_at, message_id) WHERE claimed_node IS NULL",
            "ALTER TABLE servers DROP COLUMN retention_bodies, DROP COLUMN retention_messages",
            "ALTER TABLE webhook_queue DROP COLUMN claimed_node",
            "DROP TABLE logins; DROP INDEX credentials_by_successor",
            "ALTER TABLE sources DROP COLUMN warmup_paused_at, DROP COLUMN warmup_days_paused",
            "ALTER TABLE source_days DROP COLUMN sent_before, DROP COLUMN bounced_before, DROP COLUMN complained_before",
            "ALTER TABLE servers DROP COLUMN mode_ceiling, DROP COLUMN send_rate_ceiling, DROP COLUMN hourly_limit_ceiling",
            "ALTER TABLE servers DROP COLUMN retention_bodies_ceiling, DROP COLUMN retention_messages_ceiling",
            "ALTER TABLE queue DROP COLUMN source_id",
            "ALTER TABLE source_days DROP COLUMN provider; ALTER TABLE source_days ADD PRIMARY KEY (source_id, day)",
            "DROP TABLE pacing_notes",
            "DROP TABLE template_versions; DROP TABLE templates",
            UNDO_DELIVERY_POLICY,
            UNDO_ACCOUNTS,
            DOMAINS_V19_POSTGRES,
            "DROP FUNCTION event_xact, settled_xact CASCADE",
            "DELETE FROM schema_version WHERE version > 8",
        ],
    };
    for step in back_to_8 {
        fixture.execute(step).await;
    }
    let fixture = fixture.reopen().await;
    assert!(total(&fixture).await.counts.is_zero());
    count_all_events(&fixture).await;
    assert_eq!(total(&fixture).await, counted);
    assert_eq!(counted.counts.of(Metric::Accepted), 1);
}
