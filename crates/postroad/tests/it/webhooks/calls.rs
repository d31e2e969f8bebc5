//! Calls of webhooks/*: create, change, test, replay and delete webhooks.

use postroad_testkit::WebhookCatcher;
use serde_json::json;

use crate::world::{Engine, World, both_engines, good};

both_engines!(
    a_webhook_is_created_changed_rotated_and_deleted,
    invalid_values_are_refused_with_their_field,
    a_webhook_of_another_server_is_reported_as_unknown,
    a_sample_is_posted_at_once_and_an_event_is_replayed
);

async fn a_webhook_is_created_changed_rotated_and_deleted(world: World) {
    let made = world.webhooks("create", &json!({ "url": "https://example.com/hook" })).await;
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    assert_eq!(
        (&made["events"], &made["format"], &made["enabled"]),
        (&json!("all"), &json!("standard"), &json!(true))
    );
    let id = json!({ "id": made["id"] });
    assert_eq!(world.webhooks("get", &id).await.get("secret"), None, "the secret is shown once");

    let change = json!({ "id": made["id"], "events": ["message.bounced"], "enabled": false });
    let changed = world.webhooks("update", &change).await;
    assert_eq!((&changed["events"], &changed["enabled"]), (&json!(["message.bounced"]), &json!(false)));
    assert_eq!(changed["url"], made["url"]);

    let rotated = world.webhooks("rotate_secret", &id).await;
    assert_ne!(rotated["secret"], made["secret"]);
    assert!(rotated["previous_secret_until"].is_string());

    let listed = world.call("/api/v1/webhooks/list", &json!({ "limit": 1 })).await;
    assert_eq!(listed["data"]["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["flags"]["pagination"]["has_more"], false);

    assert_eq!(world.webhooks("delete", &id).await["deleted"], true);
    for action in ["get", "delete", "rotate_secret", "test", "attempts", "update"] {
        let answer = world.call(&format!("/api/v1/webhooks/{action}"), &id).await;
        assert_eq!(answer["data"]["code"], "WebhookNotFound", "{action}: {answer}");
    }
}

async fn invalid_values_are_refused_with_their_field(world: World) {
    for (body, pointer) in [
        (json!({}), "/url"),
        (json!({ "url": "ftp://example.com/" }), "/url"),
        (json!({ "url": "https://me:pw@example.com/" }), "/url"),
        (json!({ "url": "https://example.com/", "events": ["message.sent"] }), "/events/0"),
        (json!({ "url": "https://example.com/", "events": [] }), "/events"),
        (json!({ "url": "https://example.com/", "events": "some" }), "/events"),
        (json!({ "url": "https://example.com/", "format": "xml" }), "/format"),
        (
            json!({ "url": "https://example.com/", "format": "postal", "events": ["message.accepted"] }),
            "/events/0",
        ),
    ] {
        let answer = world.call("/api/v1/webhooks/create", &body).await;
        assert_eq!(answer["status"], "parameter-error", "{body}: {answer}");
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{body}: {answer}");
    }
}

async fn a_webhook_of_another_server_is_reported_as_unknown(world: World) {
    let made = world.new_webhook("https://example.com/hook", json!("all")).await;
    world.admin(&["server", "create", "other", "--account", "dev"]);
    let other = world.admin(&["key", "create", "--server", "other"]);
    let other = other["api_key"].as_str().unwrap();
    let answer = world.call_as(other, "/api/v1/webhooks/get", &json!({ "id": made["id"] })).await;
    assert_eq!(answer["data"]["code"], "WebhookNotFound");
    let (_, reader) = world.new_key(&["--scope", "read"]);
    let answer =
        world.call_as(&reader, "/api/v1/webhooks/create", &json!({ "url": "https://a.example/" })).await;
    assert_eq!(answer["data"]["code"], "AccessDenied");
}

async fn a_sample_is_posted_at_once_and_an_event_is_replayed(world: World) {
    let catcher = WebhookCatcher::start();
    let webhook = world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    let attempt = world.webhooks("test", &json!({ "id": webhook["id"], "type": "message.bounced" })).await;
    assert_eq!((&attempt["success"], &attempt["status"]), (&json!(true), &json!(200)), "{attempt}");
    let sample = catcher.wait_for("/in", 1).remove(0).json();
    assert_eq!((&sample["type"], &sample["data"]["test"]), (&json!("message.bounced"), &json!(true)));

    world.accepted(&good()).await;
    let first = catcher.wait_for("/in", 2).remove(1);
    assert_eq!(first.json()["type"], "message.accepted");
    let replayed =
        world.webhooks("replay", &json!({ "id": webhook["id"], "event_id": first.json()["id"] })).await;
    assert_eq!(replayed["events"], 1);
    let again = catcher.wait_for("/in", 3).remove(2);
    assert_eq!(again.body, first.body);
    let range = json!({ "id": webhook["id"], "since": "2020-01-01T00:00:00Z" });
    assert_eq!(world.webhooks("replay", &range).await["events"], 1);
    assert_eq!(catcher.wait_for("/in", 4)[3].body, first.body);
    let answer =
        world.call("/api/v1/webhooks/replay", &json!({ "id": webhook["id"], "event_id": "evt_1" })).await;
    assert_eq!(answer["data"]["code"], "EventNotFound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_has_no_more_webhooks_than_allowed() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_WEBHOOKS_PER_SERVER", "2")]);
    for _ in 0..2 {
        world.new_webhook("https://example.com/hook", json!("all")).await;
    }
    let answer = world.call("/api/v1/webhooks/create", &json!({ "url": "https://example.com/hook" })).await;
    assert_eq!(answer["data"]["code"], "TooManyWebhooks", "{answer}");
}
