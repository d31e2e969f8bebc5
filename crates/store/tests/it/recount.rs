//! After 100,000 messages with random fates the counters say what a simple recount of the rows says: by domain, tag,
//! hour and provider.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postroad_model::{DomainName, EventKind, MessageId, Status, Timestamp};
use postroad_store::{Counts, Grain, InitialState, Metric, NewDelivery, NewEvent, Outcome};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::SimpleQueryMessage;

use crate::counting::fold_all;
use crate::fixture::{Fixture, Place, connect, message_ids, new_send, on_both_engines};

on_both_engines!(after_random_fates_the_counters_equal_a_recount);

const SENDS: usize = 1_000;
const RECIPIENTS: usize = 100;
const AT_ONCE: usize = 2_000;
const SENDERS: [&str; 3] = ["shop.example", "news.example", "bücher.example"];
const TAGS: [Option<&str>; 4] = [None, Some("welcome"), Some("invoice"), Some("news, weekly")];
const RECEIVERS: [(&str, Option<&str>); 5] = [
    ("gmail.com", Some("google")),
    ("Corp.Example", Some("google")),
    ("yahoo.com", Some("yahoo")),
    ("small.example", None),
    ("sim.postroad.test", None),
];

async fn after_random_fates_the_counters_equal_a_recount(fixture: Fixture) {
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let known = RECEIVERS.iter().filter_map(|(domain, provider)| {
        Some((DomainName::parse(domain).expect("a domain"), (*provider)?.to_owned()))
    });
    fixture.store.learn_recipient_providers(known.collect()).await.expect("providers are noted");
    accept_all(&fixture, &mut random).await;
    // Some is counted while the rest happens.
    fold_all(&fixture).await;
    while settle_some(&fixture, &mut random).await {}
    add_hits(&fixture, &mut random).await;
    fold_all(&fixture).await;

    let recounted = Recount::of(&fixture).await;
    assert!(recounted.tags.values().map(|counts| counts["accepted"]).sum::<u64>() > 70_000);
    assert_eq!(recounted.tags.len(), TAGS.len());
    let counted = counted(&fixture).await;
    assert_eq!(counted.hours, recounted.hours);
    assert_eq!(counted.domains, recounted.domains);
    assert_eq!(counted.tags, recounted.tags);
    assert_eq!(counted.providers, recounted.providers);
    assert_eq!(counted.recipient_domains, recounted.recipient_domains);
}

