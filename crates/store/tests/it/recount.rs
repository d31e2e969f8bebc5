//! After 100,000 messages with random outcomes (20,000 in a debug build) the counters equal a simple recount of the
//! rows: by hour, and by domain, tag, provider and the other dimensions.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postroad_model::{DomainName, EventKind, MessageId, Status, Timestamp};
use postroad_store::{
    Breakdown, ClaimSkips, CounterRow, Counts, Dimension, Dimensions, Grain, InitialState, Metric,
    NewDelivery, NewEvent, Outcome, StoredValue, Sums,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::SimpleQueryMessage;

use serde_json::json;

use crate::counting::count_all_events;
use crate::fixture::{
    EngineFiles, Fixture, connect, message_ids, new_send, on_both_engines, simulator_domain,
};

on_both_engines!(after_random_outcomes_the_counters_equal_a_recount);

const SENDS: usize = if cfg!(debug_assertions) { 200 } else { 1_000 };
const RECIPIENTS: usize = 100;
/// Messages that are claimed and settled together.
const MESSAGES_PER_CLAIM: usize = 2_000;
const SENDERS: [&str; 3] = ["shop.example", "news.example", "bücher.example"];
const SOURCES: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const TLS_VERSIONS: [Option<&str>; 3] = [None, Some("TLSv1.2"), Some("TLSv1.3")];
const TAGS: [Option<&str>; 4] = [None, Some("welcome"), Some("invoice"), Some("news, weekly")];
const RECEIVERS: [(&str, Option<&str>); 5] = [
    ("gmail.com", Some("google")),
    ("Corp.Example", Some("google")),
    ("yahoo.com", Some("yahoo")),
    ("small.example", None),
    ("sim.postroad.test", None),
];

async fn after_random_outcomes_the_counters_equal_a_recount(fixture: Fixture) {
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let known = RECEIVERS.iter().filter_map(|(domain, provider)| {
        Some((DomainName::parse(domain).expect("a domain"), (*provider)?.to_owned()))
    });
    fixture.store.save_recipient_providers(known.collect()).await.expect("providers are noted");
    accept_all(&fixture, &mut random).await;
    // Some events are counted before the others exist.
    count_all_events(&fixture).await;
    while settle_some(&fixture, &mut random).await {}
    add_tracking_events(&fixture, &mut random).await;
    count_all_events(&fixture).await;

    let recounted = Recount::of(&fixture).await;
    let accepted: u64 = recounted.totals.values().filter_map(|counts| counts.get("accepted")).sum();
    assert!(accepted > (SENDS * RECIPIENTS) as u64 * 7 / 10, "{accepted}");
    // In each grain, the totals and each breakdown equal the recount, and so do combinations added up by one dimension.
    for grain in Grain::ALL {
        let counted = GrainCounters::of(&fixture, grain).await;
        let step = grain.seconds().max(HOUR);
        assert_eq!(counted.totals, coarser(&recounted.totals, step), "{grain:?}");
        for (breakdown, table) in &recounted.tables {
            let table = coarser_table(table, step);
            assert_eq!(counted.single[breakdown], table, "{breakdown:?} {grain:?}");
            assert_eq!(counted.of_attempts[breakdown], table, "{breakdown:?} of attempts, {grain:?}");
            if !breakdown.is_of_attempts() {
                assert_eq!(counted.of_full[breakdown], table, "{breakdown:?} of all, {grain:?}");
            }
        }
        assert!(counted.sums.iter().all(|sums| *sums == counted.sums[0]), "latencies, {grain:?}");
    }
    let forever = (0, i64::MAX / 2_000_000);
    let mut domains: BTreeMap<String, Numbers> = BTreeMap::new();
    let found = fixture.store.list_recipient_domains(fixture.server, forever, 1_000).await;
    for (domain, counts) in found.expect("reading works").expect("there are not that many") {
        add_counts(domains.entry(domain).or_default(), &counts);
    }
    assert_eq!(domains, recounted.recipient_domains);
}

async fn accept_all(fixture: &Fixture, random: &mut StdRng) {
    let mut accepting = Vec::new();
    for number in 0..SENDS {
        let addresses: Vec<String> = (0..RECIPIENTS)
            .map(|at| format!("u{number}.{at}@{}", RECEIVERS[random.random_range(0..RECEIVERS.len())].0))
            .collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        // The sends are spread evenly over two days.
        let at = fixture.now().plus(Duration::from_secs(number as u64 * 2 * 86_400 / SENDS as u64));
        let mut send = new_send(&fixture.store, fixture.server, at, &addresses, InitialState::Pending, b"x");
        SENDERS[random.random_range(0..SENDERS.len())].clone_into(&mut send.info.from_domain);
        send.info.tag = TAGS[random.random_range(0..TAGS.len())].map(ToOwned::to_owned);
        assert_eq!(message_ids(&send).len(), RECIPIENTS);
        let store = fixture.store.clone();
        accepting.push(tokio::spawn(async move { store.accept(send).await }));
    }
    for accepted in accepting {
        accepted.await.expect("no panic").expect("it is accepted");
    }
}

/// One outcome for each of the next queued messages; false if there are none.
async fn settle_some(fixture: &Fixture, random: &mut StdRng) -> bool {
    let far = fixture.in_secs(30 * 86_400);
    let claimed =
        fixture.store.claim(far, MESSAGES_PER_CLAIM, ClaimSkips::default()).await.expect("claiming works");
    let outcomes: Vec<Outcome> = claimed
        .iter()
        .map(|entry| {
            let at = entry.due_at.plus(Duration::from_secs(random.random_range(1..900)));
            let (status, kind, class, data) = match random.random_range(0..100) {
                0..75 => (Status::Sent, EventKind::Delivered, None, json!({"attempt": 1, "time": 0.1})),
                75..90 => {
                    let data = json!({"attempt": 1, "time": 0.1, "class": "full"});
                    (Status::SoftFail, EventKind::Delayed, Some("full"), data)
                }
                90..93 => {
                    let data = json!({"bounce": {"kind": "sync", "class": "spam_block"}});
                    (Status::HardFail, EventKind::Bounced, Some("spam_block"), data)
                }
                93..96 => {
                    (Status::HardFail, EventKind::Failed, Some("bad_domain"), json!({"class": "bad_domain"}))
                }
                96..98 => (Status::Held, EventKind::Held, None, json!({"reason": "suppressed"})),
                _ => (Status::Held, EventKind::Held, None, json!({"reason": "hourly_limit"})),
            };
            let mut data = data;
            let mut delivery = NewDelivery::local(at, status, "");
            delivery.next_attempt_at = (status == Status::SoftFail).then_some(at);
            delivery.bounce_class = class.map(ToOwned::to_owned);
            if matches!(kind, EventKind::Delivered | EventKind::Delayed | EventKind::Bounced) {
                let (source_ip, tls) =
                    (random.random_range(0..SOURCES.len()), random.random_range(0..TLS_VERSIONS.len()));
                delivery.source_ip = Some(SOURCES[source_ip].to_owned());
                delivery.tls = TLS_VERSIONS[tls].map(ToOwned::to_owned);
                data["mx"] = json!("mx.example");
                data["source_ip"] = json!(SOURCES[source_ip]);
                data["tls_version"] = json!(TLS_VERSIONS[tls]);
            }
            let event = NewEvent { kind, data: data.to_string() };
            Outcome { delivery, event, ..fixture.outcome(entry.message_id, status) }
        })
        .collect();
    let held: Vec<MessageId> =
        outcomes.iter().filter(|o| o.delivery.status == Status::Held).map(|o| o.message_id).collect();
    let settled = fixture.store.finish(outcomes).await.expect("finishing works");
    assert!(settled.into_iter().all(|settled| settled));
    // A third of the held messages are released, and may be held again.
    let released: Vec<_> = held
        .into_iter()
        .filter(|_| random.random_ratio(1, 3))
        .map(|id| {
            let (store, server) = (fixture.store.clone(), fixture.server);
            tokio::spawn(async move { store.retry(server, id, simulator_domain()).await })
        })
        .collect();
    for released in released {
        released.await.expect("no panic").expect("a held message is released");
    }
    !claimed.is_empty()
}

/// Adds opens, clicks, late bounces, complaints and unsubscriptions of a tenth of the sent messages. Inserts the rows
/// directly, because nothing runs here that would receive them.
async fn add_tracking_events(fixture: &Fixture, random: &mut StdRng) {
    let sent = rows(
        fixture,
        "SELECT m.id || '|' || m.last_seq FROM messages m WHERE m.status = 'Sent' ORDER BY m.id",
    )
    .await;
    let ids = fixture.store.ids().expect("a node has ids");
    let mut values = Vec::new();
    for row in &sent {
        if !random.random_ratio(1, 10) {
            continue;
        }
        let (id, seq) = (row[0].parse::<i64>().expect("an id"), row[1].parse::<i64>().expect("a number"));
        // Whether a person, and whether a bot, opened or clicked it before.
        let mut opened_by = (false, false);
        for number in 0..random.random_range(1..4) {
            let bot = random.random_ratio(1, 4);
            let is_first = if bot { !opened_by.1 } else { !opened_by.0 };
            let is_first_of_all = opened_by == (false, false);
            if bot {
                opened_by.1 = true;
            } else {
                opened_by.0 = true;
            }
            let kind = if number == 2 { "message.clicked" } else { "message.opened" };
            let data =
                format!(r#"{{"bot":{bot},"first":{is_first},"first_including_bots":{is_first_of_all}}}"#);
            values.push((id, seq + 1 + number, kind, data));
        }
        let more: &[(&str, &str)] = match random.random_range(0..6) {
            // The host that wrote a late bounce made no attempt, so its event must not count as one.
            0 => &[("message.bounced", r#"{"bounce":{"kind":"async","class":"inactive"},"mx":"mx.else"}"#)],
            1 => &[("message.complained", "{}"), ("message.unsubscribed", "{}")],
            _ => &[],
        };
        let next = values.last().map_or(seq, |(_, seq, ..)| *seq);
        values.extend(
            more.iter().zip(next + 1..).map(|((kind, data), seq)| (id, seq, *kind, (*data).to_owned())),
        );
    }
    for some in values.chunks(500) {
        let texts = some.iter().map(|(message, seq, kind, data)| {
            let at = fixture.now().plus(Duration::from_secs(random.random_range(0..3 * 86_400))).as_micros();
            format!("({}, {}, {message}, {seq}, '{kind}', {at}, 0, '{data}')", fixture.server, ids.next())
        });
        let texts: Vec<String> = texts.collect();
        let columns = "server_id, id, message_id, seq, kind, at, test, data";
        fixture.execute(&format!("INSERT INTO events ({columns}) VALUES {}", texts.join(", "))).await;
    }
}

/// Counts by metric.
type Numbers = BTreeMap<&'static str, u64>;

/// Counts by dimension value and start of the hour, in seconds since 1970.
type Table = BTreeMap<(String, i64), Numbers>;

const HOUR: i64 = 3_600;

/// Counts every message individually, without batches, grains or marks.
#[derive(Debug, Default)]
struct Recount {
    totals: BTreeMap<i64, Numbers>,
    tables: BTreeMap<Breakdown, Table>,
    recipient_domains: BTreeMap<String, Numbers>,
}

fn coarser(hours: &BTreeMap<i64, Numbers>, step: i64) -> BTreeMap<i64, Numbers> {
    let mut spans: BTreeMap<i64, Numbers> = BTreeMap::new();
    for (hour, numbers) in hours {
        add_numbers(spans.entry(hour - hour.rem_euclid(step)).or_default(), numbers);
    }
    spans
}

fn coarser_table(hours: &Table, step: i64) -> Table {
    let mut spans = Table::new();
    for ((value, hour), numbers) in hours {
        add_numbers(spans.entry((value.clone(), hour - hour.rem_euclid(step))).or_default(), numbers);
    }
    spans
}

fn add_numbers(to: &mut Numbers, numbers: &Numbers) {
    for (name, number) in numbers {
        *to.entry(name).or_default() += number;
    }
}

fn add_counts(to: &mut Numbers, counts: &Counts) {
    for metric in Metric::ALL.iter().filter(|metric| counts.of(**metric) > 0) {
        *to.entry(metric.as_str()).or_default() += counts.of(*metric);
    }
}

impl Recount {
    async fn of(fixture: &Fixture) -> Self {
        let mut all = Self::default();
        let facts = rows(
            fixture,
            "SELECT m.id || '|' || m.rcpt_to || '|' || s.from_domain || '|' || COALESCE(s.tag, '') || '|' || s.created_at || '|' || COALESCE(s.credential_id, 0)
             FROM messages m JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id",
        )
        .await;
        let mut messages: HashMap<String, Vec<String>> = HashMap::new();
        for row in facts {
            let created_at = row[4].clone();
            let id = row[0].clone();
            all.add(&row, "accepted", &created_at, ["", "", ""]);
            messages.insert(id, row);
        }
        // Attempts and holds from the delivery records, not from the events.
        let deliveries = rows(
            fixture,
            "SELECT d.message_id || '|' || d.status || '|' || d.at || '|' || COALESCE(d.bounce_class, '') || '|' || COALESCE(d.source_ip, '')
                 || '|' || COALESCE(d.tls, '') FROM deliveries d ORDER BY d.message_id, d.id",
        )
        .await;
        let mut delivered: HashMap<String, (String, String)> = HashMap::new();
        let mut last_held = None;
        for row in deliveries {
            let message = &messages[&row[0]];
            let name = match row[1].as_str() {
                "Sent" => "sent",
                "SoftFail" => "soft_fail",
                "HardFail" => "hard_fail",
                "Held" if last_held.as_ref() != Some(&row[0]) => {
                    last_held = Some(row[0].clone());
                    "held"
                }
                _ => continue,
            };
            all.add(message, name, &row[2], [&row[3], &row[4], &row[5]]);
            if name == "sent" {
                delivered.insert(row[0].clone(), (row[4].clone(), row[5].clone()));
            }
        }
        let suppressed = rows(
            fixture,
            "SELECT e.message_id || '|' || e.at FROM events e
             WHERE e.kind = 'message.held' AND e.data LIKE '%suppressed%' ORDER BY e.message_id, e.seq",
        )
        .await;
        let mut before = None;
        for row in suppressed {
            if before.as_ref() != Some(&row[0]) {
                all.add(&messages[&row[0]], "suppressed", &row[1], ["", "", ""]);
                before = Some(row[0].clone());
            }
        }
        let tracking_events = rows(
            fixture,
            "SELECT e.message_id || '|' || e.kind || '|' || e.at || '|' || e.data FROM events e
             WHERE e.kind IN ('message.opened', 'message.clicked', 'message.complained', 'message.unsubscribed')
                OR e.data LIKE '%async%'",
        )
        .await;
        for row in tracking_events {
            let (message, kind, data) = (&messages[&row[0]], row[1].as_str(), row[3].as_str());
            let by_bot = data.contains(r#""bot":true"#);
            let names: &[&'static str] = match kind {
                "message.opened" if by_bot => &["bot_opened", "", "unique_opened_with_bots"],
                "message.opened" => &["opened", "unique_opened", "unique_opened_with_bots"],
                "message.clicked" if by_bot => &["bot_clicked", "", "unique_clicked_with_bots"],
                "message.clicked" => &["clicked", "unique_clicked", "unique_clicked_with_bots"],
                "message.complained" => &["complained"],
                "message.unsubscribed" => &["unsubscribed"],
                _ => &["bounced"],
            };
            let class = if kind == "message.bounced" { "inactive" } else { "" };
            let (source_ip, tls) = &delivered[&row[0]];
            let conditions = ["", r#""first":true"#, r#""first_including_bots":true"#];
            for (name, condition) in names.iter().zip(conditions) {
                if !name.is_empty() && data.contains(condition) {
                    all.add(message, name, &row[2], [class, source_ip, tls]);
                }
            }
        }
        all
    }

    /// `attempt`: bounce class, source address, TLS version.
    fn add(&mut self, message: &[String], name: &'static str, at: &str, attempt: [&str; 3]) {
        let [_, rcpt_to, domain, tag, _, credential] = message else { panic!("six columns") };
        let recipient_domain = rcpt_to.rsplit('@').next().expect("a domain").to_lowercase();
        if recipient_domain == "sim.postroad.test" {
            return;
        }
        let receiver = RECEIVERS.iter().find(|(name, _)| name.to_lowercase() == recipient_domain);
        let provider = receiver.and_then(|(_, provider)| *provider).unwrap_or("other");
        let at = Timestamp::from_micros(at.parse().expect("a time"));
        let hour = Grain::Hour.start(at);
        *self.totals.entry(hour).or_default().entry(name).or_default() += 1;
        *self.recipient_domains.entry(recipient_domain).or_default().entry(name).or_default() += 1;
        let values = [
            (Dimension::Domain, domain.as_str()),
            (Dimension::Tag, tag),
            (Dimension::Template, ""),
            (Dimension::Provider, provider),
            (Dimension::Pool, "0"),
            (Dimension::Credential, credential),
            (Dimension::BounceClass, attempt[0]),
            (Dimension::SourceIp, attempt[1]),
            (Dimension::TlsVersion, attempt[2]),
        ];
        for dimension in Dimension::ALL {
            let value =
                values.iter().find(|(one, _)| *one == dimension).expect("a value of each dimension").1;
            let table = self.tables.entry(dimension.breakdown()).or_default();
            *table.entry((value.to_owned(), hour)).or_default().entry(name).or_default() += 1;
        }
    }
}

fn value_of(breakdown: Breakdown, set: &Dimensions) -> String {
    let mut dimensions = Dimension::ALL.into_iter();
    let dimension = dimensions.find(|one| one.breakdown() == breakdown).expect("of one dimension");
    match set.value_of(dimension) {
        StoredValue::Text(text) => text.to_owned(),
        StoredValue::Id(id) => id.to_string(),
    }
}

/// The counters of one grain, added up by hour if the grain is shorter.
#[derive(Default)]
struct GrainCounters {
    totals: BTreeMap<i64, Numbers>,
    /// Counts by each dimension, from the counters that distinguish only this dimension.
    single: BTreeMap<Breakdown, Table>,
    /// The same, added up from the counters that distinguish all dimensions of messages.
    of_full: BTreeMap<Breakdown, Table>,
    /// The same, added up from the counters that also distinguish the dimensions of attempts.
    of_attempts: BTreeMap<Breakdown, Table>,
    /// Sums with latencies: of the total, and of each breakdown.
    sums: Vec<Sums>,
}

impl GrainCounters {
    async fn of(fixture: &Fixture, grain: Grain) -> Self {
        let step = grain.seconds().max(HOUR);
        let mut all = Self::default();
        let mut whole = Sums::default();
        for row in list(fixture, (grain, Breakdown::Total)).await {
            add_counts(all.totals.entry(row.at - row.at.rem_euclid(step)).or_default(), &row.sums.counts);
            whole.add(&row.sums);
        }
        all.sums.push(whole);
        for breakdown in Breakdown::NUMBERED {
            let sets = fixture.store.list_dimensions(fixture.server, breakdown, 0, 100_000).await;
            let sets = sets.expect("reading works").expect("they are not too many");
            let sets: HashMap<i64, Dimensions> = sets.into_iter().collect();
            let mut whole = Sums::default();
            for row in list(fixture, (grain, breakdown)).await {
                let (set, at) = (&sets[&row.dimensions], row.at - row.at.rem_euclid(step));
                let is_single = |one: &Breakdown| !matches!(one, Breakdown::Full | Breakdown::FullByAttempt);
                let is_full = !is_single(&breakdown);
                let singles = Breakdown::NUMBERED.into_iter().filter(is_single);
                for single in singles.filter(|single| is_full || breakdown == *single) {
                    let tables = match breakdown {
                        Breakdown::Full => &mut all.of_full,
                        Breakdown::FullByAttempt => &mut all.of_attempts,
                        _ => &mut all.single,
                    };
                    let table = tables.entry(single).or_default();
                    add_counts(table.entry((value_of(single, set), at)).or_default(), &row.sums.counts);
                }
                whole.add(&row.sums);
            }
            all.sums.push(whole);
        }
        all
    }
}

async fn list(fixture: &Fixture, kind: (Grain, Breakdown)) -> Vec<CounterRow> {
    // Two ranges, as callers may ask for.
    let middle = Grain::Day.start(fixture.now()) + 86_400;
    let ranges = vec![(0, middle), (middle, i64::MAX / 2_000_000)];
    let rows = fixture.store.list_counters(fixture.server, kind, ranges, 1_000_000).await;
    rows.expect("reading works")
}

/// Rows of a query whose one column joins its values with bars.
async fn rows(fixture: &Fixture, text: &str) -> Vec<Vec<String>> {
    let split = |row: &str| row.split('|').map(ToOwned::to_owned).collect();
    match &fixture.engine_files {
        EngineFiles::Sqlite(_) => {
            let connection =
                rusqlite::Connection::open(fixture.engine_files.sqlite_path()).expect("the file is there");
            let mut statement = connection.prepare(text).expect("the query is good");
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("it is answered");
            rows.map(|row| split(&row.expect("a text"))).collect()
        }
        EngineFiles::Postgres(database) => {
            let answer = connect(database.url()).await.simple_query(text).await.expect("the query is good");
            let texts = answer.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            texts.map(split).collect()
        }
    }
}
