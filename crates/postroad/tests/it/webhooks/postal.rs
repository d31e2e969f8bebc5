//! Webhooks in Postal's format: payloads about returned mail, limits and tests.

use std::time::Duration;

use postroad_testkit::{ReceivedPost, WebhookCatcher};
use serde_json::{Value, json};

use crate::world::{World, both_engines, good_but};

both_engines!(payloads_of_bounces_limits_and_tests_are_complete);

async fn payloads_of_bounces_limits_and_tests_are_complete(world: World) {
    let catcher = WebhookCatcher::start();
    let request = json!({ "url": catcher.url("/in"), "format": "postal" });
    let webhook = world.webhooks("create", &request).await;
    let limit = world.call("/api/v1/server/update", &json!({"hourly_limit": 1})).await;
    assert_eq!(limit["status"], "success", "{limit}");
    world.accepted(&good_but(json!({"to": ["bounce-later@sim.postroad.test"]}))).await;
    world.accepted(&good_but(json!({"to": ["a@example.com", "b@example.com"]}))).await;
    world.webhooks("test", &json!({ "id": webhook["id"], "type": "message.delivered" })).await;
    let payload = |posts: &[ReceivedPost], name: &str| -> Option<Value> {
        let bodies = posts.iter().map(ReceivedPost::json);
        bodies.filter(|body| body["event"] == name).map(|body| body["payload"].clone()).next_back()
    };
    let is_complete = |posts: &[ReceivedPost]| {
        payload(posts, "MessageBounced").is_some() && payload(posts, "SendLimitExceeded").is_some()
    };
    let posts = catcher.wait_until("/in", Duration::from_secs(30), is_complete);

    let bounced = payload(&posts, "MessageBounced").unwrap();
    let bounce = &bounced["bounce"];
    let stored_bounce = world.expanded(bounce["id"].as_i64().unwrap()).await;
    let details = &stored_bounce["details"];
    assert_eq!(bounce["token"], stored_bounce["token"], "{bounced:#}");
    assert_eq!((&bounce["to"], &bounce["from"]), (&details["rcpt_to"], &details["mail_from"]));
    assert_eq!((&bounce["subject"], &bounce["message_id"]), (&details["subject"], &details["message_id"]));
    assert!(bounce["to"].as_str().unwrap().contains('@') && !bounce["subject"].as_str().unwrap().is_empty());
    assert!(bounced["test"].is_null(), "{bounced:#}");

    let exceeded = payload(&posts, "SendLimitExceeded").unwrap();
    assert_eq!(exceeded["server"]["name"], "dev", "{exceeded:#}");
    assert_eq!(exceeded["server"]["id"], limit["data"]["id"]);

    let marked_count =
        posts.iter().map(ReceivedPost::json).filter(|body| body["payload"]["test"] == true).count();
    assert_eq!(marked_count, 1, "only the sample is marked as a test");
}
