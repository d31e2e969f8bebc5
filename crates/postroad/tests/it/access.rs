//! API keys: suspended servers, revoked and expired keys, scopes, networks. No key is stored or logged in clear text.

use std::time::Duration;

use postroad_model::{Clock, SystemClock};
use postroad_testkit::eventually;
use postroad_testkit::http::Client;
use serde_json::{Value, json};

use crate::accounts::{OPERATOR, call_ok, ready_field};
use crate::world::{DELIVERIES, MESSAGE, RAW, SEND, World, both_engines, good};

/// Sends a message with the key; returns whether the key was refused.
async fn is_key_refused(world: &World, key: &str) -> bool {
    let answer = world.call_as(key, SEND, &good()).await;
    let is_refused = answer["data"]["code"] == "InvalidServerAPIKey";
    if is_refused {
        assert_eq!(answer["status"], "error");
        assert_eq!(answer["data"]["token"], key);
        assert_eq!(answer["data"]["message"], "The API token provided in X-Server-API-Key was not valid.");
    } else {
        assert_eq!(answer["status"], "success", "{answer}");
    }
    is_refused
}

both_engines!(
    calls_of_a_suspended_server_are_refused_until_it_is_resumed,
    mail_of_a_suspended_server_waits_until_it_is_resumed,
    a_revoked_key_is_refused,
    an_expired_key_is_refused,
    a_key_works_only_from_its_networks,
    a_key_does_only_what_its_scope_allows,
    a_rotated_key_works_during_its_grace_period,
    keys_are_in_no_log_file_or_table_in_clear_text,
    answers_to_wrong_keys_are_delayed_and_answers_to_valid_keys_are_not,
    last_use_of_a_key_is_recorded
);

async fn calls_of_a_suspended_server_are_refused_until_it_is_resumed(world: World) {
    let suspended = json!({"code": "ServerSuspended", "message": "The mail server has been suspended"});
    world.admin(&["server", "suspend", "dev", "--reason", "unpaid"]);
    for path in [SEND, RAW, MESSAGE, DELIVERIES] {
        let answer = world.call(path, &good()).await;
        assert_eq!(answer["status"], "error");
        assert_eq!(answer["data"], suspended);
    }
    world.admin(&["server", "resume", "dev"]);
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
    world.admin(&["account", "suspend", "dev", "--reason", "abuse"]);
    assert_eq!(world.call(SEND, &good()).await["data"], suspended);
    world.admin(&["account", "resume", "dev"]);
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
}

async fn mail_of_a_suspended_server_waits_until_it_is_resumed(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let servers = call_ok(&world, operator, "servers/list", &json!({"name": "dev"})).await["items"].clone();
    let accounts = call_ok(&world, operator, "accounts/list", &json!({"name": "dev"})).await["items"].clone();
    for (group, id) in [("servers", &servers[0]["id"]), ("accounts", &accounts[0]["id"])] {
        world.queue(&["suspend", "everything", "--reason", "to have some waiting"]);
        let message = world.accepted_id(&good()).await;
        let suspend = json!({"id": id, "reason": "unpaid"});
        call_ok(&world, operator, &format!("{group}/suspend"), &suspend).await;
        world.queue(&["resume", "everything"]);
        world.apply_changes();
        let why = world.queue(&["show", &message.to_string()])["why"].as_str().unwrap_or_default().to_owned();
        assert!(why.contains("suspended"), "{group}: {why}");
        call_ok(&world, operator, &format!("{group}/resume"), &json!({ "id": id })).await;
        world.until_status(message, "Sent").await;
    }
}

async fn a_revoked_key_is_refused(world: World) {
    let (id, key) = world.new_key(&[]);
    assert!(!is_key_refused(&world, &key).await);
    world.admin(&["key", "revoke", &id.to_string()]);
    assert!(is_key_refused(&world, &key).await);
}

async fn an_expired_key_is_refused(world: World) {
    let soon = SystemClock.now().plus(Duration::from_secs(4));
    let (_, key) = world.new_key(&["--expires-at", &soon.to_rfc3339()]);
    assert!(!is_key_refused(&world, &key).await);
    eventually(async || {
        if SystemClock.now() < soon { Err("the time at which the key expires has not come") } else { Ok(()) }
    })
    .await;
    assert!(is_key_refused(&world, &key).await);
}

async fn a_key_works_only_from_its_networks(world: World) {
    let (_, elsewhere) = world.new_key(&["--allow", "192.0.2.0/24"]);
    assert!(is_key_refused(&world, &elsewhere).await);
    let (_, here) = world.new_key(&["--allow", "192.0.2.0/24", "--allow", "127.0.0.1"]);
    assert!(!is_key_refused(&world, &here).await);
    // `X-Forwarded-For` counts only if it comes from a known proxy.
    let forged = [("X-Server-API-Key", elsewhere.as_str()), ("X-Forwarded-For", "192.0.2.7")];
    let reply = world
        .client
        .request("POST".parse().unwrap(), SEND, &forged, good().to_string().into())
        .await
        .unwrap();
    assert_eq!(reply.json()["data"]["code"], "InvalidServerAPIKey");
}

