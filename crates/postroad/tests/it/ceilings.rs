//! Ceilings that the operator sets for a server, and the settings that the server's own keys may change.

use serde_json::{Value, json};

use crate::world::{SEND, World, both_engines, good};

const SERVER_GET: &str = "/api/v1/server/get";
const SERVER_UPDATE: &str = "/api/v1/server/update";

async fn server(world: &World) -> Value {
    world.call(SERVER_GET, &json!({})).await["data"].clone()
}

/// Asserts that the update is refused because of these fields, and changes nothing.
async fn assert_ceiling_exceeded(world: &World, change: Value, expected: &[(&str, &str)]) {
    let before = server(world).await;
    let answer = world.call(SERVER_UPDATE, &change).await;
    assert_eq!(
        (&answer["status"], &answer["data"]["code"]),
        (&json!("error"), &json!("CeilingExceeded")),
        "{answer}"
    );
    let errors = answer["data"]["errors"].as_array().unwrap();
    let found: Vec<(&str, &str)> = errors
        .iter()
        .map(|error| (error["pointer"].as_str().unwrap(), error["message"].as_str().unwrap()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(answer["data"]["message"], expected[0].1, "the message is that of the first error");
    assert_eq!(server(world).await, before);
}

async fn update(world: &World, change: Value) -> Value {
    let answer = world.call(SERVER_UPDATE, &change).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

both_engines!(
    a_limit_that_the_operator_set_cannot_be_lifted_by_the_server,
    a_server_that_the_operator_put_into_development_cannot_go_live_by_itself,
    a_test_key_cannot_change_the_live_server
);

async fn a_limit_that_the_operator_set_cannot_be_lifted_by_the_server(world: World) {
    let free = server(&world).await["ceilings"].clone();
    assert_eq!(
        free,
        json!({
            "mode": null, "send_rate": null, "hourly_limit": null, "retention": {"bodies_days": 30, "messages_days": 90},
        })
    );
    world.admin(&["server", "set-hourly-limit", "dev", "100"]);
    world.admin(&["server", "set-rate", "dev", "60/m"]);
    world.admin(&["server", "set-retention", "dev", "--bodies", "7"]);
    let limited = server(&world).await;
    assert_eq!((&limited["hourly_limit"], &limited["send_rate"]), (&json!(100), &json!("60/m")));
    assert_eq!(limited["retention"], json!({"bodies_days": 7, "messages_days": null}));
    assert_eq!(
        limited["ceilings"],
        json!({
            "mode": null, "send_rate": "60/m", "hourly_limit": 100, "retention": {"bodies_days": 7, "messages_days": 90},
        })
    );
    let (hourly, rate, bodies) = (
        ("/hourly_limit", "`hourly_limit` may be at most 100: the operator of the service set this ceiling"),
        ("/send_rate", "`send_rate` may be at most `60/m`: the operator of the service set this ceiling"),
        (
            "/retention/bodies_days",
            "`retention/bodies_days` may be at most 7: the operator of the service set this ceiling",
        ),
    );
    assert_ceiling_exceeded(&world, json!({"hourly_limit": 101}), &[hourly]).await;
    assert_ceiling_exceeded(&world, json!({"hourly_limit": "none", "name": "free"}), &[hourly]).await;
    assert_ceiling_exceeded(&world, json!({"send_rate": "2/s", "hourly_limit": 1}), &[rate]).await;
    let all =
        json!({"send_rate": "none", "hourly_limit": 4_294_967_295_u32, "retention": {"bodies_days": "none"}});
    assert_ceiling_exceeded(&world, all, &[rate, hourly, bodies]).await;
    let lower =
        update(&world, json!({"hourly_limit": 10, "send_rate": "1/s", "retention": {"bodies_days": 1}}))
            .await;
    assert_eq!((&lower["hourly_limit"], &lower["send_rate"]), (&json!(10), &json!("1/s")));
    assert_eq!(update(&world, json!({"hourly_limit": 100})).await["hourly_limit"], 100, "up to the ceiling");
    // A value at the ceiling moves with the ceiling; a value that the server chose itself stays.
    world.admin(&["server", "set-hourly-limit", "dev", "500"]);
    update(&world, json!({"send_rate": "10/m"})).await;
    let shown = world.admin(&["server", "set-rate", "dev", "none"]);
    assert_eq!((&shown["hourly_limit"], &shown["ceilings"]["hourly_limit"]), (&json!(500), &json!(500)));
    assert_eq!((&shown["send_rate"], &shown["ceilings"]["send_rate"]), (&json!("10/m"), &Value::Null));
    world.admin(&["server", "set-hourly-limit", "dev", "none"]);
    assert_eq!(server(&world).await["hourly_limit"], Value::Null);
    assert_eq!(
        update(&world, json!({"hourly_limit": 1_000_000, "send_rate": "none"})).await["hourly_limit"],
        1_000_000
    );
}

async fn a_server_that_the_operator_put_into_development_cannot_go_live_by_itself(world: World) {
    world.admin(&["server", "set-mode", "dev", "development"]);
    let mode = ("/mode", "`mode` may only be `development`: the operator of the service set this ceiling");
    assert_ceiling_exceeded(&world, json!({"mode": "live"}), &[mode]).await;
    assert_eq!(server(&world).await["ceilings"]["mode"], "development");
    let held = world.accepted_id(&good()).await;
    world.until_status(held, "Held").await;
    world.admin(&["server", "set-mode", "dev", "live"]);
    assert_eq!(update(&world, json!({"mode": "development"})).await["mode"], "development");
    assert_eq!(
        update(&world, json!({"mode": "live"})).await["mode"],
        "live",
        "the server can undo its own choice"
    );
    let made = world.admin(&["server", "create", "trial", "--account", "dev", "--mode", "development"]);
    assert_eq!(made["ceilings"]["mode"], "development");
}

async fn a_test_key_cannot_change_the_live_server(world: World) {
    let (_, test) = world.new_key(&["--test"]);
    let webhook =
        world.call("/api/v1/webhooks/create", &json!({"url": "http://127.0.0.1:9/hook"})).await["data"]
            .clone();
    let id = &webhook["id"];
    let cases = [
        (SERVER_UPDATE, json!({"mode": "development"})),
        ("/api/v1/webhooks/create", json!({"url": "http://127.0.0.1:9/other"})),
        ("/api/v1/webhooks/update", json!({"id": id, "enabled": false})),
        ("/api/v1/webhooks/rotate_secret", json!({"id": id})),
        ("/api/v1/webhooks/test", json!({"id": id})),
        ("/api/v1/webhooks/replay", json!({"id": id, "since": "2026-01-01T00:00:00Z"})),
        ("/api/v1/webhooks/delete", json!({"id": id})),
        ("/api/v1/suppressions/add", json!({"address": "a@example.com"})),
        ("/api/v1/suppressions/remove", json!({"address": "a@example.com"})),
        ("/api/v1/suppressions/import", json!({"csv": "a@example.com"})),
        ("/api/v1/templates/create", json!({"name": "x", "subject": "x", "html_body": "x"})),
        ("/api/v1/templates/update", json!({"id": 1})),
        ("/api/v1/templates/delete", json!({"id": 1})),
        ("/api/v1/templates/publish", json!({"id": 1})),
        ("/api/v1/templates/rollback", json!({"id": 1})),
    ];
    for (path, body) in cases {
        let answer = world.call_as(&test, path, &body).await;
        assert_eq!(answer["data"]["code"], "AccessDenied", "{path}: {answer}");
        assert!(answer["data"]["message"].as_str().unwrap().contains("test key"), "{answer}");
    }
    assert_eq!(server(&world).await["mode"], "live");
    let still_there = world.call("/api/v1/webhooks/get", &json!({"id": id})).await;
    assert_eq!(still_there["data"]["url"], webhook["url"]);
    // A test key can read, and send in test mode.
    assert_eq!(world.call_as(&test, SERVER_GET, &json!({})).await["data"]["name"], "dev");
    let sent = world.call_as(&test, SEND, &good()).await;
    assert_eq!((&sent["status"], &sent["flags"]["test_mode"]), (&json!("success"), &json!(true)));
}
