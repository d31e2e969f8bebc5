//! Fills a SQLite store with events and counts them: `analytics_fill --database sqlite:PATH [--events N]
//! [--others M]`.
//!
//! The first server gets N events; it is created if there is none. M more servers are created, and get a hundredth of
//! N each. Sends, messages and events are written directly into the tables, as a month of real use
//! leaves them. The store then counts them in batches, as in a running service, and this is timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{Clock, DomainName, ServerId, ServerMode, SystemClock, Timestamp, idgen};
use postroad_store::{CountProgress, CountingRules, Database, NewServer, Role, Settings, Store};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::{Connection, Transaction, params};

const DAYS: u64 = 32;
const RECIPIENTS_PER_SEND: usize = 10;
const TAGS: usize = 40;
const SENDERS: [&str; 5] =
    ["example.com", "news.example.com", "example.org", "billing.example.net", "shop.example"];
const LARGE_RECEIVERS: [(&str, &str); 8] = [
    ("gmail.com", "google"),
    ("outlook.com", "microsoft_consumer"),
    ("yahoo.com", "yahoo"),
    ("hotmail.com", "microsoft_consumer"),
    ("icloud.com", "apple"),
    ("gmx.de", "gmx"),
    ("aol.com", "yahoo"),
    ("comcast.net", "comcast"),
];
const SMALL_RECEIVERS: u32 = 20_000;

#[tokio::main(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let number = |name: &str, default| option(name).map_or(default, |text| text.parse().expect("a number"));
    let (events, others): (usize, usize) = (number("--events", 10_000_000), number("--others", 5));
    let database = Database::parse(option("--database").expect("--database sqlite:PATH is given"))
        .expect("the database is understood");
    let Database::Sqlite(path) = database.clone() else { panic!("it fills SQLite only") };

    let store = open(database.clone()).await;
    let known = store.list_servers().await.expect("the store can be read");
    let mut ids: Vec<ServerId> = known.iter().take(1).map(|server| server.id).collect();
    let account_id = match known.first() {
        Some(server) => server.account_id,
        None => store.create_account("Bench".into()).await.expect("the name is free").id,
    };
    while ids.len() <= others {
        let name = format!("Bench {}", ids.len());
        let new = NewServer { account_id, name, mode: ServerMode::Live, pool_id: None };
        ids.push(store.create_server(new).await.expect("the name is free").id);
    }
    store.save_recipient_providers(providers()).await.expect("the providers are stored");
    drop(store);

    let begun = Instant::now();
    let mut connection = Connection::open(&path).expect("the file is there");
    connection.pragma_update(None, "synchronous", "OFF").expect("a setting of SQLite");
    let mut random = StdRng::seed_from_u64(1);
    let mut written = fill(&mut connection, ids[0], events, &mut random);
    println!("{written} events of one server written in {:.0} s", begun.elapsed().as_secs_f64());
    for id in &ids[1..] {
        written += fill(&mut connection, *id, events / 100, &mut random);
    }
    drop(connection);

    let store = open(database).await;
    let begun = Instant::now();
    let rules = CountingRules { simulator_domain: DomainName::parse("sim.postroad.test").expect("a domain") };
    let mut batches: Vec<Duration> = Vec::new();
    for id in ids {
        loop {
            let batch = Instant::now();
            let progress = store.count_events(id, &rules).await.expect("counting works");
            batches.push(batch.elapsed());
            if progress == CountProgress::AllDone {
                break;
            }
        }
    }
    let taken = begun.elapsed().as_secs_f64();
    batches.sort_unstable();
    let batch_at = |share: usize| batches[(batches.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "all {written} counted in {taken:.0} s: {:.1} µs an event; {} batches, median {:.1} ms, p99 {:.1} ms",
        taken * 1e6 / written as f64,
        batches.len(),
        batch_at(50),
        batch_at(99),
    );
}

/// Providers of the large receivers, and of every tenth small domain.
fn providers() -> Vec<(DomainName, String)> {
    let domain = |name: &str| DomainName::parse(name).expect("a domain");
    let small = (0..SMALL_RECEIVERS).step_by(10).map(|number| {
        let provider = if number % 20 == 0 { "google" } else { "microsoft_365" };
        (domain(&format!("small{number}.example")), provider.to_owned())
    });
    let large = LARGE_RECEIVERS.iter().map(|(name, provider)| (domain(name), (*provider).to_owned()));
    large.chain(small).collect()
}

