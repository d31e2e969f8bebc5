//! messages/retry: messages that wait for their next attempt are tried now, one by one, by list and by query.

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::find_all;
use super::holds::wait_for_job;
use crate::delivery::outside::Outside;
use crate::world::{Engine, both_engines, good_but};

const RETRY: &str = "/api/v1/messages/retry";

both_engines!(
    messages_are_retried_by_id_by_list_and_by_query,
    scheduled_messages_are_not_retried_before_their_time
);

async fn scheduled_messages_are_not_retried_before_their_time(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    let later = crate::scheduling::in_millis(7_200_000);
    let id = world
        .accepted_id(&good_but(json!({"to": ["ann@shop.example"], "send_at": later, "tag": "later"})))
        .await;
    let refused = world.call(RETRY, &json!({"id": id})).await;
    assert_eq!(refused["data"]["code"], "MessageNotQueued", "{refused}");
    let started = world.call(RETRY, &json!({"query": "tag:later"})).await;
    assert_eq!(started["data"]["matched"], 0, "{started}");
    wait_for_job(&world, &started["data"]["job_id"]).await;
    assert_eq!(world.expanded(id).await["status"]["status"], "Scheduled");
    assert!(peer.messages().is_empty());
    // The operator can send it at once.
    world.queue(&["retry", &id.to_string()]);
    world.until_status(id, "Sent").await;
}

async fn messages_are_retried_by_id_by_list_and_by_query(engine: Engine) {
    let outside = Outside::new();
    let full = Answer::reply("452 4.2.2 The mailbox is full");
    let peer = outside.site("shop.example", Script::new().first(6, Stage::RcptTo, full));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let mut ids = Vec::new();
    for number in 0..6 {
        let tag = if number < 3 { "single" } else { "query" };
        let body = good_but(json!({"to": [format!("u{number}@shop.example")], "tag": tag}));
        ids.push(world.accepted_id(&body).await);
    }
    for id in &ids {
        world.until_status(*id, "SoftFail").await;
    }
    assert!(peer.messages().is_empty());
    let one = world.call(RETRY, &json!({"id": ids[0]})).await;
    assert_eq!(one["data"], json!({"results": [{"id": ids[0], "status": "done"}]}), "{one}");
    let deliveries = world.until_status(ids[0], "Sent").await;
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    assert_eq!(world.call(RETRY, &json!({"id": ids[0]})).await["data"]["code"], "MessageNotQueued");

    let some = world.call(RETRY, &json!({"ids": [ids[1], 7, ids[2]]})).await;
    let results = some["data"]["results"].as_array().unwrap_or_else(|| panic!("{some}"));
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("MessageNotFound"), &Value::Null]);
    world.until_status(ids[1], "Sent").await;
    world.until_status(ids[2], "Sent").await;
    assert_eq!(find_all(&world, &json!({"status": "soft_fail"})).await, [ids[5], ids[4], ids[3]]);

    let started = world.call(RETRY, &json!({"query": "tag:query"})).await;
    assert_eq!(started["data"]["matched"], 3, "{started}");
    let job = wait_for_job(&world, &started["data"]["job_id"]).await;
    assert_eq!(
        (&job["state"], &job["done"], &job["failed"]),
        (&json!("done"), &json!(3), &json!(0)),
        "{job}"
    );
    for id in &ids[3..] {
        world.until_status(*id, "Sent").await;
    }
    assert_eq!(peer.messages().len(), 6, "each once");
}
