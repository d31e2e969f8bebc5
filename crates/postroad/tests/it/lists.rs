//! Lists of accounts, servers, keys, people and audit entries: page by page, by their filters, and without deleted
//! objects.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, Key, OPERATOR, call, call_ok, create_customer, error_code, ready_field};
use crate::signing_in::{PASSWORD, Visitor, join};
use crate::world::{World, both_engines};

both_engines!(
    the_pages_of_every_list_together_have_each_item_once,
    lists_are_filtered_by_state_and_time,
    credentials_of_deleted_servers_are_not_listed,
    credentials_are_listed_by_name,
    customers_can_filter_the_audit_log_by_actor_unless_it_is_the_operator
);

fn with(body: &Value, more: &Value) -> Value {
    let mut body = body.clone();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// All items of a list, in pages of one item.
async fn one_by_one(world: &World, key: Key<'_>, name: &str, body: &Value) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = call(world, key, name, &with(body, &json!({"limit": 1, "cursor": cursor}))).await;
        assert_eq!(page["status"], "success", "{name}: {page}");
        items.extend(page["data"]["items"].as_array().unwrap().iter().cloned());
        let pagination = &page["flags"]["pagination"];
        assert_eq!(pagination["limit"], 1, "{name}: {page}");
        assert_eq!(pagination["has_more"], !pagination["next_cursor"].is_null(), "{name}: {page}");
        cursor = pagination["next_cursor"].clone();
        if cursor.is_null() {
            return items;
        }
        assert!(items.len() < 100, "{name} does not end");
    }
}

async fn the_pages_of_every_list_together_have_each_item_once(world: World) {
    let (one, operator) =
        (create_customer(&world, "one").await, (OPERATOR, ready_field(&world, "operator_api_key")));
    create_customer(&world, "other").await;
    let account_key = (ACCOUNT, one.key.as_str());
    for number in 0..3 {
        let (key, pool) =
            (json!({"name": format!("key {number}")}), json!({"name": format!("pool {number}")}));
        call_ok(&world, account_key, "account_keys/create", &key).await;
        call_ok(&world, operator, "ip_pools/create", &with(&pool, &json!({"account": one.id}))).await;
        let email = format!("{number}@one.example");
        world.admin(&["user", "create", &email, "--account", "one"]);
        call_ok(&world, account_key, "users/invite", &json!({"email": format!("{number}@new.example")}))
            .await;
        call_ok(&world, account_key, "domains/create", &json!({"name": format!("d{number}.example")})).await;
    }
    join(&world, "ann@example.com").await;
    for _ in 0..2 {
        Visitor::at(&world, [127, 0, 0, 1]).sign_in("ann@example.com", PASSWORD).await;
    }
    let dev = (ACCOUNT, ready_field(&world, "account_api_key"));
    let people = call_ok(&world, dev, "users/list", &json!({"email": "ann@example.com"})).await;
    let ann = json!({"id": people["items"][0]["id"]});
    let none = json!({});
    let lists = [
        (operator, "accounts/list", &none, 3),
        (operator, "servers/list", &none, 5),
        (operator, "credentials/list", &none, 5),
        (operator, "ip_pools/list", &none, 3),
        (operator, "users/list", &none, 5),
        (account_key, "servers/list", &none, 2),
        (account_key, "credentials/list", &none, 2),
        (account_key, "account_keys/list", &none, 4),
        (account_key, "users/list", &none, 3),
        (account_key, "users/invitations", &none, 3),
        (account_key, "ip_pools/list", &none, 3),
        (account_key, "domains/list", &none, 3),
        (account_key, "account/audit", &none, 20),
        (dev, "users/sessions", &ann, 3),
    ];
    for (key, name, body, least) in lists {
        let whole = call_ok(&world, key, name, &with(body, &json!({"limit": 100}))).await["items"].clone();
        let parts = one_by_one(&world, key, name, body).await;
        // Only ids are compared, because the last use of a key is recorded a moment later.
        let ids = |items: &[Value]| -> Vec<Value> {
            items
                .iter()
                .map(|item| item.get("id").or(item.get("seq")).or(item.get("name")).cloned().unwrap())
                .collect()
        };
        assert_eq!(ids(&parts), ids(whole.as_array().unwrap()), "{name}");
        assert!(parts.len() >= least, "{name}: {}", parts.len());
        let strange = with(body, &json!({"cursor": "!"}));
        assert_eq!(error_code(&world, key, name, &strange).await, "ValidationError", "{name}");
    }
}

