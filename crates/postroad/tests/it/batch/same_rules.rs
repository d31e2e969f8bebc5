//! Messages of a batch are treated in the same way as single sends.

use std::time::Duration;

use postroad_model::{Clock, SystemClock};
use serde_json::{Value, json};

use super::{BATCH, batch_to, defaults, id_of, send_batch};
use crate::world::{World, both_engines};

both_engines!(
    suppressed_scheduled_and_templated_messages_are_treated_as_single_sends,
    the_hourly_limit_counts_the_messages_of_a_batch,
    a_batch_in_test_mode_is_recorded_and_not_delivered
);

async fn suppressed_scheduled_and_templated_messages_are_treated_as_single_sends(world: World) {
    let template = json!({
        "alias": "hello", "name": "Hello", "publish": true, "subject": "Hello {{ name }}", "html_body": "<p>{{ name }}</p>",
    });
    assert_eq!(world.call("/api/v1/templates/create", &template).await["status"], "success");
    let suppressed = json!({"address": "gone@example.net", "reason": "hard_bounce"});
    assert_eq!(world.call("/api/v1/suppressions/add", &suppressed).await["status"], "success");
    let later = SystemClock.now().plus(Duration::from_hours(1)).to_rfc3339();
    let data = send_batch(&world, &json!({
            "defaults": {"from": "shop@example.test", "template": {"alias": "hello", "model": {"name": "you"}}},
            "messages": [
                {"to": ["a@example.net"]},
                {"to": ["gone@example.net", "b@example.net"]},
                {"to": ["c@example.net"], "send_at": later},
                {"to": ["d@example.net"], "template": {"alias": "hello", "model": {"nam": "Ann"}}},
                {"to": ["e@example.net"], "template": {"alias": "unknown", "model": {}}},
                {"to": ["f@example.net"], "template": {"alias": "hello", "model": {"name": "<Ann>"}}},
            ],
        })).await;
    let results = data["results"].as_array().unwrap();
    assert_eq!((&data["accepted"], &data["rejected"]), (&json!(4), &json!(2)));
    world.until_status(id_of(&results[0]), "Sent").await;
    world.until_status(results[1]["messages"]["gone@example.net"]["id"].as_i64().unwrap(), "Held").await;
    world.until_status(results[1]["messages"]["b@example.net"]["id"].as_i64().unwrap(), "Sent").await;
    world.until_status(id_of(&results[2]), "Scheduled").await;
    let missing = &results[3]["error"];
    assert_eq!(
        (&missing["code"], &missing["variable"], &missing["did_you_mean"]),
        (&json!("TemplateVariableMissing"), &json!("name"), &json!("nam"))
    );
    assert_eq!(results[4]["error"]["errors"][0]["pointer"], "/messages/4/template");
    let escaped = world.expanded(id_of(&results[5])).await;
    assert_eq!(escaped["html_body"].as_str().unwrap().trim_end(), "<p>&lt;Ann&gt;</p>");
    assert_eq!(escaped["details"]["subject"], "Hello <Ann>");
}

async fn the_hourly_limit_counts_the_messages_of_a_batch(world: World) {
    world.admin(&["server", "set-hourly-limit", "dev", "3"]);
    let data = send_batch(&world, &batch_to((0..5).map(|number| format!("r{number}@example.net")))).await;
    for (at, status) in ["Sent", "Sent", "Sent", "Held", "Held"].into_iter().enumerate() {
        world.until_status(id_of(&data["results"][at]), status).await;
    }
}

async fn a_batch_in_test_mode_is_recorded_and_not_delivered(world: World) {
    let answer =
        world.call_with(BATCH, &[("X-Test-Mode", "True")], &batch_to(["a@example.net".to_owned()])).await;
    assert_eq!((&answer["status"], &answer["flags"]), (&json!("success"), &json!({"test_mode": true})));
    let id = id_of(&answer["data"]["results"][0]);
    let message = world.expanded(id).await;
    assert_eq!((&message["details"]["test"], &message["status"]["status"]), (&json!(true), &json!("Sent")));
    assert_eq!(world.deliveries(id).await[0]["details"], "Test mode: validated, not delivered");
    let (_, key) = world.new_key(&["--test"]);
    let answer = world.call_as(&key, BATCH, &batch_to(["a@example.net".to_owned()])).await;
    assert_eq!(answer["flags"], json!({"test_mode": true}));
    let (_, key) = world.new_key(&["--scope", "read"]);
    let answer =
        world.call_as(&key, BATCH, &json!({"defaults": defaults(), "messages": [Value::Null]})).await;
    assert_eq!(answer["data"]["code"], "AccessDenied");
}
