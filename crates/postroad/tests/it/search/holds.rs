//! Held messages, released and cancelled one by one, by list and by query.

use std::time::Duration;

use postroad_testkit::{eventually, eventually_within};
use serde_json::{Value, json};

use super::{find_all, find_all_items, query};
use crate::batch::{BATCH, batch_to};
use crate::world::{World, both_engines, good_but};

const RELEASE: &str = "/api/v1/messages/release";
const CANCEL: &str = "/api/v1/messages/cancel_hold";
const RETRY: &str = "/api/v1/messages/retry";
const JOB: &str = "/api/v1/jobs/get";

/// Sends messages with a key that holds everything; returns their ids.
async fn send_held(world: &World, count: usize, tag: &str) -> Vec<i64> {
    let (_, key) = world.new_key(&["--hold"]);
    let mut ids = Vec::new();
    for number in 0..count {
        let to = format!("u{number}@example.com");
        let sent = world.call_as(&key, crate::world::SEND, &good_but(json!({"to": [to], "tag": tag}))).await;
        ids.push(sent["data"]["messages"][&to]["id"].as_i64().unwrap_or_else(|| panic!("{sent}")));
    }
    ids
}

/// Waits until the job has ended, and returns it. Allows two minutes: a job may be large, and go on after a crash.
pub(super) async fn wait_for_job(world: &World, id: &Value) -> Value {
    eventually_within(Duration::from_mins(2), async || {
        let job = world.call(JOB, &json!({"id": id})).await;
        assert_eq!(job["status"], "success", "{job}");
        if job["data"]["state"] == "running" {
            return Err(format!("the job has not ended: {job}"));
        }
        Ok(job["data"].clone())
    })
    .await
}

both_engines!(
    held_messages_are_released_and_cancelled_by_id,
    a_query_releases_the_messages_it_finds_except_those_to_suppressed_recipients,
    a_job_goes_on_after_a_crash,
    a_release_to_the_simulator_ignores_limits_and_suppressions,
    invalid_requests_and_objects_of_another_server_are_refused
);