async fn open(database: Database) -> Store {
    let settings = Settings { reader_threads: 2, ..Settings::small(database) };
    let role = Role::Node { identity: "analytics_fill".into() };
    Store::open(settings, role, Arc::new(SystemClock)).await.expect("the store opens")
}

/// Writes a month of a server's mail, evenly over the time; returns the number of events.
fn fill(connection: &mut Connection, server: ServerId, events: usize, random: &mut StdRng) -> usize {
    let now = SystemClock.now();
    let start = now.minus(Duration::from_hours(24 * DAYS));
    // 2.4 events per message: accepted, delivered or refused, and some opens.
    let sends = (events * 10 / 24).div_ceil(RECIPIENTS_PER_SEND);
    let step = Duration::from_hours(24 * DAYS) / sends.max(1) as u32;
    let mut written = 0;
    let mut last_id = 0;
    for chunk in 0..sends.div_ceil(5_000) {
        let transaction = connection.transaction().expect("nobody else writes");
        for number in chunk * 5_000..(chunk * 5_000 + 5_000).min(sends) {
            let at = start.plus(step * number as u32);
            written += add_send(&transaction, server, at, &mut last_id, random);
        }
        transaction.commit().expect("it is written");
    }
    written
}

/// Adds a send with its messages and events; returns the number of events. Ids belong to the second of their send, and
/// are above `last_id`, the last one that was used.
fn add_send(
    transaction: &Transaction<'_>,
    server: ServerId,
    at: Timestamp,
    last_id: &mut i64,
    random: &mut StdRng,
) -> usize {
    let mut new_id = || {
        *last_id = (*last_id + 1).max(idgen::first_id_at(at));
        *last_id
    };
    let send = new_id();
    let mut insert_send = transaction
        .prepare_cached(
            "INSERT INTO sends (server_id, id, credential_id, message_id, mail_from, subject, tag, metadata, options, size,
                                direction, bounce, received_with_ssl, test, created_at, from_domain)
             VALUES (?1, ?2, ?6, '', 'shop@example.com', 'Hello', ?3, '{}', '{}', 1000, 'outgoing', 0, 1, 0, ?4, ?5)",
        )
        .expect("a good statement");
    // Some tags are used much more than others. All mail with one tag has the same sender and key.
    let kind = (random.random_range(0.0..1.0_f64).powi(2) * TAGS as f64) as usize;
    let (tag, domain, credential) = (format!("kind {kind}"), SENDERS[kind % SENDERS.len()], kind % 2 + 1);
    insert_send
        .execute(params![server.0, send, tag, at.as_micros(), domain, credential as i64])
        .expect("it is new");
    let mut insert_message = transaction
        .prepare_cached(
            "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, bounce_for_id, last_seq)
             VALUES (?1, ?2, ?3, '', ?4, 'Sent', 0, ?5)",
        )
        .expect("a good statement");
    let mut insert_event = transaction
        .prepare_cached(
            "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)",
        )
        .expect("a good statement");
    let mut written = 0;
    for number in 0..RECIPIENTS_PER_SEND {
        let message = new_id();
        let receiver = if random.random_ratio(7, 10) {
            LARGE_RECEIVERS[random.random_range(0..LARGE_RECEIVERS.len())].0.to_owned()
        } else {
            // A few of the small domains get most of the mail to small domains.
            let rank = random.random_range(0.0..1.0_f64).powi(3) * f64::from(SMALL_RECEIVERS);
            format!("small{}.example", rank as u32)
        };
        let second = match random.random_range(0..100) {
            0..92 => ("message.delivered", r#"{"attempt":1,"time":0.4}"#),
            92..95 => ("message.delayed", r#"{"attempt":1,"time":0.4}"#),
            _ => ("message.bounced", r#"{"attempt":1,"time":0.4,"bounce":{"kind":"sync"}}"#),
        };
        let mut events = vec![("message.accepted", "{}"), second];
        if random.random_ratio(4, 10) {
            events.push(("message.opened", r#"{"first":true,"first_including_bots":true,"bot":false}"#));
        }
        insert_message
            .execute(params![server.0, message, send, format!("u{number}@{receiver}"), events.len() as i64])
            .expect("it is new");
        for (seq, (kind, data)) in events.iter().enumerate() {
            let moment = at.plus(Duration::from_millis(seq as u64 * 700)).as_micros();
            insert_event
                .execute(params![server.0, new_id(), message, seq as i64 + 1, kind, moment, data])
                .expect("it is new");
            written += 1;
        }
    }
    written
}