async fn lists_are_filtered_by_state_and_time(world: World) {
    let (one, operator) =
        (create_customer(&world, "one").await, (OPERATOR, ready_field(&world, "operator_api_key")));
    let account_key = (ACCOUNT, one.key.as_str());
    let names = async |key: Key<'_>, name: &str, body: Value| -> Vec<String> {
        let items = call_ok(&world, key, name, &body).await["items"].clone();
        items.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    call_ok(&world, account_key, "servers/suspend", &json!({"id": one.servers[1], "reason": "holiday"}))
        .await;
    for (is_suspended, found) in [(true, "news"), (false, "shop")] {
        let body = json!({ "suspended": is_suspended });
        assert_eq!(names(account_key, "servers/list", body).await, [found]);
    }
    let debtor = create_customer(&world, "debtor").await;
    call_ok(&world, operator, "accounts/suspend", &json!({"id": debtor.id, "reason": "unpaid"})).await;
    assert_eq!(names(operator, "accounts/list", json!({"suspended": true})).await, ["debtor"]);
    assert_eq!(names(operator, "accounts/list", json!({"suspended": false})).await, ["dev", "one"]);
    call_ok(&world, operator, "accounts/delete", &json!({"id": debtor.id})).await;
    assert_eq!(names(operator, "accounts/list", json!({"deleted": true})).await, ["debtor"]);

    let middle = SystemClock.now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    call_ok(&world, account_key, "servers/resume", &json!({"id": one.servers[1]})).await;
    let count = async |body: Value| {
        call_ok(&world, account_key, "account/audit", &body).await["items"].as_array().unwrap().len()
    };
    let all = count(json!({"limit": 100})).await;
    let at = middle.to_rfc3339();
    assert_eq!(count(json!({ "since": at })).await, 1);
    assert_eq!(count(json!({"until": at, "limit": 100})).await, all - 1);
    assert_eq!(count(json!({"since": at, "until": at})).await, 0);
    assert_eq!(count(json!({"subject": "credential"})).await, 2);
    assert_eq!(count(json!({"subject": "server", "subject_id": one.servers[1]})).await, 3);
    assert_eq!(count(json!({"subject": "domain"})).await, 0);
}

async fn credentials_of_deleted_servers_are_not_listed(world: World) {
    let (one, other) = (create_customer(&world, "one").await, create_customer(&world, "other").await);
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    // A call that names a server and an account means the server of that account.
    let body = json!({"server": one.servers[0], "account": one.id});
    for key in [account_key, operator] {
        let found = call_ok(&world, key, "credentials/list", &body).await;
        assert_eq!(found["items"][0]["id"], one.credentials[0]);
    }
    let body = json!({"server": one.servers[0], "account": other.id});
    assert_eq!(error_code(&world, operator, "credentials/list", &body).await, "ServerNotFound");
    assert_eq!(error_code(&world, account_key, "credentials/list", &body).await, "AccountNotFound");

    let ids = async |key: Key<'_>, body: Value| -> Vec<Value> {
        let found = call_ok(&world, key, "credentials/list", &body).await["items"].clone();
        found.as_array().unwrap().iter().map(|credential| credential["id"].clone()).collect()
    };
    call_ok(&world, account_key, "servers/delete", &json!({"id": one.servers[1]})).await;
    assert_eq!(ids(account_key, json!({})).await, [one.credentials[0].clone()]);
    assert_eq!(ids(operator, json!({"account": one.id})).await, [one.credentials[0].clone()]);
    assert!(!ids(operator, json!({})).await.contains(&one.credentials[1]));
    let listed = world.admin(&["key", "list"]);
    assert!(listed.as_array().unwrap().iter().all(|key| key["id"] != one.credentials[1]), "{listed}");
    call_ok(&world, account_key, "servers/restore", &json!({"id": one.servers[1]})).await;
    assert_eq!(ids(account_key, json!({})).await, one.credentials);
}

