//! Random messages and random queries: a search finds exactly the messages that a full scan finds, without an index and
//! with one.

use std::time::Duration;

use postroad_model::{Clock as _, MessageId, SystemClock};
use postroad_store::IndexProgress;
use postroad_testkit::ManualClock;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};

use super::find_all;
use crate::batch::BATCH;
use crate::scheduling::in_millis;
use crate::world::{World, both_engines};

const BATCHES: usize = 6;
const BATCH_MESSAGES: usize = 100;
const QUERIES: usize = 100;
/// Messages in a block of the index.
const BLOCK_MESSAGES: usize = 57;

const WORDS: [&str; 11] = [
    "order",
    "Order",
    "invoice 4711",
    "ÄRGER",
    "注文が届きました",
    "re:",
    "100%_x",
    "a",
    "say \"hi\"",
    "back\\slash",
    "-minus",
];
const PEOPLE: [&str; 6] = ["ann", "Bob.Order", "x", "carol+news", "ann.smith", "order"];
const RECEIVERS: [&str; 3] = ["example.com", "order.example", "mail.example.com"];
const SENDERS: [&str; 2] = ["example.test", "second.example"];
const TAGS: [&str; 3] = ["news", "news letter", "receipts"];
const STATUSES: [&str; 4] = ["Held", "Scheduled", "Sent", "Bounced"];

/// A message with the values that the test sent.
#[derive(Debug, Clone)]
struct ExpectedMessage {
    id: i64,
    to: String,
    from: String,
    domain: &'static str,
    subject: String,
    tag: Option<&'static str>,
    has_template: bool,
    has_attachment: bool,
    order: String,
    status: &'static str,
    batch: usize,
}

type Predicate = Box<dyn Fn(&ExpectedMessage) -> bool>;

fn pick<T: Copy>(random: &mut StdRng, from: &[T]) -> T {
    *from.choose(random).unwrap()
}

fn random_message(random: &mut StdRng, batch: usize, status: &'static str) -> (ExpectedMessage, Value) {
    let domain = pick(random, &SENDERS);
    let words: Vec<&str> = (0..random.random_range(1..4)).map(|_| pick(random, &WORDS)).collect();
    let known = ExpectedMessage {
        id: 0,
        to: format!("{}@{}", pick(random, &PEOPLE), pick(random, &RECEIVERS)),
        from: format!("{}@{domain}", pick(random, &PEOPLE)),
        domain,
        subject: words.join(" "),
        tag: random.random_bool(0.5).then(|| pick(random, &TAGS)),
        has_template: random.random_bool(0.3),
        has_attachment: random.random_bool(0.3),
        order: random.random_range(0..5).to_string(),
        status,
        batch,
    };
    let mut message = json!({
        "to": [known.to], "from": known.from, "subject": known.subject, "tag": known.tag, "metadata": {"order": known.order},
    });
    if known.has_template {
        message["template"] = json!({"alias": "welcome", "model": {}});
    } else {
        message["plain_body"] = json!("x");
    }
    if known.has_attachment {
        message["attachments"] = json!([{"name": "a.txt", "data": "eA=="}]);
    }
    (known, message)
}

