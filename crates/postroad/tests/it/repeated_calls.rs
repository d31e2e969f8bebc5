//! Repeated calls, and changes to objects that somebody else has changed meanwhile.

use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, Key, OPERATOR, call, code, create_customer, done, ready};
use crate::world::{World, both_engines, envelope};

both_engines!(
    a_change_of_another_version_is_refused,
    an_account_is_created_once_with_the_same_idempotency_key,
    the_idempotency_key_can_be_a_header_or_a_field
);

async fn a_change_of_another_version_is_refused(world: World) {
    let (one, operator) =
        (create_customer(&world, "one").await, (OPERATOR, ready(&world, "operator_api_key")));
    let by = (ACCOUNT, one.key.as_str());
    let cases: [(Key<'_>, &str, &str, Value); 3] = [
        (operator, "accounts/update", "accounts/get", json!({ "id": one.id })),
        (by, "account/update", "account/get", json!({})),
        (by, "credentials/update", "credentials/get", json!({"id": one.credentials[0]})),
    ];
    for (key, update, get, body) in cases {
        let seen = done(&world, key, get, &body).await;
        let change = |version: i64, name: &str| {
            let mut change = body.clone();
            let more = json!({"if_version": version, "name": name});
            change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            change
        };
        let version = seen["version"].as_i64().unwrap();
        let changed = done(&world, key, update, &change(version, "first")).await;
        assert_eq!(
            (&changed["name"], &changed["version"]),
            (&json!("first"), &json!(version + 1)),
            "{update}"
        );
        for stale in [version, version + 2, 0] {
            let answer = call(&world, key, update, &change(stale, "second")).await;
            assert_eq!(answer["data"]["code"], "VersionConflict", "{update} {stale}: {answer}");
        }
        assert_eq!(done(&world, key, get, &body).await["name"], "first", "{update}");
        done(&world, key, update, &change(version + 1, "second")).await;
    }
}

async fn an_account_is_created_once_with_the_same_idempotency_key(world: World) {
    let operator = (OPERATOR, ready(&world, "operator_api_key"));
    let body = json!({"name": "Acme", "idempotency_key": "k1"});
    let first = done(&world, operator, "accounts/create", &body).await;
    let again = call(&world, operator, "accounts/create", &body).await;
    assert_eq!((&again["data"], &again["flags"]["idempotent_replay"]), (&first, &json!(true)), "{again}");
    let other = json!({"name": "Other", "idempotency_key": "k1"});
    assert_eq!(code(&world, operator, "accounts/create", &other).await, "IdempotencyConflict");
    // A refused call does not use its key up.
    let taken = json!({"name": "Acme", "idempotency_key": "k2"});
    assert_eq!(code(&world, operator, "accounts/create", &taken).await, "AccountExists");
    let free = json!({"name": "Free", "idempotency_key": "k2"});
    done(&world, operator, "accounts/create", &free).await;
    let made = done(&world, operator, "accounts/list", &json!({})).await;
    assert_eq!(made["items"].as_array().unwrap().len(), 3, "{made}");
}

async fn the_idempotency_key_can_be_a_header_or_a_field(world: World) {
    let one = create_customer(&world, "one").await;
    let (account, operator) = ((ACCOUNT, one.key.as_str()), (OPERATOR, ready(&world, "operator_api_key")));
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
        // All calls of an account share its idempotency keys.
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
