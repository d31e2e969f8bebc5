//! Webhooks under load: ten thousand messages, and a thousand endpoints that do not answer.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::{Value, json};

use super::EVENTS;
use crate::world::{Engine, World, both_engines, good, good_but};

const MESSAGES: usize = 10_000;
const DEAD_ENDPOINTS: usize = 1_000;

both_engines!(every_event_of_ten_thousand_messages_is_posted_and_no_seq_is_missing);

async fn every_event_of_ten_thousand_messages_is_posted_and_no_seq_is_missing(engine: Engine) {
    let world = World::start(engine);
    let catcher = WebhookCatcher::start();
    world.new_webhook(&catcher.url("/in"), json!("all")).await;
    let begun = Instant::now();
    for batch in 0..MESSAGES / 50 {
        let to: Vec<String> = (0..50).map(|n| format!("user-{batch}-{n}@example.com")).collect();
        let answer = world
            .call_with("/api/v1/send/message", &[("X-Test-Mode", "true")], &good_but(json!({ "to": to })))
            .await;
        assert_eq!(answer["status"], "success", "{answer}");
    }
    let accepted_in = begun.elapsed();
    // Each message has two events, accepted and delivered, with the `seq` 1 and 2.
    let timeout = Duration::from_mins(4);
    let posts = catcher.wait_for_within("/in", 2 * MESSAGES, timeout);
    eprintln!(
        "{engine:?}: accepted in {accepted_in:?}, all {} posted after {:?}",
        posts.len(),
        begun.elapsed()
    );
    let mut seqs: BTreeMap<i64, HashSet<i64>> = BTreeMap::new();
    let mut ids = HashSet::new();
    for post in &posts {
        let body = post.json();
        assert_eq!(body["data"]["test"], true);
        ids.insert(body["id"].as_str().unwrap().to_owned());
        let message = body["data"]["message"]["id"].as_i64().unwrap();
        seqs.entry(message).or_default().insert(body["seq"].as_i64().unwrap());
    }
    assert_eq!((seqs.len(), ids.len()), (MESSAGES, 2 * MESSAGES));
    assert!(seqs.values().all(|seqs| *seqs == HashSet::from([1, 2])));

    let mut polled_ids = HashSet::new();
    let mut request = json!({ "limit": 500 });
    loop {
        let answer = world.call(EVENTS, &request).await;
        let items = answer["data"]["items"].as_array().unwrap();
        polled_ids.extend(items.iter().map(|item: &Value| item["id"].as_str().unwrap().to_owned()));
        request["since_cursor"] = answer["flags"]["pagination"]["next_cursor"].clone();
        if answer["flags"]["pagination"]["has_more"] == false {
            break;
        }
    }
    assert_eq!(polled_ids, ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dead_endpoints_delay_a_living_one_little() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_WEBHOOKS_PER_SERVER", "2000")]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/hangs", CatcherAnswer::Hang);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let events = json!(["message.accepted"]);
    world.new_webhook(&catcher.url("/lives"), events.clone()).await;
    world.accepted(&good()).await;
    catcher.wait_for("/lives", 1);
    let alone = measure_delay(&world, &catcher, 2).await;
    for n in 0..DEAD_ENDPOINTS {
        // Most endpoints hang until the post times out, some refuse the connection.
        let url = if n % 5 == 0 { format!("http://{closed}/{n}") } else { catcher.url("/hangs") };
        world.new_webhook(&url, events.clone()).await;
    }
    let mut slowest = Duration::ZERO;
    for count in 3..=12 {
        slowest = slowest.max(measure_delay(&world, &catcher, count).await);
    }
    eprintln!(
        "from call to post: {alone:?} alone, at most {slowest:?} among {DEAD_ENDPOINTS} dead endpoints"
    );
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
}

/// Sends a message; returns the time from the call to the webhook post about it, which is the `count`th.
async fn measure_delay(world: &World, catcher: &WebhookCatcher, count: usize) -> Duration {
    let begun = Instant::now();
    world.accepted(&good()).await;
    catcher.wait_for("/lives", count)[count - 1].at.saturating_duration_since(begun)
}

both_engines!(a_new_endpoint_beside_fifty_dead_new_ones_gets_its_first_events_within_two_seconds);

async fn a_new_endpoint_beside_fifty_dead_new_ones_gets_its_first_events_within_two_seconds(engine: Engine) {
    let world = World::start_with(engine, &[("POSTROAD_WEBHOOKS_PER_SERVER", "51")]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/hangs", CatcherAnswer::Hang);
    let events = json!(["message.accepted"]);
    for _ in 0..50 {
        world.new_webhook(&catcher.url("/hangs"), events.clone()).await;
    }
    world.new_webhook(&catcher.url("/lives"), events).await;
    let begun = Instant::now();
    world.accepted(&good()).await;
    let first = catcher.wait_for_within("/lives", 1, Duration::from_mins(1))[0].at - begun;
    let begun_second = Instant::now();
    world.accepted(&good()).await;
    let second = catcher.wait_for("/lives", 2)[1].at - begun_second;
    eprintln!("first events after {first:?} and {second:?}");
    assert!(first < Duration::from_secs(2) && second < Duration::from_secs(2), "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_to_dead_endpoints_are_given_up_early_if_no_permit_is_left() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_WEBHOOKS_PER_SERVER", "131")]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/hangs", CatcherAnswer::Hang);
    let events = json!(["message.accepted"]);
    // A server has 32 permits for posts to new endpoints, and 64 for posts to slow ones.
    for _ in 0..130 {
        world.new_webhook(&catcher.url("/hangs"), events.clone()).await;
    }
    world.new_webhook(&catcher.url("/lives"), events).await;
    let begun = Instant::now();
    world.accepted(&good()).await;
    let first = catcher.wait_for_within("/lives", 1, Duration::from_mins(1))[0].at - begun;
    // A hanging post lasts 15 seconds while a permit is left; here it is given up earlier.
    eprintln!("first event after {first:?}");
    assert!(first < Duration::from_secs(11), "{first:?}");
}
