//! Updates with the values that an object has already: its version stays, and the audit log gets no entry.

use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, Key, OPERATOR, SERVER, call, call_ok, create_customer, ready_field};
use crate::world::{World, both_engines};

both_engines!(updates_with_equal_values_leave_version_and_audit_log_as_they_are);

/// All versions and times of changes in an answer.
fn versions(answer: &Value) -> Vec<Value> {
    match answer {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match name.as_str() {
                "version" | "updated_at" => vec![value.clone()],
                _ => versions(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(versions).collect(),
        _ => Vec::new(),
    }
}

/// Number of entries in the audit logs of the account and of the installation.
async fn count_entries(world: &World, operator: Key<'_>, account: &Value) -> usize {
    let mut count = 0;
    for account in [account, &json!(0)] {
        let log = call_ok(world, operator, "account/audit", &json!({"account": account, "limit": 500})).await;
        count += log["items"].as_array().unwrap().len();
    }
    count
}

fn with_id(id: &Value, fields: Value) -> Value {
    let mut body = fields;
    body["id"] = id.clone();
    body
}

async fn updates_with_equal_values_leave_version_and_audit_log_as_they_are(world: World) {
    let one = create_customer(&world, "one").await;
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let (account, server) = ((ACCOUNT, one.key.as_str()), (SERVER, one.server_keys[0].as_str()));
    let id = &one.servers[0];
    world.admin(&["user", "create", "olga@one.example", "--account", "one", "--role", "owner"]);
    world.admin(&["user", "create", "ann@one.example", "--account", "one"]);
    let people = call_ok(&world, account, "users/list", &json!({"email": "ann@one.example"})).await;
    let ann = people["items"][0]["id"].clone();
    let webhook = json!({"url": "https://hooks.example/in", "events": ["domain.verified"]});
    let webhook = call_ok(&world, server, "webhooks/create", &webhook).await["id"].clone();
    let template = json!({"alias": "hello", "name": "Hello", "subject": "Hi", "plain_body": "Hi"});
    let template = call_ok(&world, server, "templates/create", &template).await["id"].clone();
    let pool =
        call_ok(&world, operator, "ip_pools/create", &json!({"name": "pool", "account": one.id})).await;
    let address = json!({"pool": pool["id"], "address": "192.0.2.1", "helo": "mail1.example.com"});
    call_ok(&world, operator, "ip_pools/add_address", &address).await;

    let settings = json!({
        "name": "store",
        "send_rate": "100/m",
        "hourly_limit": 500,
        "tracking": {"opens": true, "clicks": true, "excluded_hosts": ["a.example"]},
        "retention": {"bodies_days": 3, "messages_days": 5},
    });
    let ceilings = json!({"ceilings": {"send_rate": "200/m", "hourly_limit": 900, "mode": "live"}});
    let updates = [
        (account, "servers/update", with_id(id, settings.clone())),
        (account, "servers/update", with_id(id, ceilings.clone())),
        (operator, "servers/update", with_id(id, ceilings)),
        (account, "servers/update", with_id(id, json!({"ip_pool": pool["id"], "mode": "development"}))),
        (account, "servers/update", with_id(id, json!({"ip_pool": "none", "send_rate": "50/m"}))),
        (server, "server/update", settings),
        (server, "server/update", json!({"name": "shop", "hourly_limit": 400, "tracking": {"opens": false}})),
        (account, "servers/suspend", with_id(id, json!({"reason": "spam"}))),
        (operator, "servers/suspend", with_id(id, json!({"reason": "spam"}))),
        (operator, "servers/resume", json!({ "id": id })),
        (
            account,
            "credentials/update",
            with_id(&one.credentials[0], json!({"name": "site", "allow": ["127.0.0.0/8"], "hold": true})),
        ),
        (
            account,
            "credentials/update",
            with_id(&one.credentials[0], json!({"expires_at": "2099-01-01T00:00:00Z"})),
        ),
        (account, "credentials/update", with_id(&one.credentials[0], json!({"expires_at": "none"}))),
        (account, "credentials/revoke", json!({ "id": one.credentials[1] })),
        (account, "account/update", json!({"name": "acme"})),
        (
            operator,
            "accounts/update",
            with_id(&one.id, json!({"name": "one", "ceilings": {"servers": 5, "send_rate": "10/s"}})),
        ),
        (operator, "accounts/update", with_id(&one.id, json!({"ceilings": {"servers": "none"}}))),
        (operator, "accounts/suspend", with_id(&one.id, json!({"reason": "unpaid"}))),
        (operator, "accounts/resume", json!({ "id": one.id })),
        (account, "users/update", with_id(&ann, json!({"name": "Ann", "role": "admin"}))),
        (operator, "users/update", with_id(&ann, json!({"operator": true}))),
        (
            server,
            "webhooks/update",
            with_id(
                &webhook,
                json!({"url": "https://hooks.example/new", "events": "all", "format": "postal"}),
            ),
        ),
        (server, "webhooks/update", with_id(&webhook, json!({"enabled": false}))),
        (server, "webhooks/update", with_id(&webhook, json!({"enabled": true}))),
        (server, "templates/update", with_id(&template, json!({"name": "Hey", "new_alias": "hey"}))),
        (
            server,
            "templates/update",
            with_id(
                &template,
                json!({"subject": "Hey", "html_body": "<p>{{ name }}</p>", "sample_model": {"name": "A"}}),
            ),
        ),
        (
            operator,
            "ip_pools/update_address",
            json!({"address": "192.0.2.1", "helo": "mail2.example.com", "weight": 7}),
        ),
    ];
    for (key, name, body) in updates {
        let before = count_entries(&world, operator, &one.id).await;
        let first = call_ok(&world, key, name, &body).await;
        let after = count_entries(&world, operator, &one.id).await;
        assert_eq!(after, before + 1, "{name} {body}");
        let again = call_ok(&world, key, name, &body).await;
        assert!(!versions(&first).is_empty(), "{name}: {first}");
        assert_eq!(versions(&again), versions(&first), "{name} {body}: {first} {again}");
        assert_eq!(count_entries(&world, operator, &one.id).await, after, "{name} {body}");
    }
    // An old version is refused, even with equal values.
    for (key, name, body) in [
        (account, "servers/update", with_id(id, json!({"name": "shop", "if_version": 1}))),
        (server, "server/update", json!({"name": "shop", "if_version": 1})),
        (account, "credentials/update", with_id(&one.credentials[0], json!({"hold": true, "if_version": 1}))),
        (server, "webhooks/update", with_id(&webhook, json!({"enabled": true, "if_version": 1}))),
    ] {
        let refused = call(&world, key, name, &body).await;
        assert_eq!(refused["data"]["code"], "VersionConflict", "{name}: {refused}");
    }
}