/// Sends one batch after the other. Returns all messages, newest first, and a time after each batch.
async fn send_all(world: &World, random: &mut StdRng) -> (Vec<ExpectedMessage>, Vec<String>) {
    let (_, hold_key) = world.new_key(&["--hold"]);
    let (mut all, mut times) = (Vec::new(), Vec::new());
    for batch in 0..BATCHES {
        let status = ["Held", "Scheduled", "Sent"][batch % 3];
        let (known, mut messages): (Vec<ExpectedMessage>, Vec<Value>) =
            (0..BATCH_MESSAGES).map(|_| random_message(random, batch, status)).unzip();
        if status == "Scheduled" {
            for message in &mut messages {
                message["send_at"] = json!(in_millis(3_600_000));
            }
        }
        let request = json!({ "messages": messages });
        let answer = match status {
            "Held" => world.call_as(&hold_key, BATCH, &request).await,
            "Sent" => world.call_with(BATCH, &[("X-Test-Mode", "true")], &request).await,
            _ => world.call(BATCH, &request).await,
        };
        assert_eq!(answer["data"]["accepted"], BATCH_MESSAGES, "{answer}");
        for (known, result) in known.into_iter().zip(answer["data"]["results"].as_array().unwrap()) {
            all.push(ExpectedMessage { id: crate::batch::id_of(result), ..known });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        times.push(SystemClock.now().to_rfc3339());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    all.sort_unstable_by_key(|known| std::cmp::Reverse(known.id));
    (all, times)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A random part of one of the texts.
fn random_text(random: &mut StdRng) -> String {
    let source =
        [pick(random, &WORDS), pick(random, &PEOPLE), pick(random, &RECEIVERS), pick(random, &SENDERS)];
    let letters: Vec<char> = pick(random, &source).chars().collect();
    let from = random.random_range(0..letters.len());
    let to = random.random_range(from + 1..=letters.len());
    let text: String = letters[from..to].iter().collect();
    if text.trim().is_empty() { "order".to_owned() } else { text }
}

/// One term of a query, and the predicate that tells whether a message fulfils it.
fn random_term(random: &mut StdRng, times: &[String]) -> (String, Predicate) {
    let text = random_text(random);
    let lower = text.to_lowercase();
    let has = move |field: &str| field.to_lowercase().contains(&lower);
    let (term, test): (String, Predicate) = match random.random_range(0..10) {
        0 => (format!("to:{}", quoted(&text)), Box::new(move |known| has(&known.to))),
        1 => (format!("from:{}", quoted(&text)), Box::new(move |known| has(&known.from))),
        2 => (format!("subject:{}", quoted(&text)), Box::new(move |known| has(&known.subject))),
        3 => {
            let is_word = text.chars().all(char::is_alphanumeric);
            let written = if is_word { text.clone() } else { quoted(&text) };
            (written, Box::new(move |known| has(&known.subject) || has(&known.to) || has(&known.from)))
        }
        4 => {
            let tag = pick(random, &TAGS);
            (format!("tag:{}", quoted(tag)), Box::new(move |known| known.tag == Some(tag)))
        }
        5 => {
            let domain = pick(random, &SENDERS);
            (format!("domain:{}", domain.to_uppercase()), Box::new(move |known| known.domain == domain))
        }
        6 => ("template:welcome".to_owned(), Box::new(|known| known.has_template)),
        7 => ("has:attachment".to_owned(), Box::new(|known| known.has_attachment)),
        8 => {
            let status = pick(random, &STATUSES);
            (format!("status:{}", status.to_lowercase()), Box::new(move |known| known.status == status))
        }
        _ => {
            let batch = random.random_range(0..times.len());
            (format!("before:{}", times[batch]), Box::new(move |known| known.batch <= batch))
        }
    };
    if random.random_bool(0.3) {
        (format!("-{term}"), Box::new(move |known| !test(known)))
    } else {
        (term, test)
    }
}

/// Adds a condition to the request, in a separate field; returns the predicate that tells whether a message fulfils it.
fn random_field(random: &mut StdRng, request: &mut Map<String, Value>) -> Predicate {
    match random.random_range(0..4) {
        0 => {
            let value = random.random_range(0..6).to_string();
            request.insert("metadata".into(), json!({"order": value}));
            Box::new(move |known| known.order == value)
        }
        1 => {
            let (one, two) = (pick(random, &STATUSES), pick(random, &STATUSES));
            request.insert("status".into(), json!([one, two]));
            Box::new(move |known| known.status == one || known.status == two)
        }
        2 => {
            let text = random_text(random);
            request.insert("to".into(), json!(text));
            let lower = text.to_lowercase();
            Box::new(move |known| known.to.to_lowercase().contains(&lower))
        }
        _ => {
            let tag = pick(random, &TAGS);
            request.insert("tag".into(), json!(tag));
            Box::new(move |known| known.tag == Some(tag))
        }
    }
}

both_engines!(a_search_finds_what_a_scan_finds);

async fn a_search_finds_what_a_scan_finds(world: World) {
    let mut world = world;
    let seed: u64 = rand::rng().random();
    let random = &mut StdRng::seed_from_u64(seed);
    world.admin(&["domain", "create", "second.example", "--server", "dev"]);
    world.admin(&["domain", "set-verified", "second.example", "--server", "dev"]);
    let template =
        json!({"alias": "welcome", "name": "w", "subject": "x", "html_body": "<p>x</p>", "publish": true});
    assert_eq!(world.call("/api/v1/templates/create", &template).await["status"], "success");
    let (all, times) = send_all(&world, random).await;
    let mut hits = compare(&world, random, seed, &all, &times).await;
    index_most(&mut world, MessageId(all[0].id)).await;
    hits += compare(&world, random, seed, &all, &times).await;
    assert!(hits > QUERIES / 4, "too few queries find something: {hits}, with seed {seed}");
}

/// Indexes the messages in small blocks, as the service does with many messages: the oldest blocks are merged, and the
/// newest messages stay without an index.
async fn index_most(world: &mut World, newest: MessageId) {
    let later = ManualClock::at(SystemClock.now().plus(Duration::from_mins(20)));
    let store = world.stopped_store_at(later).await;
    let server = store.locate_message(newest).await.unwrap().unwrap();
    let mut blocks = 0;
    while store.index_next_block(server, BLOCK_MESSAGES).await.unwrap() == IndexProgress::Added {
        blocks += 1;
    }
    assert_eq!(blocks, BATCHES * BATCH_MESSAGES / BLOCK_MESSAGES);
    while store.check_next_block().await.unwrap().is_some() {}
    for _ in 0..2 {
        assert_eq!(store.merge_next_blocks(server, 4).await.unwrap(), IndexProgress::Added);
    }
    drop(store);
    world.restart();
}

/// Compares searches with scans for random queries; returns how many queries found something.
async fn compare(
    world: &World,
    random: &mut StdRng,
    seed: u64,
    all: &[ExpectedMessage],
    times: &[String],
) -> usize {
    let mut hits = 0;
    for _ in 0..QUERIES {
        let (terms, mut tests): (Vec<String>, Vec<Predicate>) =
            (0..random.random_range(1..4)).map(|_| random_term(random, times)).unzip();
        let mut request = Map::new();
        request.insert("q".into(), json!(terms.join(" ")));
        request.insert("limit".into(), json!(random.random_range(20..=500)));
        if random.random_bool(0.3) {
            tests.push(random_field(random, &mut request));
        }
        let expected: Vec<i64> =
            all.iter().filter(|known| tests.iter().all(|test| test(known))).map(|known| known.id).collect();
        let request = Value::Object(request);
        assert_eq!(find_all(world, &request).await, expected, "{request} with seed {seed}");
        hits += usize::from(!expected.is_empty());
    }
    hits
}