async fn accept_all(fixture: &Fixture, random: &mut StdRng) {
    let mut accepting = Vec::new();
    for number in 0..SENDS {
        let addresses: Vec<String> = (0..RECIPIENTS)
            .map(|at| format!("u{number}.{at}@{}", RECEIVERS[random.random_range(0..RECEIVERS.len())].0))
            .collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        // Two days, one send after the other, as they come in.
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
    let claimed = fixture.store.claim(far, AT_ONCE, Vec::new()).await.expect("claiming works");
    let outcomes: Vec<Outcome> = claimed
        .iter()
        .map(|entry| {
            let at = entry.due_at.plus(Duration::from_secs(random.random_range(1..900)));
            let (status, kind, data) = match random.random_range(0..100) {
                0..75 => (Status::Sent, EventKind::Delivered, r#"{"attempt": 1, "time": 0.1}"#),
                75..90 => (Status::SoftFail, EventKind::Delayed, r#"{"attempt": 1, "time": 0.1}"#),
                90..93 => (Status::HardFail, EventKind::Bounced, r#"{"bounce": {"kind": "sync"}}"#),
                93..96 => (Status::HardFail, EventKind::Failed, r#"{"class": "bad_domain"}"#),
                96..98 => (Status::Held, EventKind::Held, r#"{"reason": "suppressed"}"#),
                _ => (Status::Held, EventKind::Held, r#"{"reason": "hourly_limit"}"#),
            };
            let mut delivery = NewDelivery::local(at, status, "");
            delivery.next_attempt_at = (status == Status::SoftFail).then_some(at);
            let event = NewEvent { kind, data: data.to_owned() };
            Outcome { delivery, event, ..fixture.outcome(entry.message_id, status) }
        })
        .collect();
    let held: Vec<MessageId> =
        outcomes.iter().filter(|o| o.delivery.status == Status::Held).map(|o| o.message_id).collect();
    let settled = fixture.store.finish(outcomes).await.expect("finishing works");
    assert!(settled.into_iter().all(|settled| settled));
    // A third of those held get another chance, and may be held again.
    let released: Vec<_> = held
        .into_iter()
        .filter(|_| random.random_ratio(1, 3))
        .map(|id| {
            let (store, server) = (fixture.store.clone(), fixture.server);
            tokio::spawn(async move { store.retry(server, id).await })
        })
        .collect();
    for released in released {
        released.await.expect("no panic").expect("a held message is released");
    }
    !claimed.is_empty()
}

/// Opens, clicks, bounces that came back, complaints and unsubscriptions of a tenth of the messages that were sent; as
/// rows, since no door is open here.
async fn add_hits(fixture: &Fixture, random: &mut StdRng) {
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
            0 => &[("message.bounced", r#"{"bounce":{"kind":"async"}}"#)],
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

type Numbers = BTreeMap<&'static str, u64>;

#[derive(Debug, Default)]
struct Figures {
    hours: BTreeMap<i64, Numbers>,
    domains: BTreeMap<String, Numbers>,
    tags: BTreeMap<String, Numbers>,
    providers: BTreeMap<String, Numbers>,
    recipient_domains: BTreeMap<String, Numbers>,
}

/// Every message looked at by itself, with no idea of batches, grains or marks.
type Recount = Figures;

impl Recount {
    async fn of(fixture: &Fixture) -> Self {
        let mut all = Self::default();
        let facts = rows(
            fixture,
            "SELECT m.id || '|' || m.rcpt_to || '|' || s.from_domain || '|' || COALESCE(s.tag, '') || '|' || s.created_at
             FROM messages m JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id",
        )
        .await;
        let mut messages: HashMap<String, Vec<String>> = HashMap::new();
        for row in facts {
            let created_at = row[4].clone();
            let id = row[0].clone();
            all.add(&row, "accepted", &created_at);
            messages.insert(id, row);
        }
        // Attempts and holds from the delivery records, not from the events.
        let deliveries = rows(
            fixture,
            "SELECT d.message_id || '|' || d.status || '|' || d.at FROM deliveries d ORDER BY d.message_id, d.id",
        )
        .await;
        let mut held_before = None;
        for row in deliveries {
            let message = &messages[&row[0]];
            let name = match row[1].as_str() {
                "Sent" => "sent",
                "SoftFail" => "soft_fail",
                "HardFail" => "hard_fail",
                "Held" if held_before.as_ref() != Some(&row[0]) => {
                    held_before = Some(row[0].clone());
                    "held"
                }
                _ => continue,
            };
            all.add(message, name, &row[2]);
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
                all.add(&messages[&row[0]], "suppressed", &row[1]);
                before = Some(row[0].clone());
            }
        }
        let hits = rows(
            fixture,
            "SELECT e.message_id || '|' || e.kind || '|' || e.at || '|' || e.data FROM events e
             WHERE e.kind IN ('message.opened', 'message.clicked', 'message.complained', 'message.unsubscribed')
                OR e.data LIKE '%async%'",
        )
        .await;
        for row in hits {
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
            let is_said = ["", r#""first":true"#, r#""first_including_bots":true"#];
            for (name, said) in names.iter().zip(is_said) {
                if !name.is_empty() && data.contains(said) {
                    all.add(message, name, &row[2]);
                }
            }
        }
        all
    }

    fn add(&mut self, message: &[String], name: &'static str, at: &str) {
        let [_, rcpt_to, domain, tag, _] = message else { panic!("five columns") };
        let recipient_domain = rcpt_to.rsplit('@').next().expect("a domain").to_lowercase();
        if recipient_domain == "sim.postroad.test" {
            return;
        }
        let receiver = RECEIVERS.iter().find(|(name, _)| name.to_lowercase() == recipient_domain);
        let provider = receiver.and_then(|(_, provider)| *provider).unwrap_or("other");
        let at = Timestamp::from_micros(at.parse().expect("a time"));
        *self.hours.entry(at.as_secs() / 3_600).or_default().entry(name).or_default() += 1;
        for (to, key) in [
            (&mut self.domains, domain),
            (&mut self.tags, tag),
            (&mut self.providers, &provider.to_owned()),
            (&mut self.recipient_domains, &recipient_domain),
        ] {
            *to.entry(key.clone()).or_default().entry(name).or_default() += 1;
        }
    }
}

/// What the counters say.
async fn counted(fixture: &Fixture) -> Figures {
    let forever = i64::MAX / 2_000_000;
    let mut all = Figures::default();
    let add = |to: &mut Numbers, counts: &Counts| {
        for metric in Metric::ALL.iter().filter(|metric| counts.of(**metric) > 0) {
            *to.entry(metric.as_str()).or_default() += counts.of(*metric);
        }
    };
    let store = &fixture.store;
    for row in store.list_totals(fixture.server, Grain::Quarter, 0, forever).await.expect("reading works") {
        add(all.hours.entry(row.at / 3_600).or_default(), &row.sums.counts);
    }
    let sets: HashMap<_, _> =
        store.list_dimensions(fixture.server, 0).await.expect("reading works").into_iter().collect();
    // Each grain by itself is the whole.
    let numbers: Vec<i64> = sets.keys().copied().collect();
    for (grain, which) in [(Grain::Minute, 0), (Grain::Quarter, 1), (Grain::Day, 2)] {
        let rows = store.list_counters(fixture.server, grain, numbers.clone(), (0, forever), 1_000_000).await;
        for row in rows.expect("reading works") {
            let set = &sets[&row.dimensions];
            let (to, key) = match which {
                0 => (&mut all.domains, &set.domain),
                1 => (&mut all.tags, &set.tag),
                _ => (&mut all.providers, &set.provider),
            };
            add(to.entry(key.clone()).or_default(), &row.sums.counts);
        }
    }
    for (domain, counts) in
        store.list_recipient_domains(fixture.server, (0, forever), 1_000).await.expect("reading works")
    {
        add(all.recipient_domains.entry(domain).or_default(), &counts);
    }
    all
}

/// The columns of a text that joins them with bars.
async fn rows(fixture: &Fixture, text: &str) -> Vec<Vec<String>> {
    let split = |row: &str| row.split('|').map(ToOwned::to_owned).collect();
    match &fixture.place {
        Place::Sqlite(_) => {
            let connection =
                rusqlite::Connection::open(fixture.place.sqlite_path()).expect("the file is there");
            let mut statement = connection.prepare(text).expect("the question is good");
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("it is answered");
            rows.map(|row| split(&row.expect("a text"))).collect()
        }
        Place::Postgres(database) => {
            let answer =
                connect(database.url()).await.simple_query(text).await.expect("the question is good");
            let texts = answer.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            texts.map(split).collect()
        }
    }
}