async fn credentials_are_listed_by_name(world: World) {
    let (one, other) = (create_customer(&world, "one").await, create_customer(&world, "other").await);
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    let old = json!({"server": one.servers[0], "name": "old"});
    let old = call_ok(&world, account_key, "credentials/create", &old).await["id"].clone();
    call_ok(&world, account_key, "credentials/revoke", &json!({ "id": old })).await;
    let ids = async |key: Key<'_>, body: Value| -> Vec<Value> {
        let items = one_by_one(&world, key, "credentials/list", &body).await;
        items.iter().map(|item| item["id"].clone()).collect()
    };
    assert_eq!(ids(account_key, json!({"name": "web"})).await, one.credentials);
    assert_eq!(
        ids(account_key, json!({"name": "web", "server": one.servers[1]})).await,
        one.credentials[1..]
    );
    assert_eq!(ids(account_key, json!({"name": "old"})).await, std::slice::from_ref(&old));
    assert_eq!(ids(account_key, json!({"name": "old", "revoked": false})).await, [] as [Value; 0]);
    assert_eq!(ids(account_key, json!({"name": "we"})).await, [] as [Value; 0]);
    assert_eq!(ids(operator, json!({"name": "web", "account": other.id})).await, other.credentials);
    assert_eq!(
        ids(operator, json!({"name": "web"})).await,
        [&one.credentials[..], &other.credentials[..]].concat()
    );
}

/// Ids that the log hides from customers cannot be found out by filtering for them.
async fn customers_can_filter_the_audit_log_by_actor_unless_it_is_the_operator(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    call_ok(&world, operator, "servers/suspend", &json!({"id": one.servers[0], "reason": "spam"})).await;
    let seen = async |key: Key<'_>, id: &Value, more: Value| -> Vec<(Value, Value)> {
        let body = with(&json!({"account": one.id, "actor_id": id}), &more);
        let items = one_by_one(&world, key, "account/audit", &body).await;
        assert!(items.iter().all(|item| item["actor_id"] == *id), "{items:?}");
        items.into_iter().map(|item| (item["actor"].clone(), item["operation"].clone())).collect()
    };
    let own = seen(account_key, &one.account_key_id, json!({})).await;
    assert_eq!(own.len(), 4, "two servers and two credentials: {own:?}");
    assert_eq!(seen(operator, &one.account_key_id, json!({"actor": "account_key"})).await, own);
    let created = seen(account_key, &one.account_key_id, json!({"operation": "servers/create"})).await;
    assert_eq!(created, vec![(json!("account_key"), json!("servers/create")); 2]);
    let log = call_ok(&world, operator, "account/audit", &json!({"account": one.id, "limit": 1})).await;
    let operator_key = &log["items"][0]["actor_id"];
    assert!(operator_key.is_i64(), "{log}");
    let by_operator = seen(operator, operator_key, json!({"actor": "operator_key"})).await;
    assert_eq!(by_operator[0].1, "servers/suspend");
    assert_eq!(seen(account_key, operator_key, json!({"actor": "operator_key"})).await, []);
    let lines =
        world.audit_output(&["export", "--account", "one", "--actor-id", &operator_key.to_string()]).1;
    assert_eq!(lines.lines().count(), by_operator.len(), "{lines}");
}