async fn a_release_to_the_simulator_ignores_limits_and_suppressions(world: World) {
    let (_, key) = world.new_key(&["--hold"]);
    let to = "delivered@sim.postroad.test";
    let mut ids = Vec::new();
    for _ in 0..2 {
        let sent = world.call_as(&key, crate::world::SEND, &good_but(json!({"to": [to]}))).await;
        ids.push(sent["data"]["messages"][to]["id"].as_i64().unwrap_or_else(|| panic!("{sent}")));
    }
    let others = send_held(&world, 2, "x").await;
    world.admin(&["server", "set-hourly-limit", "dev", "1"]);
    world.call("/api/v1/suppressions/add", &json!({"address": to})).await;
    let codes = async |ids: &[i64]| {
        let released = world.call(RELEASE, &json!({"ids": ids})).await;
        let results = released["data"]["results"].as_array().unwrap_or_else(|| panic!("{released}")).clone();
        results.into_iter().map(|result| result["error"]["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(codes(&ids).await, [Value::Null, Value::Null]);
    for id in ids {
        world.until_status(id, "Sent").await;
    }
    // The released messages did not count against the limit.
    let mut others = codes(&others).await;
    others.sort_by_key(ToString::to_string);
    assert_eq!(others, [json!("HourlyLimitReached"), Value::Null]);
}

async fn held_messages_are_released_and_cancelled_by_id(world: World) {
    let ids = send_held(&world, 4, "x").await;
    let items = find_all_items(&world, &query("status:held")).await;
    assert!(items.iter().all(|item| item["held_reason"] == "credential"), "{items:?}");
    let one = world.call(RELEASE, &json!({"id": ids[0]})).await;
    assert_eq!(one["data"], json!({"results": [{"id": ids[0], "status": "done"}]}), "{one}");
    world.until_status(ids[0], "Sent").await;
    let again = world.call(RELEASE, &json!({"id": ids[0]})).await;
    assert_eq!(again["data"]["code"], "MessageNotHeld", "{again}");
    let many = world.call(CANCEL, &json!({"ids": [ids[1], ids[0], 7, ids[2]]})).await;
    let results: Vec<&Value> = many["data"]["results"].as_array().unwrap().iter().collect();
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("MessageNotHeld"), &json!("MessageNotFound"), &Value::Null]);
    assert_eq!(results.iter().map(|result| &result["id"]).collect::<Vec<_>>(), [ids[1], ids[0], 7, ids[2]]);
    world.until_status(ids[1], "HoldCancelled").await;
    assert_eq!(find_all(&world, &query("status:held")).await, [ids[3]]);
    assert_eq!(world.call(RETRY, &json!({"id": ids[3]})).await["data"]["code"], "MessageNotQueued");
}

async fn a_query_releases_the_messages_it_finds_except_those_to_suppressed_recipients(world: World) {
    let released = send_held(&world, 5, "yes").await;
    let kept = send_held(&world, 2, "no").await;
    world.call("/api/v1/suppressions/add", &json!({"address": "u0@example.com"})).await;
    let dry = world.call(RELEASE, &json!({"query": "tag:yes", "dry_run": true})).await;
    assert_eq!(dry["data"], json!({"job_id": null, "matched": 5, "matched_all": true}), "{dry}");
    assert_eq!(find_all(&world, &query("status:held")).await.len(), 7);
    let started = world.call(RELEASE, &json!({"query": "tag:yes"})).await;
    assert_eq!(started["data"]["matched"], 5, "{started}");
    let job = wait_for_job(&world, &started["data"]["job_id"]).await;
    assert_eq!(
        (&job["state"], &job["done"], &job["total"], &job["failed"]),
        (&json!("done"), &json!(5), &json!(5), &json!(1))
    );
    assert_eq!(job["errors"][0]["id"], released[0]);
    assert_eq!(job["errors"][0]["code"], "RecipientSuppressed");
    for id in &released[1..] {
        world.until_status(*id, "Sent").await;
    }
    assert_eq!(find_all(&world, &query("status:held")).await, [kept[1], kept[0], released[0]]);
}

async fn a_job_goes_on_after_a_crash(world: World) {
    let mut world = world;
    let (_, hold_key) = world.new_key(&["--hold"]);
    for batch in 0..4 {
        let mut request = batch_to((0..500).map(|number| format!("u{batch}.{number}@example.com")));
        request["defaults"]["tag"] = json!("crash");
        let answer = world.call_as(&hold_key, BATCH, &request).await;
        assert_eq!(answer["data"]["accepted"], 500, "{answer}");
    }
    let started = world.call(CANCEL, &json!({"query": "tag:crash"})).await;
    assert_eq!(started["data"]["matched"], 2_000, "{started}");
    let id = &started["data"]["job_id"];
    let done = eventually(async || {
        let job = world.call(JOB, &json!({"id": id})).await;
        let done = job["data"]["done"].clone();
        if done == 0 { Err(format!("the job has not begun: {job}")) } else { Ok(done) }
    })
    .await;
    world.crash_and_restart();
    assert!((1..2_000).contains(&done.as_i64().unwrap()), "the crash is in the middle: {done}");
    let job = wait_for_job(&world, id).await;
    assert_eq!((&job["state"], &job["failed"]), (&json!("done"), &json!(0)), "{job}");
    assert!(find_all(&world, &query("status:held")).await.is_empty());
    let cancelled = find_all(&world, &json!({"status": "hold_cancelled", "limit": 500})).await;
    assert_eq!(cancelled.len(), 2_000);
}

async fn invalid_requests_and_objects_of_another_server_are_refused(world: World) {
    let ids = send_held(&world, 1, "x").await;
    for (request, pointer) in [
        (json!({}), "/id"),
        (json!({"id": ids[0], "query": "x"}), ""),
        (json!({"ids": []}), "/ids"),
        (json!({"ids": ["x"]}), "/ids/0"),
        (json!({"ids": vec![1; 1_001]}), "/ids"),
        (json!({"id": ids[0], "dry_run": true}), "/dry_run"),
        (json!({"query": "colour:red"}), "/query"),
    ] {
        let answer = world.call(RELEASE, &request).await;
        assert_eq!(answer["status"], "parameter-error", "{answer}");
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{answer}");
    }
    let started = world.call(CANCEL, &json!({"query": "status:sent"})).await;
    assert_eq!(started["data"]["matched"], 0);
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "other", "--account", "other"]);
    let made = world.admin(&["key", "create", "--server", "other"]);
    let key = made["api_key"].as_str().unwrap();
    let foreign = world.call_as(key, JOB, &json!({"id": started["data"]["job_id"]})).await;
    assert_eq!(foreign["data"]["code"], "JobNotFound");
    let foreign = world.call_as(key, RELEASE, &json!({"id": ids[0]})).await;
    assert_eq!(foreign["data"]["code"], "MessageNotFound");
    let many = world.call_as(key, CANCEL, &json!({"ids": ids})).await;
    assert_eq!(many["data"]["results"][0]["error"]["code"], "MessageNotFound");
    let (_, reader) = world.new_key(&["--scope", "read"]);
    assert_eq!(world.call_as(&reader, RELEASE, &json!({"id": ids[0]})).await["data"]["code"], "AccessDenied");
    assert_eq!(find_all(&world, &query("status:held")).await, ids);
}
