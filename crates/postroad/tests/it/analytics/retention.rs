//! Retention: old data is deleted, unfinished messages stay.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::eventually;
use serde_json::{Value, json};

use super::until_counted;
use crate::world::{Engine, MESSAGE, World, both_engines, good, good_but};

const FREQUENT_SWEEPS: (&str, &str) = ("POSTROAD_RETENTION_CHECK_EVERY", "100ms");

async fn update(world: &World, retention: Value) -> Value {
    let answer = world.call("/api/v1/server/update", &json!({ "retention": retention })).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"]["retention"].clone()
}

/// Waits until `condition` is true for the answer about a message.
async fn until_message(world: &World, id: i64, condition: impl Fn(&Value) -> bool) -> Value {
    eventually(async || {
        let answer = world.call(MESSAGE, &json!({"id": id, "_expansions": true})).await;
        if condition(&answer) {
            return Ok(answer["data"].clone());
        }
        Err(format!("{answer:#}\n{}", world.daemon.stderr_text()))
    })
    .await
}

both_engines!(a_server_with_zero_days_of_retention_loses_bodies_and_messages_but_no_counts);

async fn a_server_with_zero_days_of_retention_loses_bodies_and_messages_but_no_counts(engine: Engine) {
    let world = World::start_with(engine, &[FREQUENT_SWEEPS]);
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    world.admin(&["server", "create", "other", "--account", "dev"]);
    world.admin(&["domain", "create", "other.test", "--server", "other"]);
    world.admin(&["domain", "set-verified", "other.test", "--server", "other"]);
    let key = world.admin(&["key", "create", "--server", "other"])["api_key"].as_str().unwrap().to_owned();
    let theirs =
        world.call_as(&key, "/api/v1/send/message", &good_but(json!({"from": "a@other.test"}))).await;
    let id = world.accepted_id(&good()).await;
    world.until_status(id, "Sent").await;
    assert_eq!(
        update(&world, json!({"bodies_days": 0})).await,
        json!({"bodies_days": 0, "messages_days": null})
    );
    let message = until_message(&world, id, |answer| answer["data"]["raw_message"].is_null()).await;
    for gone in ["raw_message", "plain_body", "html_body", "headers", "attachments"] {
        assert_eq!(message.get(gone), Some(&Value::Null), "{gone}: {message:#}");
    }
    assert_eq!(
        (&message["details"]["subject"], &message["status"]["status"]),
        (&json!("Your order"), &json!("Sent"))
    );

    until_counted(&world, "sent", 1).await;
    assert_eq!(
        update(&world, json!({"messages_days": 0})).await,
        json!({"bodies_days": 0, "messages_days": 0})
    );
    let gone = until_message(&world, id, |answer| answer["status"] == "error").await;
    assert_eq!(gone["code"], "MessageNotFound");
    assert_eq!(world.call("/api/v1/events/list", &json!({})).await["data"]["items"], json!([]));
    assert_eq!(until_counted(&world, "sent", 1).await["accepted"], 1);
    // Messages that are still to be sent stay, whatever a server has set; so do messages of another server.
    let scheduled = world.accepted_id(&good_but(json!({ "send_at": tomorrow }))).await;
    let last = world.accepted_id(&good_but(json!({"to": ["last@example.com"]}))).await;
    world.until_status(last, "Sent").await;
    assert!(world.expanded(scheduled).await["raw_message"].is_string());
    let their_id = &theirs["data"]["messages"].as_object().unwrap().values().next().unwrap()["id"];
    let their_message = world.call_as(&key, MESSAGE, &json!({"id": their_id, "_expansions": true})).await;
    assert!(their_message["data"]["raw_message"].is_string(), "{their_message:#}");
}

/// Retention periods of the installation, on SQLite only: PostgreSQL removes whole weeks, which no test can wait for.
/// Tests of the store move the clock instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_bodies_are_removed_and_scheduled_messages_stay() {
    let envs = [("POSTROAD_RETENTION_BODIES", "1s"), FREQUENT_SWEEPS];
    let world = World::start_with(Engine::Sqlite, &envs);
    let id = world.accepted_id(&good()).await;
    world.until_status(id, "Sent").await;
    world.until_logged("retention sweep removed expired data").await;
    let message = eventually(async || {
        let message = world.expanded(id).await;
        if message["raw_message"].is_null() { Ok(message) } else { Err(message) }
    })
    .await;
    for gone in ["raw_message", "plain_body", "html_body", "headers", "attachments"] {
        assert_eq!(message.get(gone), Some(&Value::Null), "{gone}: {message:#}");
    }
    assert_eq!(message["details"]["subject"], "Your order");
    assert_eq!(world.deliveries(id).await.as_array().unwrap().len(), 1);

    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let scheduled = world.accepted_id(&good_but(json!({ "send_at": tomorrow }))).await;
    // Several sweeps have to pass: nothing else shows that a body is kept.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(world.expanded(scheduled).await["raw_message"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_messages_are_removed_with_their_events_and_stay_counted() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_RETENTION_MESSAGES", "1s"), FREQUENT_SWEEPS]);
    let id = world.accepted_id(&good()).await;
    let gone = until_message(&world, id, |answer| answer["status"] == "error").await;
    assert_eq!((&gone["code"], &gone["id"]), (&json!("MessageNotFound"), &json!(id)));
    assert_eq!(world.call("/api/v1/events/list", &json!({})).await["data"]["items"], json!([]));
    assert_eq!(until_counted(&world, "sent", 1).await["accepted"], 1);
}
