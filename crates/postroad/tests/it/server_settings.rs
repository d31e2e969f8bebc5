//! server/get and server/update, and events about a server.

use postroad_model::EventKind;
use serde_json::{Value, json};

use crate::errors::assert_invalid;
use crate::world::{SEND, World, both_engines, good, good_but};

const GET: &str = "/api/v1/server/get";
const UPDATE: &str = "/api/v1/server/update";

async fn update(world: &World, body: Value) -> Value {
    let answer = world.call(UPDATE, &body).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

/// Kind and data of the server's own events. Stops the service.
async fn server_events(world: &mut World) -> Vec<(EventKind, Value)> {
    let events = world.events_at_the_end(0).await;
    events.into_iter().map(|event| (event.kind, serde_json::from_str(&event.data).unwrap())).collect()
}

both_engines!(
    settings_are_read_and_changed,
    development_mode_holds_mail_from_the_next_message_on,
    an_exhausted_hourly_limit_is_reported_and_holds_further_messages,
    a_domain_is_reported_when_it_becomes_verified,
    invalid_settings_are_reported_by_field_and_change_nothing
);

async fn settings_are_read_and_changed(world: World) {
    let before = world.call(GET, &json!({})).await["data"].clone();
    assert_eq!(
        before,
        json!({
            "id": before["id"], "name": "dev", "mode": "live", "send_rate": null, "hourly_limit": null,
            "tracking": before["tracking"], "retention": {"bodies_days": null, "messages_days": null}, "ceilings": before["ceilings"],
            "version": 1, "created_at": before["created_at"], "updated_at": before["updated_at"],
        })
    );
    let changed = update(
        &world,
        json!({
            "name": "shop", "send_rate": "500/s", "hourly_limit": 1000,
            "tracking": {"opens": true, "excluded_hosts": ["WWW.Example.com", "www.example.com"]},
            "retention": {"bodies_days": 7, "messages_days": 30},
        }),
    )
    .await;
    assert_eq!(changed["retention"], json!({"bodies_days": 7, "messages_days": 30}));
    assert_eq!(
        (&changed["name"], &changed["send_rate"], &changed["hourly_limit"]),
        (&json!("shop"), &json!("500/s"), &json!(1000))
    );
    assert_eq!(
        (&changed["tracking"]["opens"], &changed["tracking"]["excluded_hosts"]),
        (&json!(true), &json!(["www.example.com"]))
    );
    assert_eq!(changed["tracking"]["clicks"], before["tracking"]["clicks"], "`clicks` was not given");
    assert_eq!(world.call(GET, &json!({})).await["data"], changed);
    let clearing = json!({"send_rate": "none", "hourly_limit": "none", "mode": null, "retention": {"bodies_days": "none"}});
    let cleared = update(&world, clearing).await;
    assert_eq!(cleared["retention"], json!({"bodies_days": null, "messages_days": 30}));
    assert_eq!(
        (&cleared["send_rate"], &cleared["hourly_limit"], &cleared["mode"]),
        (&Value::Null, &Value::Null, &json!("live"))
    );
    assert_eq!(cleared["name"], "shop");
    assert!(cleared["updated_at"].as_str() > before["updated_at"].as_str(), "{cleared}");
}

async fn development_mode_holds_mail_from_the_next_message_on(world: World) {
    let mut world = world;
    let first = world.accepted_id(&good()).await;
    world.until_status(first, "Sent").await;
    update(&world, json!({"mode": "development"})).await;
    let held = world.accepted_id(&good()).await;
    world.until_status(held, "Held").await;
    update(&world, json!({"mode": "live"})).await;
    let last = world.accepted_id(&good()).await;
    world.until_status(last, "Sent").await;
    let events = world.events_at_the_end(held).await;
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    let details = "The server is in development mode, so the message is held until it is released";
    assert_eq!(data, json!({"status": "Held", "details": details, "reason": "development"}));
}

async fn an_exhausted_hourly_limit_is_reported_and_holds_further_messages(world: World) {
    let mut world = world;
    update(&world, json!({"hourly_limit": 10})).await;
    // In one request, so that all are in the same hour.
    let addresses: Vec<String> = (0..12).map(|n| format!("r{n}@example.com")).collect();
    let data = world.accepted(&good_but(json!({ "to": addresses }))).await;
    let ids: Vec<i64> =
        addresses.iter().map(|address| data["messages"][address]["id"].as_i64().unwrap()).collect();
    for (n, id) in ids.iter().enumerate() {
        world.until_status(*id, if n < 10 { "Sent" } else { "Held" }).await;
    }
    let held = world.events_at_the_end(ids[11]).await;
    let data: Value = serde_json::from_str(&held[1].data).unwrap();
    assert_eq!(
        (&data["reason"], &data["details"]),
        (&json!("hourly_limit"), &json!("The hourly limit of 10 messages is reached"))
    );
    world.restart();
    let events = server_events(&mut world).await;
    let kinds: Vec<EventKind> = events.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [EventKind::SendLimitApproaching, EventKind::SendLimitExceeded]);
    for (_, data) in events {
        assert_eq!((&data["limit"], &data["volume"]), (&json!(10), &json!(12)));
        assert!(data["hour"].as_str().unwrap().ends_with(":00:00Z"), "{data}");
    }
}

