//! events/list: reading the events that webhooks post.

use std::time::{Duration, Instant};

use postroad_testkit::{WebhookCatcher, eventually};
use serde_json::{Value, json};

use super::EVENTS;
use crate::world::{World, both_engines, good, good_but};

both_engines!(
    the_feed_gives_the_same_objects_as_webhooks,
    a_cursor_goes_on_without_gap_or_repetition,
    a_poll_waits_for_the_next_event,
    a_feed_has_only_events_of_its_server_and_at_most_eight_waiting_polls,
    a_waiting_poll_does_not_delay_a_stop,
    invalid_requests_are_refused_by_their_field
);

async fn the_feed_gives_the_same_objects_as_webhooks(world: World) {
    let catcher = WebhookCatcher::start();
    world.new_webhook(&catcher.url("/in"), json!("all")).await;
    let id = world.accepted_id(&good()).await;
    world.until_status(id, "Sent").await;
    let posts = catcher.wait_for("/in", 2);
    // On PostgreSQL the feed waits for all transactions that began earlier, even those of other tests.
    let items = eventually(async || {
        let mut answer = world.call(EVENTS, &json!({ "message_id": id })).await;
        let items = answer["data"]["items"].as_array_mut().map(std::mem::take).unwrap();
        if items.len() >= 2 { Ok(items) } else { Err(format!("{items:?}")) }
    })
    .await;
    let types: Vec<&Value> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["message.accepted", "message.delivered"]);
    for item in &items {
        let post = posts.iter().find(|post| post.header("webhook-id") == item["id"].as_str()).unwrap();
        assert_eq!(&post.json(), item);
    }
}

async fn a_cursor_goes_on_without_gap_or_repetition(world: World) {
    let mut expected = Vec::new();
    for _ in 0..10 {
        expected.push(world.accepted_id(&good_but(json!({ "to": ["a@example.com"] }))).await);
    }
    let mut seen = Vec::new();
    let mut request = json!({ "types": ["message.accepted"], "limit": 3, "wait_s": 5 });
    eventually(async || {
        let answer = world.call(EVENTS, &request).await;
        for item in answer["data"]["items"].as_array().unwrap() {
            seen.push(item["data"]["message"]["id"].as_i64().unwrap());
        }
        request["since_cursor"] = answer["flags"]["pagination"]["next_cursor"].clone();
        if seen.len() < 10 { Err(format!("{} of 10 events came: {answer}", seen.len())) } else { Ok(()) }
    })
    .await;
    assert_eq!(seen, expected);
}

async fn a_poll_waits_for_the_next_event(world: World) {
    let before = world.accepted_id(&good()).await;
    // On PostgreSQL the feed waits for all transactions that began earlier, even those of other tests.
    let seen = world.call(EVENTS, &json!({ "types": ["message.accepted"], "wait_s": 30 })).await;
    assert_eq!(seen["data"]["items"][0]["data"]["message"]["id"], before, "{seen}");
    let latest = world.call(EVENTS, &json!({ "since_cursor": "latest" })).await;
    let request = json!({
        "since_cursor": latest["flags"]["pagination"]["next_cursor"],
        "types": ["message.accepted"],
        "wait_s": 30,
    });
    let begun = Instant::now();
    let (answer, id) = tokio::join!(world.call(EVENTS, &request), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.accepted_id(&good()).await
    });
    assert_eq!(answer["data"]["items"][0]["data"]["message"]["id"], id, "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let begun = Instant::now();
    let request = json!({ "since_cursor": "latest", "wait_s": 0.3, "types": ["ip.warmup_paused"] });
    assert_eq!(world.call(EVENTS, &request).await["data"]["items"], json!([]));
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

async fn a_feed_has_only_events_of_its_server_and_at_most_eight_waiting_polls(world: World) {
    let id = world.accepted_id(&good()).await;
    world.admin(&["server", "create", "other", "--account", "dev"]);
    let other = world.admin(&["key", "create", "--server", "other"]);
    let other = other["api_key"].as_str().unwrap();
    for body in [json!({}), json!({ "message_id": id })] {
        assert_eq!(world.call_as(other, EVENTS, &body).await["data"]["items"], json!([]), "{body}");
    }
    // Eight polls of a server may wait as long as they want; one more is answered after a second.
    let request = json!({ "wait_s": 4 });
    let begun = Instant::now();
    let polls = futures_util::future::join_all((0..9).map(|_| async {
        world.call_as(other, EVENTS, &request).await;
        begun.elapsed()
    }));
    let mut times = polls.await;
    times.sort();
    assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&times[0]), "{times:?}");
    assert!(times[1] >= Duration::from_secs(4), "{times:?}");
}

async fn a_waiting_poll_does_not_delay_a_stop(world: World) {
    let mut world = world;
    let request = json!({ "since_cursor": "latest", "wait_s": 30 });
    let client = world.client.clone();
    let key = world.key.clone();
    let poll = tokio::spawn(async move { client.post_json(EVENTS, Some(&key), &request).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(poll.await.unwrap().unwrap().json()["status"], "success");
}

async fn invalid_requests_are_refused_by_their_field(world: World) {
    for (body, pointer) in [
        (json!({ "wait_s": 31 }), "/wait_s"),
        (json!({ "since_cursor": "x" }), "/since_cursor"),
        (json!({ "types": ["nothing"] }), "/types/0"),
        (json!({ "message_id": "1" }), "/message_id"),
        (json!({ "limit": 501 }), "/limit"),
    ] {
        let answer = world.call(EVENTS, &body).await;
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{body}: {answer}");
    }
}
