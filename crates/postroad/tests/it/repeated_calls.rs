//! Repeated calls, and changes to objects that somebody else has changed meanwhile.

use std::collections::BTreeSet;

use postroad_testkit::{WebhookCatcher, postgres};
use serde_json::{Value, json};

use crate::accounts::{
    ACCOUNT, Key, OPERATOR, SERVER, call, call_ok, create_customer, error_code, ready_field,
};
use crate::batch::{BATCH, batch_to};
use crate::world::{Engine, World, both_engines, envelope};

both_engines!(
    an_update_with_a_wrong_if_version_is_refused,
    an_account_is_created_once_with_the_same_idempotency_key,
    the_idempotency_key_can_be_a_header_or_a_field
);

async fn an_update_with_a_wrong_if_version_is_refused(world: World) {
    let (one, operator) =
        (create_customer(&world, "one").await, (OPERATOR, ready_field(&world, "operator_api_key")));
    let account_key = (ACCOUNT, one.key.as_str());
    let cases: [(Key<'_>, &str, &str, Value); 3] = [
        (operator, "accounts/update", "accounts/get", json!({ "id": one.id })),
        (account_key, "account/update", "account/get", json!({})),
        (account_key, "credentials/update", "credentials/get", json!({"id": one.credentials[0]})),
    ];
    for (key, update, get, body) in cases {
        let seen = call_ok(&world, key, get, &body).await;
        let change = |version: i64, name: &str| {
            let mut change = body.clone();
            let more = json!({"if_version": version, "name": name});
            change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            change
        };
        let version = seen["version"].as_i64().unwrap();
        let changed = call_ok(&world, key, update, &change(version, "first")).await;
        assert_eq!(
            (&changed["name"], &changed["version"]),
            (&json!("first"), &json!(version + 1)),
            "{update}"
        );
        for stale in [version, version + 2, 0] {
            let answer = call(&world, key, update, &change(stale, "second")).await;
            assert_eq!(answer["data"]["code"], "VersionConflict", "{update} {stale}: {answer}");
        }
        assert_eq!(call_ok(&world, key, get, &body).await["name"], "first", "{update}");
        call_ok(&world, key, update, &change(version + 1, "second")).await;
    }
}

async fn an_account_is_created_once_with_the_same_idempotency_key(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let body = json!({"name": "Acme", "idempotency_key": "k1"});
    let first = call_ok(&world, operator, "accounts/create", &body).await;
    let again = call(&world, operator, "accounts/create", &body).await;
    assert_eq!((&again["data"], &again["flags"]["idempotent_replay"]), (&first, &json!(true)), "{again}");
    let other = json!({"name": "Other", "idempotency_key": "k1"});
    assert_eq!(error_code(&world, operator, "accounts/create", &other).await, "IdempotencyConflict");
    // A refused call does not use its idempotency key up.
    let taken = json!({"name": "Acme", "idempotency_key": "k2"});
    assert_eq!(error_code(&world, operator, "accounts/create", &taken).await, "AccountExists");
    let free = json!({"name": "Free", "idempotency_key": "k2"});
    call_ok(&world, operator, "accounts/create", &free).await;
    let made = call_ok(&world, operator, "accounts/list", &json!({})).await;
    assert_eq!(made["items"].as_array().unwrap().len(), 3, "{made}");
}

async fn the_idempotency_key_can_be_a_header_or_a_field(world: World) {
    let one = create_customer(&world, "one").await;
    let (account, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    let with_header = async |key: Key<'_>, name: &str, body: &Value, header: &str| {
        let (path, method) = (format!("/api/v1/{name}"), "POST".parse().unwrap());
        let headers = [key, ("Idempotency-Key", header)];
        envelope(&world.client.request(method, &path, &headers, body.to_string().into()).await.unwrap())
    };
    let calls: [(Key<'_>, &str, Value); 7] = [
        (operator, "accounts/create", json!({"name": "Acme"})),
        (account, "servers/create", json!({"name": "third"})),
        (account, "credentials/create", json!({"server": one.servers[0], "name": "x"})),
        (account, "account_keys/create", json!({"name": "x"})),
        (account, "domains/create", json!({"name": "example.net"})),
        (account, "users/invite", json!({"email": "bob@example.net"})),
        (operator, "ip_pools/create", json!({"name": "pool"})),
    ];
    for (key, name, body) in calls {
        // All calls of an account share one set of idempotency keys, so each gets a key of its own.
        let header = format!("a key for {name}");
        let first = with_header(key, name, &body, &header).await;
        assert_eq!(first["status"], "success", "{name}: {first}");
        let mut by_field = body.clone();
        by_field["idempotency_key"] = json!(header);
        for again in [with_header(key, name, &body, &header).await, call(&world, key, name, &by_field).await]
        {
            assert_eq!(again["flags"]["idempotent_replay"], true, "{name}: {again}");
            assert_eq!(again["data"]["id"], first["data"]["id"], "{name}: {again}");
        }
        let both = with_header(key, name, &by_field, "another").await;
        assert_eq!(both["data"]["code"], "ValidationError", "{name}: {both}");
    }
}

/// Renames `table` when a change of another table commits, so that statements that read `table` fail from then on.
/// `change` is written as in `CREATE TRIGGER … AFTER`.
fn rename_table_after(world: &World, change: &str, table: &str) {
    let statements = format!(
        "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN ALTER TABLE {table} RENAME TO lost; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER lose AFTER {change} DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION lose()"
    );
    postgres::run(world.database().url(), &statements);
}

/// If the call failed, nobody could get the secret later: a repetition would create another key or be refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_secret_is_shown_although_the_store_fails_right_after_the_change() {
    for name in ["credentials/create", "credentials/rotate"] {
        let world = World::start(Engine::Postgres);
        let one = create_customer(&world, "one").await;
        let body = json!({"id": one.credentials[0], "server": one.servers[0], "name": "new"});
        rename_table_after(&world, "INSERT ON credentials", "servers");
        let made = call_ok(&world, (ACCOUNT, one.key.as_str()), name, &body).await;
        assert!(made["api_key"].is_string() && made["api_secret"].is_string(), "{name}: {made}");
    }
}

/// If the call failed, a repetition would roll back one version further.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_succeeds_although_the_store_fails_right_after_the_change() {
    let world = World::start(Engine::Postgres);
    let server_key = (SERVER, world.key.as_str());
    let text =
        |text: &str| json!({"name": "t", "alias": "t", "subject": text, "plain_body": text, "publish": true});
    call_ok(&world, server_key, "templates/create", &text("one")).await;
    call_ok(&world, server_key, "templates/update", &text("two")).await;
    rename_table_after(&world, "UPDATE ON templates", "template_versions");
    let rolled_back = call_ok(&world, server_key, "templates/rollback", &json!({"alias": "t"})).await;
    assert_eq!(
        (&rolled_back["published_version"], &rolled_back["subject"]),
        (&json!(1), &json!("one")),
        "{rolled_back}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_replay_that_a_failure_of_the_store_interrupts_is_continued_by_its_cursor() {
    let world = World::start(Engine::Postgres);
    for _ in 0..2 {
        let batch = batch_to((0..500).map(|at| format!("r{at}@example.net")));
        let sent = world.call_with(BATCH, &[("X-Test-Mode", "true")], &batch).await;
        assert_eq!(sent["data"]["accepted"], 500, "{sent}");
    }
    let catcher = WebhookCatcher::start();
    let server_key = (SERVER, world.key.as_str());
    let hook =
        call_ok(&world, server_key, "webhooks/create", &json!({"url": catcher.url("/hook")})).await["id"]
            .clone();
    // Events are replayed in steps of 500; the second step fails.
    world.database().refuse_events_after(600);
    let mut range = json!({"id": hook, "since": "2020-01-01T00:00:00Z"});
    let first = call(&world, server_key, "webhooks/replay", &range).await;
    let cursor = &first["flags"]["pagination"]["next_cursor"];
    assert!(first["status"] == "success" && cursor.is_string(), "{first}");
    let replayed = first["data"]["events"].as_u64().unwrap();
    assert!((1..=500).contains(&replayed), "{replayed}");
    world.database().accept_events();
    range["cursor"] = cursor.clone();
    let rest = call_ok(&world, server_key, "webhooks/replay", &range).await["events"].as_u64().unwrap();
    assert!(replayed + rest >= 1_000, "{replayed} and {rest}");
    let posts = catcher.wait_for("/hook", usize::try_from(replayed + rest).unwrap());
    let ids: BTreeSet<&str> = posts.iter().map(|post| post.header("webhook-id").unwrap()).collect();
    assert_eq!(ids.len(), posts.len(), "each event is posted once");
}