async fn a_key_does_only_what_its_scope_allows(world: World) {
    let (_, sender) = world.new_key(&["--scope", "send"]);
    let (_, reader) = world.new_key(&["--scope", "read"]);
    let sent = world.call_as(&sender, SEND, &good()).await;
    assert_eq!(sent["status"], "success");
    let id = json!({"id": sent["data"]["messages"]["someone@example.com"]["id"]});
    for (key, path, body) in [(&sender, MESSAGE, &id), (&reader, SEND, &good())] {
        let answer = world.call_as(key, path, body).await;
        assert_eq!(answer["status"], "error");
        assert_eq!(answer["data"]["code"], "AccessDenied");
        assert!(!answer["data"]["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(world.call_as(&reader, MESSAGE, &id).await["status"], "success");
}

async fn a_rotated_key_works_during_its_grace_period(world: World) {
    let (id, old) = world.new_key(&["--scope", "send"]);
    let made = world.admin(&["key", "rotate", &id.to_string(), "--grace", "1h"]);
    let new = made["api_key"].as_str().unwrap();
    assert_ne!(new, old);
    assert_eq!(made["scope"], "send");
    assert!(!is_key_refused(&world, &old).await);
    assert!(!is_key_refused(&world, new).await);
    let (success, _, error) = world.admin_output(&["key", "rotate", &id.to_string()]);
    assert!(!success && error.contains("was replaced by key"), "{error}");
    let id = made["id"].as_i64().unwrap().to_string();
    let again = world.admin(&["key", "rotate", &id, "--grace", "0s"]);
    assert!(is_key_refused(&world, new).await);
    assert!(!is_key_refused(&world, again["api_key"].as_str().unwrap()).await);
}

async fn keys_are_in_no_log_file_or_table_in_clear_text(world: World) {
    let mut world = world;
    let made = world.admin(&["key", "create", "--server", "dev"]);
    let secrets: Vec<String> = ["api_key", "api_secret"]
        .iter()
        .flat_map(|name| [&world.daemon.ready()[*name], &made[*name]])
        .map(|value| value.as_str().unwrap().to_owned())
        .chain(["a-key-that-is-wrong".to_owned()])
        .collect();
    // Requests with both API keys and with the wrong one, so that they can get into the log.
    for key in [&secrets[0], &secrets[1], &secrets[4]] {
        world.call_as(key, SEND, &good()).await;
    }
    let status = world.daemon.terminate();
    assert!(status.success(), "{status}");
    let log = world.daemon.stderr_text();
    assert!(log.contains("/api/v1/send/message"), "requests are logged: {log}");
    assert!(!log.contains("someone@example.com") && !log.contains("Your order"), "{log}");
    let mut places = vec![("the log".to_owned(), log.into_bytes())];
    if let Some(text) = world.database_text() {
        assert!(text.contains("credentials: ") && text.contains("someone@example.com"), "rows were read");
        places.push(("the database".to_owned(), text.into_bytes()));
    }
    let mut folders = vec![world.data_dir()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                places.push((path.display().to_string(), std::fs::read(path).unwrap()));
            }
        }
    }
    for secret in &secrets {
        let hex = secret.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().concat();
        for (place, bytes) in &places {
            let is_found = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!is_found(secret) && !is_found(&hex), "a key or secret is in {place}");
        }
    }
}

async fn answers_to_wrong_keys_are_delayed_and_answers_to_valid_keys_are_not(world: World) {
    // Sent before the measurement: on PostgreSQL, the first message of a week also creates partitions.
    world.accepted(&good()).await;
    for _ in 0..50 {
        assert!(is_key_refused(&world, "guess").await);
    }
    let begun = std::time::Instant::now();
    assert!(is_key_refused(&world, "guess").await);
    assert!(begun.elapsed() >= Duration::from_millis(900), "the 51st guess was answered at once");
    let begun = std::time::Instant::now();
    let client = Client::new(world.daemon.ready()["url"].as_str().unwrap());
    let reply = client.post_json(SEND, Some(&world.key), &good()).await.unwrap();
    assert_eq!(reply.json()["status"], "success");
    assert!(begun.elapsed() < Duration::from_millis(900), "the answer to a valid key was delayed");
}

async fn last_use_of_a_key_is_recorded(world: World) {
    let (id, key) = world.new_key(&["--name", "used"]);
    assert!(!is_key_refused(&world, &key).await);
    let last_used_at = |world: &World| {
        let keys = world.admin(&["key", "list"]);
        let found = keys.as_array().unwrap().iter().find(|key| key["id"] == id).cloned();
        found.unwrap()["last_used_at"].clone()
    };
    eventually(async || match last_used_at(&world) {
        Value::Null => Err("the key's use is not recorded"),
        _ => Ok(()),
    })
    .await;
}
