//! Idempotency: requests with the same key make one send, even if they are concurrent or repeated after a crash.
//! A different request with that key is refused.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{SEND, World, both_engines, good, good_but};

fn without_time(mut answer: Value) -> Value {
    answer["time"] = json!(0);
    answer
}

both_engines!(
    two_hundred_concurrent_requests_with_one_key_make_one_send,
    the_field_and_the_header_give_the_same_idempotency_key,
    a_different_request_with_a_used_key_conflicts,
    a_refused_request_does_not_use_its_key_up,
    the_replayed_answer_is_the_same_after_a_crash,
    each_server_has_its_own_idempotency_keys
);

async fn two_hundred_concurrent_requests_with_one_key_make_one_send(world: World) {
    let headers = [("Idempotency-Key", "order-17")];
    let text_of = async |body: Value| {
        let text = world.request("POST", SEND, &[("Idempotency-Key", "text")], body.to_string()).await.text();
        let (before, after) = text.split_once("\"time\":").unwrap();
        let (_, after) = after.split_once(',').unwrap();
        format!("{before}{after}")
    };
    let first = text_of(good()).await;
    assert_eq!(
        text_of(good()).await,
        first.replace("\"flags\":{}", "\"flags\":{\"idempotent_replay\":true}")
    );
    let body = good_but(json!({"to": ["a@example.com", "b@example.com"]}));
    let answers = join_all((0..200).map(|_| world.call_with(SEND, &headers, &body))).await;
    let first = answers.iter().filter(|answer| answer["flags"] == json!({})).count();
    assert_eq!(first, 1, "exactly one request stored the send");
    for answer in &answers {
        assert_eq!(answer["status"], "success", "{answer}");
        assert_eq!(answer["data"], answers[0]["data"]);
        assert!(answer["flags"] == json!({}) || answer["flags"] == json!({"idempotent_replay": true}));
    }
}

async fn the_field_and_the_header_give_the_same_idempotency_key(world: World) {
    let by_field = world.call(SEND, &good_but(json!({"idempotency_key": "k1"}))).await;
    let by_header = world.call_with(SEND, &[("Idempotency-Key", "k1")], &good()).await;
    assert_eq!(by_header["flags"], json!({"idempotent_replay": true}));
    assert_eq!(by_header["data"], by_field["data"]);
    let both = world
        .call_with(SEND, &[("Idempotency-Key", "k1")], &good_but(json!({"idempotency_key": "k2"})))
        .await;
    assert_eq!(both["status"], "parameter-error");
    assert_eq!(both["data"]["errors"][0]["pointer"], "/idempotency_key");
}

async fn a_different_request_with_a_used_key_conflicts(world: World) {
    let key = [("Idempotency-Key", "k")];
    let first = world.call_with(SEND, &key, &good()).await;
    assert_eq!(first["status"], "success");
    let other = world.call_with(SEND, &key, &good_but(json!({"subject": "another"}))).await;
    assert_eq!(other["status"], "error");
    assert_eq!(other["data"]["code"], "IdempotencyConflict");
    // Another order of JSON keys or other white space is still the same request.
    let same = r#"{ "plain_body":"Thank you.", "subject":"Your order",
            "from":"Shop <shop@example.test>", "to":["someone@example.com"] }"#;
    let reply = world.request("POST", SEND, &key, same).await;
    assert_eq!(without_time(reply.json())["data"], first["data"]);
}

async fn a_refused_request_does_not_use_its_key_up(world: World) {
    let key = [("Idempotency-Key", "k")];
    let refused = world.call_with(SEND, &key, &good_but(json!({"from": "a@other.test"}))).await;
    assert_eq!(refused["data"]["code"], "UnauthenticatedFromAddress");
    let sent = world.call_with(SEND, &key, &good()).await;
    assert_eq!(sent["status"], "success");
    assert_eq!(sent["flags"], json!({}));
}

async fn the_replayed_answer_is_the_same_after_a_crash(world: World) {
    let mut world = world;
    let key = [("Idempotency-Key", "over-the-crash")];
    let body = good_but(json!({"to": ["a@example.com", "b@example.com"], "unknown": 1}));
    let first = world.call_with(SEND, &key, &body).await;
    assert_eq!(first["status"], "success");
    world.crash_and_restart();
    let again = world.call_with(SEND, &key, &body).await;
    assert_eq!(again["data"], first["data"]);
    assert_eq!(again["flags"]["idempotent_replay"], true);
    assert_eq!(again["flags"]["warnings"], first["flags"]["warnings"]);
}

async fn each_server_has_its_own_idempotency_keys(world: World) {
    let key = [("Idempotency-Key", "shared")];
    let mine = world.call_with(SEND, &key, &good()).await;
    world.admin(&["server", "create", "second", "--account", "dev"]);
    world.admin(&["domain", "create", "example.test", "--server", "second"]);
    world.admin(&["domain", "set-verified", "example.test", "--server", "second"]);
    let made = world.admin(&["key", "create", "--server", "second"]);
    let second = made["api_key"].as_str().unwrap();
    let theirs = world.call_as(second, SEND, &good_but(json!({"idempotency_key": "shared"}))).await;
    assert_eq!(theirs["status"], "success", "{theirs}");
    assert_ne!(theirs["data"], mine["data"]);
}