async fn a_domain_is_reported_when_it_becomes_verified(world: World) {
    let mut world = world;
    world.admin(&["domain", "create", "shop.example", "--server", "dev"]);
    world.admin(&["domain", "set-verified", "shop.example", "--server", "dev"]);
    world.admin(&["domain", "set-verified", "shop.example", "--server", "dev"]);
    let events = server_events(&mut world).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (events[0].0, &events[0].1["domain"]["name"]),
        (EventKind::DomainVerified, &json!("shop.example"))
    );
    // The command also works while the service is stopped.
    world.admin(&["domain", "set-verified", "shop.example", "--server", "dev", "--no"]);
    assert_eq!(world.admin(&["domain", "records", "shop.example"])["verified"], false);
    world.admin(&["domain", "set-verified", "shop.example", "--server", "dev"]);
    assert_eq!(world.admin(&["domain", "records", "shop.example"])["verified"], true);
}

async fn invalid_settings_are_reported_by_field_and_change_nothing(world: World) {
    world.admin(&["server", "create", "other", "--account", "dev"]);
    assert_invalid(
            &world.call(UPDATE, &json!({
                "name": "", "mode": "test", "send_rate": "fast", "hourly_limit": -1, "tracking": {"excluded_hosts": ["a b"]},
                "retention": {"bodies_days": 31, "messages_days": 90},
            })).await,
            &[
                ("/name", "`name` should have 1 to 100 characters, and neither `/` nor control characters"),
                ("/mode", "`mode` should be `live` or `development`"),
                ("/send_rate", "`send_rate` should be a rate such as `10/s`, `100/m` or `1000/h`, or `none`"),
                ("/hourly_limit", "`hourly_limit` should be from 0 to 4294967295, or `none`"),
                ("/retention/bodies_days", "`retention/bodies_days` should be from 0 to 30, or `none`"),
                ("/tracking/excluded_hosts/0", "`tracking/excluded_hosts/0` is not a host name: the domain is not a valid internet domain name"),
            ],
        );
    assert_invalid(
        &world.call(UPDATE, &json!({"name": "other", "hourly_limit": 5})).await,
        &[("/name", "`name` is the name of another server of the account")],
    );
    assert_invalid(
            &world.call(UPDATE, &json!({"hourly_limit": "5", "tracking": [], "mode": true, "retention": {"bodies_days": "5"}})).await,
            &[
                ("/mode", "`mode` should be a `String` but is a `Boolean`"),
                ("/hourly_limit", "`hourly_limit` should be a `Integer` but is a `String`"),
                ("/retention/bodies_days", "`retention/bodies_days` should be a `Integer` but is a `String`"),
                ("/tracking", "`tracking` should be a `Object` but is a `Array`"),
            ],
        );
    let server = world.call(GET, &json!({"odd": 1})).await;
    assert_eq!((&server["data"]["name"], &server["data"]["hourly_limit"]), (&json!("dev"), &Value::Null));
    assert_eq!(server["flags"]["warnings"], json!(["Unknown field `odd` was ignored"]));
    let (_, read_key) = world.new_key(&["--scope", "read"]);
    assert_eq!(world.call_as(&read_key, GET, &json!({})).await["data"]["name"], "dev");
    assert_eq!(
        world.call_as(&read_key, UPDATE, &json!({"mode": "live"})).await["data"]["code"],
        "AccessDenied"
    );
    let (_, send_key) = world.new_key(&["--scope", "send"]);
    assert_eq!(world.call_as(&send_key, GET, &json!({})).await["data"]["code"], "AccessDenied");
    assert_eq!(world.call_as(&send_key, SEND, &good()).await["status"], "success");
}
