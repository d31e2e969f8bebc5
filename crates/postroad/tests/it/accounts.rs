//! Account and operator keys: their operations, the objects they see, and the audit log of their changes.

use std::collections::BTreeSet;

use postroad_model::{Clock as _, SystemClock, Timestamp};
use postroad_testkit::eventually;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use crate::delivery::outside::{Outside, to};
use crate::world::{Engine, World, both_engines, envelope, good_but, program};

/// Key of a caller: the name of its header, and the key.
pub(crate) type Key<'a> = (&'a str, &'a str);

pub(crate) const ACCOUNT: &str = "X-Account-API-Key";
pub(crate) const OPERATOR: &str = "X-Operator-API-Key";
pub(crate) const SERVER: &str = "X-Server-API-Key";

/// Calls an endpoint; returns the whole answer.
pub(crate) async fn call(world: &World, key: Key<'_>, name: &str, body: &Value) -> Value {
    let (path, method) = (format!("/api/v1/{name}"), "POST".parse().expect("a method"));
    let reply = world.client.request(method, &path, &[key], body.to_string().into()).await;
    envelope(&reply.expect("the service answers"))
}

/// Calls an endpoint, which succeeds; returns the data of its answer.
pub(crate) async fn call_ok(world: &World, key: Key<'_>, name: &str, body: &Value) -> Value {
    let answer = call(world, key, name, body).await;
    assert_eq!(answer["status"], "success", "{name} {body}: {answer}");
    answer["data"].clone()
}

/// Calls an endpoint, which fails; returns the code of its error.
pub(crate) async fn error_code(world: &World, key: Key<'_>, name: &str, body: &Value) -> String {
    let answer = call(world, key, name, body).await;
    assert_ne!(answer["status"], "success", "{name} {body}: {answer}");
    answer["data"]["code"].as_str().expect("a code").to_owned()
}

/// A field of the ready line.
pub(crate) fn ready_field<'a>(world: &'a World, name: &str) -> &'a str {
    world.daemon.ready()[name].as_str().expect("the ready line has it")
}

/// An account with two servers and a key for each.
pub(crate) struct Customer {
    pub(crate) id: Value,
    pub(crate) key: String,
    pub(crate) account_key_id: Value,
    pub(crate) servers: Vec<Value>,
    pub(crate) credentials: Vec<Value>,
    pub(crate) server_keys: Vec<String>,
}

/// Creates an account and its key as the operator, and two servers with their keys by the account's key.
pub(crate) async fn create_customer(world: &World, name: &str) -> Customer {
    let operator = (OPERATOR, ready_field(world, "operator_api_key"));
    let id = call_ok(world, operator, "accounts/create", &json!({ "name": name })).await["id"].clone();
    let made = call_ok(world, operator, "account_keys/create", &json!({"account": id, "name": "main"})).await;
    let key = made["api_key"].as_str().expect("a key").to_owned();
    let (mut servers, mut credentials, mut server_keys) = (Vec::new(), Vec::new(), Vec::new());
    for server in ["shop", "news"] {
        let account_key = (ACCOUNT, key.as_str());
        let server =
            call_ok(world, account_key, "servers/create", &json!({ "name": server })).await["id"].clone();
        let body = json!({"server": server, "name": "web"});
        let credential = call_ok(world, account_key, "credentials/create", &body).await;
        servers.push(server);
        credentials.push(credential["id"].clone());
        server_keys.push(credential["api_key"].as_str().expect("a key").to_owned());
    }
    Customer { id, key, account_key_id: made["id"].clone(), servers, credentials, server_keys }
}

/// Everything that a customer's account key shows about the account, its servers and its keys.
pub(crate) async fn account_view(world: &World, customer: &Customer) -> Value {
    let account_key = (ACCOUNT, customer.key.as_str());
    let mut shown = Vec::new();
    for list in ["servers/list", "credentials/list", "account_keys/list", "account/get", "account/audit"] {
        shown.push(call_ok(world, account_key, list, &json!({})).await);
    }
    // The last use of a key is recorded a moment later.
    for list in &mut shown {
        for item in list["items"].as_array_mut().into_iter().flatten() {
            item.as_object_mut().expect("an object").remove("last_used_at");
        }
    }
    shown.into()
}

/// Every call about an object of the customer, with the error code for a missing object.
fn calls_about(customer: &Customer) -> Vec<(&'static str, Value, &'static str)> {
    let (server, credential) = (&customer.servers[0], &customer.credentials[0]);
    let mut calls = vec![
        ("servers/update", json!({"id": server, "name": "taken over"}), "ServerNotFound"),
        ("servers/suspend", json!({"id": server, "reason": "x"}), "ServerNotFound"),
        ("credentials/create", json!({"server": server, "name": "x"}), "ServerNotFound"),
        ("credentials/list", json!({ "server": server }), "ServerNotFound"),
        ("credentials/update", json!({"id": credential, "hold": true}), "CredentialNotFound"),
        ("account_keys/revoke", json!({"id": customer.account_key_id}), "AccountKeyNotFound"),
        ("account/update", json!({"account": customer.id, "name": "taken over"}), "AccountNotFound"),
        ("servers/create", json!({"account": customer.id, "name": "x"}), "AccountNotFound"),
        ("account_keys/create", json!({"account": customer.id, "name": "x"}), "AccountNotFound"),
    ];
    for name in ["servers/get", "servers/resume", "servers/delete", "servers/restore"] {
        calls.push((name, json!({ "id": server }), "ServerNotFound"));
    }
    for name in ["credentials/get", "credentials/revoke", "credentials/rotate"] {
        calls.push((name, json!({ "id": credential }), "CredentialNotFound"));
    }
    for name in ["account/get", "account/usage", "account/audit", "servers/list", "credentials/list"] {
        calls.push((name, json!({ "account": customer.id }), "AccountNotFound"));
    }
    calls
}

both_engines!(
    nothing_of_another_account_is_seen_or_changed,
    every_change_leaves_one_audit_entry_and_refusals_leave_none,
    changes_of_a_servers_own_objects_leave_one_audit_entry_each,
    servers_and_accounts_are_deleted_and_restored_at_the_command_line,
    keys_may_do_only_what_their_scopes_allow,
    creating_again_with_the_same_idempotency_key_creates_nothing,
    an_update_by_a_server_key_is_refused_if_the_version_has_changed,
    changes_of_messages_leave_one_audit_entry_each,
    a_single_retry_leaves_one_audit_entry,
    an_account_can_take_a_used_name_and_does_not_learn_that_it_is_used,
    customers_do_not_learn_who_the_operator_is,
    a_suspension_by_the_operator_after_one_by_the_account_for_the_same_reason_is_recorded,
    only_the_operator_sets_the_networks_of_an_address_key,
    nothing_is_changed_in_a_deleted_account,
    account_keys_are_listed_by_name_and_state,
    the_command_line_renames_accounts_and_servers_and_changes_keys,
    the_key_in_the_environment_is_used_unless_the_profile_option_is_given,
    a_deleted_server_is_gone_until_it_is_restored
);

async fn nothing_of_another_account_is_seen_or_changed(world: World) {
    let (one, other) = (create_customer(&world, "one").await, create_customer(&world, "other").await);
    let before = account_view(&world, &other).await;
    let nobody = Customer {
        id: json!(999_999),
        key: String::new(),
        account_key_id: json!(999_999),
        servers: vec![json!(999_999)],
        credentials: vec![json!(999_999)],
        server_keys: Vec::new(),
    };
    for ((name, foreign, expected), (_, unknown, _)) in
        calls_about(&other).into_iter().zip(calls_about(&nobody))
    {
        // With the key of another account, the object seems not to exist.
        let account_key = (ACCOUNT, one.key.as_str());
        let answer = call(&world, account_key, name, &foreign).await;
        assert_eq!(answer["data"]["code"], expected, "{name}: {answer}");
        assert_eq!(answer["data"], call(&world, account_key, name, &unknown).await["data"], "{name}");
        // Keys of servers, foreign and own, may not make these calls.
        for key in [&one.server_keys[0], &other.server_keys[0]] {
            assert_eq!(error_code(&world, (SERVER, key), name, &foreign).await, "AccessDenied", "{name}");
        }
        // An account key is not accepted as an operator key, nor an operator key as an account key.
        assert_eq!(error_code(&world, (OPERATOR, &one.key), name, &foreign).await, "InvalidOperatorAPIKey");
        let operator = ready_field(&world, "operator_api_key");
        assert_eq!(error_code(&world, (ACCOUNT, operator), name, &foreign).await, "InvalidAccountAPIKey");
    }
    for name in ["accounts/create", "accounts/list", "accounts/get", "accounts/suspend", "accounts/delete"] {
        let body = json!({"id": other.id, "name": "x", "reason": "x"});
        assert_eq!(error_code(&world, (ACCOUNT, &one.key), name, &body).await, "AccessDenied", "{name}");
    }
    let listed = call_ok(&world, (ACCOUNT, &one.key), "servers/list", &json!({})).await;
    let ids: BTreeSet<String> =
        listed["items"].as_array().unwrap().iter().map(|server| server["id"].to_string()).collect();
    assert_eq!(ids, one.servers.iter().map(ToString::to_string).collect());
    assert_eq!(account_view(&world, &other).await, before);
}

async fn every_change_leaves_one_audit_entry_and_refusals_leave_none(world: World) {
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    let (server, credential) = (&one.servers[0], &one.credentials[0]);
    let changes = [
        ("servers/update", json!({"id": server, "hourly_limit": 100, "tracking": {"opens": true}})),
        ("servers/suspend", json!({"id": server, "reason": "holiday"})),
        ("servers/resume", json!({ "id": server })),
        ("credentials/update", json!({"id": credential, "hold": true})),
        ("credentials/rotate", json!({"id": credential, "grace_s": 60})),
        ("credentials/revoke", json!({ "id": credential })),
        ("account_keys/create", json!({"name": "second", "scopes": ["read"]})),
        ("account/update", json!({"name": "renamed"})),
        ("servers/delete", json!({ "id": server })),
        ("servers/restore", json!({ "id": server })),
    ];
    for (name, body) in &changes {
        call_ok(&world, account_key, name, body).await;
    }
    // Changes by the server's own key, and by the operator at the command line.
    let server_key = (SERVER, one.server_keys[1].as_str());
    call_ok(&world, server_key, "server/update", &json!({"mode": "development"})).await;
    world.admin(&["server", "set-hourly-limit", "renamed/news", "500"]);
    // Refusals, and changes that change nothing, leave no entry.
    for (name, body, expected) in [
        ("servers/update", json!({"id": server, "name": "news"}), "ServerExists"),
        ("servers/update", json!({"id": server, "if_version": 1, "name": "late"}), "VersionConflict"),
        ("servers/create", json!({"name": "7"}), "ValidationError"),
        ("credentials/rotate", json!({ "id": credential }), "CredentialEnded"),
    ] {
        assert_eq!(error_code(&world, account_key, name, &body).await, expected, "{name}");
    }
    let beyond = json!({"hourly_limit": 501});
    assert_eq!(error_code(&world, server_key, "server/update", &beyond).await, "CeilingExceeded");
    call_ok(&world, account_key, "servers/resume", &json!({ "id": server })).await;

    let log = call_ok(&world, account_key, "account/audit", &json!({"limit": 100})).await;
    let entries = log["items"].as_array().unwrap();
    let mut names: Vec<&str> = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    names.reverse();
    let mut expected = vec!["accounts/create", "account_keys/create"];
    expected.extend(["servers/create", "credentials/create", "servers/create", "credentials/create"]);
    expected.extend(changes.iter().map(|(name, _)| *name));
    expected.extend(["server/update", "servers/update"]);
    assert_eq!(names, expected);
    let seqs: Vec<i64> = entries.iter().map(|entry| entry["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=names.len() as i64).rev().collect::<Vec<_>>());
    let update = &entries[entries.len() - 7];
    assert_eq!(update["operation"], "servers/update");
    assert_eq!((&update["subject"], &update["subject_id"]), (&json!("server"), server));
    assert_eq!((&update["actor"], &update["actor_id"]), (&json!("account_key"), &one.account_key_id));
    assert_eq!(update["address"], "127.0.0.1");
    assert_eq!(update["before"]["hourly_limit"], Value::Null);
    assert_eq!(update["after"]["hourly_limit"], 100);
    assert_eq!((&entries[0]["actor"], &entries[0]["address"]), (&json!("command_line"), &Value::Null));
    assert_eq!(entries[1]["actor"], "server_key");
    let text = log.to_string();
    assert!(one.server_keys.iter().chain([&one.key]).all(|key| !text.contains(key.as_str())));

    let only = json!({"operation": "servers/update", "actor": "account_key"});
    assert_eq!(
        call_ok(&world, account_key, "account/audit", &only).await["items"].as_array().unwrap().len(),
        1
    );
    let (success, out, err) = world.audit_output(&["verify"]);
    assert!(success, "{err}");
    let verdict: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(verdict["whole"], true);
}

async fn changes_of_a_servers_own_objects_leave_one_audit_entry_each(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, server_key) = ((ACCOUNT, one.key.as_str()), (SERVER, one.server_keys[0].as_str()));
    let before =
        call_ok(&world, account_key, "account/audit", &json!({"limit": 1})).await["items"][0]["seq"].clone();
    let webhook = json!({"url": "https://hooks.example/in", "events": ["message.delivered"]});
    let webhook = call_ok(&world, server_key, "webhooks/create", &webhook).await;
    let id = &webhook["id"];
    let other = json!({"id": id, "if_version": 1, "url": "https://hooks.example/other"});
    assert_eq!(call_ok(&world, server_key, "webhooks/update", &other).await["version"], 2);
    assert_eq!(error_code(&world, server_key, "webhooks/update", &other).await, "VersionConflict");
    call_ok(&world, server_key, "webhooks/rotate_secret", &json!({ "id": id })).await;
    call_ok(&world, server_key, "webhooks/delete", &json!({ "id": id })).await;
    let template = json!({"name": "Hello", "subject": "Hi", "plain_body": "Hi {{ name }}"});
    let template = call_ok(&world, server_key, "templates/create", &template).await["id"].clone();
    call_ok(&world, server_key, "templates/publish", &json!({ "id": template })).await;
    let hello = json!({"id": template, "if_version": 1, "subject": "Hello"});
    assert_eq!(call_ok(&world, server_key, "templates/update", &hello).await["latest_version"], 2);
    assert_eq!(error_code(&world, server_key, "templates/update", &hello).await, "VersionConflict");
    call_ok(&world, server_key, "templates/delete", &json!({ "id": template })).await;
    let addresses =
        json!({"items": [{"address": "a@example.com"}, {"address": "b@example.com"}, {"address": "no"}]});
    call(&world, server_key, "suppressions/add", &addresses).await;
    call_ok(&world, server_key, "suppressions/remove", &json!({"address": "a@example.com"})).await;
    // Refusals, and changes that change nothing, leave no entry.
    for (name, body) in [
        ("webhooks/create", json!({"url": "not a url"})),
        ("webhooks/delete", json!({ "id": id })),
        ("templates/create", json!({"name": "Bad", "subject": "{{", "plain_body": "x"})),
        ("templates/publish", json!({ "id": template })),
        ("suppressions/remove", json!({"address": "nobody@example.com"})),
    ] {
        error_code(&world, server_key, name, &body).await;
    }
    call_ok(&world, server_key, "suppressions/add", &json!({"address": "b@example.com"})).await;

    let log = call_ok(&world, account_key, "account/audit", &json!({"limit": 100})).await["items"].clone();
    let entries: Vec<&Value> =
        log.as_array().unwrap().iter().rev().skip(before.as_u64().unwrap() as usize).collect();
    let names: Vec<&str> = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "webhooks/create",
            "webhooks/update",
            "webhooks/rotate_secret",
            "webhooks/delete",
            "templates/create",
            "templates/publish",
            "templates/update",
            "templates/delete",
            "suppressions/add",
            "suppressions/remove"
        ]
    );
    assert!(entries.iter().all(|entry| entry["actor"] == "server_key" && entry["address"] == "127.0.0.1"));
    assert_eq!((&entries[0]["before"], &entries[0]["subject_id"]), (&Value::Null, id));
    assert_eq!(entries[1]["after"]["url"], "https://hooks.example/other");
    assert_eq!((&entries[3]["after"], &entries[7]["after"]), (&Value::Null, &Value::Null));
    assert_eq!(entries[3]["before"], entries[2]["after"], "as it was before the deletion");
    assert_eq!(entries[3]["before"]["enabled"], true);
    assert_eq!(entries[5]["after"]["published"], 1);
    assert_eq!((&entries[8]["after"]["added"], &entries[9]["after"]["removed"]), (&json!(2), &json!(1)));
    let text = log.to_string();
    assert!(!text.contains("whsec_") && !text.contains("b@example.com"), "{text}");

    // The export has the same entries as JSON lines, oldest first. It can be filtered.
    let (success, out, err) = world.audit_output(&["export", "--account", "one"]);
    assert!(success, "{err}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), log.as_array().unwrap().len());
    assert_eq!(
        lines.iter().map(|line| line["seq"].as_i64().unwrap()).collect::<Vec<_>>(),
        (1..=lines.len() as i64).collect::<Vec<_>>()
    );
    let (_, out, _) =
        world.audit_output(&["export", "--account", "one", "--subject", "webhook", "--after", "7"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(world.audit_output(&["verify"]).0);
}

async fn servers_and_accounts_are_deleted_and_restored_at_the_command_line(world: World) {
    let one = create_customer(&world, "one").await;
    let server_key = (SERVER, one.server_keys[0].as_str());
    assert!(world.admin(&["server", "delete", "one/shop"])["delete_at"].is_string());
    assert_eq!(error_code(&world, server_key, "server/get", &json!({})).await, "ServerSuspended");
    assert!(!world.admin_output(&["server", "delete", "one/shop"]).0, "it is deleted already");
    assert!(world.admin(&["server", "restore", "one/shop"])["delete_at"].is_null());
    call_ok(&world, server_key, "server/get", &json!({})).await;
    assert!(world.admin(&["account", "delete", "one"])["delete_at"].is_string());
    assert_eq!(error_code(&world, server_key, "server/get", &json!({})).await, "ServerSuspended");
    world.admin(&["account", "restore", "one"]);
    call_ok(&world, server_key, "server/get", &json!({})).await;
}

async fn keys_may_do_only_what_their_scopes_allow(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    let limited = json!({"name": "limited", "scopes": ["servers", "credentials:read"]});
    let limited = call_ok(&world, account_key, "account_keys/create", &limited).await;
    let key = (ACCOUNT, limited["api_key"].as_str().unwrap());
    call_ok(&world, key, "servers/update", &json!({"id": one.servers[0], "name": "new"})).await;
    call_ok(&world, key, "credentials/list", &json!({})).await;
    for (name, body) in [
        ("credentials/create", json!({"server": one.servers[0], "name": "x"})),
        ("account/get", json!({})),
        ("account_keys/create", json!({"name": "x"})),
    ] {
        assert_eq!(error_code(&world, key, name, &body).await, "AccessDenied", "{name}");
    }
    // A key creates no key that may do more than itself.
    let maker = json!({"name": "maker", "scopes": ["account_keys"]});
    let maker = call_ok(&world, account_key, "account_keys/create", &maker).await;
    let maker = (ACCOUNT, maker["api_key"].as_str().unwrap());
    assert_eq!(
        error_code(&world, maker, "account_keys/create", &json!({"name": "x"})).await,
        "ValidationError"
    );
    call_ok(&world, account_key, "account_keys/revoke", &json!({"id": limited["id"]})).await;
    assert_eq!(error_code(&world, key, "servers/list", &json!({})).await, "InvalidAccountAPIKey");
    call_ok(&world, operator, "accounts/suspend", &json!({"id": one.id, "reason": "unpaid"})).await;
    assert_eq!(error_code(&world, account_key, "servers/list", &json!({})).await, "AccountSuspended");
    let server_key = (SERVER, one.server_keys[0].as_str());
    assert_eq!(error_code(&world, server_key, "server/get", &json!({})).await, "ServerSuspended");
    call_ok(&world, operator, "accounts/resume", &json!({"id": one.id})).await;
    call_ok(&world, account_key, "servers/list", &json!({})).await;
    // The operator's ceilings bind the account's keys.
    let cap = json!({"id": one.servers[0], "ceilings": {"hourly_limit": 10}});
    let capped = call_ok(&world, operator, "servers/update", &cap).await;
    assert_eq!((&capped["hourly_limit"], &capped["ceilings"]["hourly_limit"]), (&json!(10), &json!(10)));
    let beyond = json!({"id": one.servers[0], "hourly_limit": 11});
    assert_eq!(error_code(&world, account_key, "servers/update", &beyond).await, "CeilingExceeded");
    let made = world.admin(&["operator-key", "create", "--scope", "read"]);
    let reading = (OPERATOR, made["api_key"].as_str().unwrap());
    call_ok(&world, reading, "accounts/list", &json!({})).await;
    assert_eq!(error_code(&world, reading, "accounts/create", &json!({"name": "x"})).await, "AccessDenied");
}

async fn creating_again_with_the_same_idempotency_key_creates_nothing(world: World) {
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    let server = json!({"name": "third", "idempotency_key": "k1"});
    let first = call(&world, account_key, "servers/create", &server).await;
    let again = call(&world, account_key, "servers/create", &server).await;
    assert_eq!(first["data"]["id"], again["data"]["id"]);
    assert_eq!(again["flags"]["idempotent_replay"], true);
    let other = json!({"name": "fourth", "idempotency_key": "k1"});
    assert_eq!(error_code(&world, account_key, "servers/create", &other).await, "IdempotencyConflict");
    let credential = json!({"server": one.servers[0], "name": "x", "idempotency_key": "k2"});
    let first = call_ok(&world, account_key, "credentials/create", &credential).await;
    let again = call_ok(&world, account_key, "credentials/create", &credential).await;
    assert_eq!(first["id"], again["id"]);
    assert!(first["api_key"].is_string() && again["api_key"].is_null(), "shown once");
    let key = json!({"name": "once", "idempotency_key": "k3"});
    let (first, again) = (
        call_ok(&world, account_key, "account_keys/create", &key).await,
        call(&world, account_key, "account_keys/create", &key).await,
    );
    assert_eq!((&first["id"], &again["flags"]["idempotent_replay"]), (&again["data"]["id"], &json!(true)));
    assert!(first["api_key"].is_string() && again["data"]["api_key"].is_null(), "shown once");
    let other = json!({"name": "other", "idempotency_key": "k3"});
    assert_eq!(error_code(&world, account_key, "account_keys/create", &other).await, "IdempotencyConflict");
    // Objects of a server; a sister server may use the same idempotency keys.
    let (server_key, sister) = ((SERVER, one.server_keys[0].as_str()), (SERVER, one.server_keys[1].as_str()));
    let webhook = json!({"url": "https://hooks.example/in", "idempotency_key": "k1"});
    let template =
        json!({"name": "Hi", "subject": "hi", "plain_body": "hi", "publish": true, "idempotency_key": "k2"});
    for (name, body) in [("webhooks/create", &webhook), ("templates/create", &template)] {
        let first = call(&world, server_key, name, body).await;
        let again = call(&world, server_key, name, body).await;
        assert!(
            first["data"]["id"].is_i64() && first["data"]["id"] == again["data"]["id"],
            "{name}: {first} {again}"
        );
        assert_eq!(
            (&first["flags"]["idempotent_replay"], &again["flags"]["idempotent_replay"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(name == "webhooks/create", first["data"]["secret"].is_string(), "{first}");
        assert!(again["data"]["secret"].is_null(), "shown once: {again}");
        let of_sister = call(&world, sister, name, body).await;
        assert!(
            of_sister["flags"]["idempotent_replay"].is_null() && of_sister["status"] == "success",
            "{of_sister}"
        );
        let mut other = body.clone();
        let field = if name == "webhooks/create" { "url" } else { "name" };
        other[field] = json!("https://hooks.example/other");
        assert_eq!(error_code(&world, server_key, name, &other).await, "IdempotencyConflict", "{name}");
        let list = name.replace("create", "list");
        assert_eq!(
            call_ok(&world, server_key, &list, &json!({})).await["items"].as_array().unwrap().len(),
            1,
            "{list}"
        );
    }
    // An expiry time can be set and removed.
    let ends = json!({"id": one.credentials[0], "expires_at": "2099-01-01T00:00:00Z"});
    assert!(call_ok(&world, account_key, "credentials/update", &ends).await["expires_at"].is_string());
    let endless = json!({"id": one.credentials[0], "expires_at": "none"});
    assert!(call_ok(&world, account_key, "credentials/update", &endless).await["expires_at"].is_null());
    let wrong = json!({"id": one.credentials[0], "expires_at": "never"});
    assert_eq!(error_code(&world, account_key, "credentials/update", &wrong).await, "ValidationError");
    // The pages together list every item once.
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = call(&world, account_key, "servers/list", &json!({"limit": 1, "cursor": cursor})).await;
        names.extend(page["data"]["items"].as_array().unwrap().iter().map(|item| item["name"].clone()));
        cursor = page["flags"]["pagination"]["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(names, ["shop", "news", "third"].map(Value::from));
}

async fn an_update_by_a_server_key_is_refused_if_the_version_has_changed(world: World) {
    let one = create_customer(&world, "one").await;
    let server_key = (SERVER, one.server_keys[0].as_str());
    let version =
        call_ok(&world, server_key, "server/get", &json!({})).await["version"].as_i64().expect("a version");
    let changed =
        call_ok(&world, server_key, "server/update", &json!({"hourly_limit": 5, "if_version": version}))
            .await;
    assert_eq!((&changed["hourly_limit"], &changed["version"]), (&json!(5), &json!(version + 1)));
    let late = json!({"hourly_limit": 6, "if_version": version});
    assert_eq!(error_code(&world, server_key, "server/update", &late).await, "VersionConflict");
    assert_eq!(call_ok(&world, server_key, "server/get", &json!({})).await, changed);
    // The account sees the same version.
    let account_key = (ACCOUNT, one.key.as_str());
    let seen = call_ok(&world, account_key, "servers/get", &json!({"id": one.servers[0]})).await;
    assert_eq!(seen["version"], changed["version"]);
}

/// Entries of the account's audit log, oldest first, without the first `skipped` ones.
async fn entries_after(world: &World, key: Key<'_>, skipped: usize) -> Vec<Value> {
    let log = call_ok(world, key, "account/audit", &json!({"limit": 200})).await;
    log["items"].as_array().unwrap().iter().rev().skip(skipped).cloned().collect()
}

async fn changes_of_messages_leave_one_audit_entry_each(world: World) {
    let account_key = (ACCOUNT, ready_field(&world, "account_api_key"));
    let server_key = (SERVER, world.key.as_str());
    let before = entries_after(&world, account_key, 0).await.len();
    let (_, holding) = world.new_key(&["--hold"]);
    let holding = (SERVER, holding.as_str());
    let send = async |key: Key<'_>, fields: Value| {
        let sent = call_ok(&world, key, "send/message", &good_but(fields)).await;
        sent["messages"].as_object().unwrap().values().next().unwrap()["id"].clone()
    };
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(send(holding, json!({})).await);
    }
    let mut scheduled = Vec::new();
    for _ in 0..2 {
        scheduled.push(send(server_key, json!({"send_at": time_in(3_600)})).await);
    }
    for _ in 0..3 {
        send(server_key, json!({"send_at": time_in(3_600), "tag": "tagged"})).await;
    }
    call_ok(&world, server_key, "messages/release", &json!({ "id": held[0] })).await;
    world.until_status(held[0].as_i64().unwrap(), "Sent").await;
    call_ok(&world, server_key, "messages/cancel_hold", &json!({ "ids": [held[1], held[1]] })).await;
    call_ok(&world, server_key, "send/reschedule", &json!({"id": scheduled[0], "send_at": time_in(7_200)}))
        .await;
    call_ok(&world, server_key, "send/cancel", &json!({ "id": scheduled[0] })).await;
    let refused = error_code(&world, server_key, "messages/retry", &json!({ "id": scheduled[1] })).await;
    assert_eq!(refused, "MessageNotQueued");
    call_ok(&world, server_key, "send/cancel", &json!({"tag": "tagged"})).await;
    call_ok(&world, server_key, "messages/erase", &json!({ "id": held[2] })).await;
    let cancelled = world.queue(&["cancel", &held[3].to_string()]);
    assert_eq!(cancelled[0]["done"], true, "{cancelled}");
    // Refusals, and changes that change nothing, leave no entry.
    assert_eq!(
        error_code(&world, server_key, "messages/release", &json!({ "id": held[0] })).await,
        "MessageNotHeld"
    );
    assert_eq!(
        error_code(&world, server_key, "send/cancel", &json!({ "id": scheduled[0] })).await,
        "MessageNotScheduled"
    );
    call_ok(&world, server_key, "send/cancel", &json!({"tag": "tagged"})).await;
    world.refused_queue(&["cancel", &held[3].to_string()]);

    // A replay of one event, and of a period.
    let webhook = json!({"url": "https://hooks.example/in", "events": ["message.cancelled"]});
    let webhook = call_ok(&world, server_key, "webhooks/create", &webhook).await["id"].clone();
    // On PostgreSQL an event is listed a moment after its change.
    let event = eventually(async || {
        let events =
            call_ok(&world, server_key, "events/list", &json!({"types": ["message.cancelled"]})).await;
        let event = events["items"][0]["id"].clone();
        if event.is_null() { Err(events.to_string()) } else { Ok(event) }
    })
    .await;
    call_ok(&world, server_key, "webhooks/replay", &json!({"id": webhook, "event_id": event})).await;
    let range = json!({"id": webhook, "since": time_in(-3_600), "until": time_in(3_600)});
    assert!(call_ok(&world, server_key, "webhooks/replay", &range).await["events"].as_i64() > Some(0));
    assert_eq!(
        error_code(&world, server_key, "webhooks/replay", &json!({"id": webhook, "event_id": "evt_1"})).await,
        "EventNotFound"
    );

    let entries = entries_after(&world, account_key, before).await;
    let names: Vec<&str> = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "credentials/create",
            "messages/release",
            "messages/cancel_hold",
            "send/reschedule",
            "send/cancel",
            "send/cancel",
            "messages/erase",
            "send/cancel",
            "webhooks/create",
            "webhooks/replay",
            "webhooks/replay"
        ]
    );
    let after = |at: usize, name: &str| entries[at]["after"][name].clone();
    assert_eq!((after(1, "message"), after(2, "message")), (held[0].clone(), held[1].clone()));
    assert!(after(3, "send_at").is_string() && after(3, "message") == scheduled[0]);
    assert_eq!((after(5, "changed"), after(6, "message")), (json!(3), held[2].clone()));
    assert_eq!(entries[7]["actor"], "command_line");
    assert!(
        entries[1..7].iter().all(|entry| entry["actor"] == "server_key" && entry["subject"] == "messages")
    );
    assert!(after(9, "replayed_event").is_i64() && after(10, "replayed_from").is_string());
    assert!(world.audit_output(&["verify"]).0);
}

async fn a_single_retry_leaves_one_audit_entry(engine: Engine) {
    let outside = Outside::new();
    let full = Answer::reply("452 4.2.2 The mailbox is full");
    let _peer = outside.site("shop.example", Script::new().first(1, Stage::RcptTo, full));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let account_key = (ACCOUNT, ready_field(&world, "account_api_key"));
    let id = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(id, "SoftFail").await;
    let before = entries_after(&world, account_key, 0).await.len();
    let server_key = (SERVER, world.key.as_str());
    let retried = call_ok(&world, server_key, "messages/retry", &json!({ "id": id })).await;
    assert_eq!(retried["results"][0]["status"], "done", "{retried}");
    world.until_status(id, "Sent").await;
    let entries = entries_after(&world, account_key, before).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(
        (&entries[0]["operation"], &entries[0]["after"]["message"]),
        (&json!("messages/retry"), &json!(id))
    );
}

async fn an_account_can_take_a_used_name_and_does_not_learn_that_it_is_used(world: World) {
    let (one, other) = (create_customer(&world, "one").await, create_customer(&world, "other").await);
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    assert_eq!(
        call_ok(&world, account_key, "account/update", &json!({"name": "other"})).await["name"],
        "other"
    );
    // The operator cannot give a name that another account has.
    for (name, body) in [
        ("accounts/create", json!({"name": "other"})),
        ("accounts/update", json!({"id": one.id, "name": "dev"})),
        ("account/update", json!({"account": one.id, "name": "dev"})),
    ] {
        assert_eq!(error_code(&world, operator, name, &body).await, "AccountExists", "{name}");
    }
    // The account has this name already, so nothing changes.
    call_ok(&world, operator, "accounts/update", &json!({"id": one.id, "name": "other"})).await;
    let listed = call_ok(&world, operator, "accounts/list", &json!({"name": "other"})).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    // On the command line, an id selects one of the accounts with the same name.
    let (success, _, text) = world.admin_output(&["account", "rename", "other", "third"]);
    let ids = format!("{}, {}", one.id, other.id);
    assert!(!success && text.contains(&ids), "{text}");
    let made = world.admin_output(&["domain", "create", "x.example", "--account", "other"]);
    assert!(!made.0 && made.2.contains(&ids), "{}", made.2);
    assert_eq!(world.admin(&["account", "rename", &one.id.to_string(), "third"])["name"], "third");
    assert!(world.admin_output(&["domain", "create", "x.example", "--account", "other"]).0);
}

async fn customers_do_not_learn_who_the_operator_is(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    call_ok(&world, operator, "servers/suspend", &json!({"id": one.servers[0], "reason": "abuse"})).await;
    call_ok(&world, account_key, "servers/suspend", &json!({"id": one.servers[1], "reason": "holidays"}))
        .await;
    let filter = json!({"operation": "servers/suspend"});
    let shown = call_ok(&world, account_key, "account/audit", &filter).await["items"].clone();
    assert_eq!((&shown[1]["actor"], &shown[1]["subject_id"]), (&json!("operator_key"), &one.servers[0]));
    assert_eq!((&shown[1]["actor_id"], &shown[1]["address"]), (&Value::Null, &Value::Null), "{shown}");
    assert_eq!((&shown[0]["actor_id"], &shown[0]["address"]), (&one.account_key_id, &json!("127.0.0.1")));
    let filter = json!({"operation": "servers/suspend", "account": one.id});
    let shown = call_ok(&world, operator, "account/audit", &filter).await["items"].clone();
    assert!(shown[1]["actor_id"].is_i64() && shown[1]["address"] == "127.0.0.1", "{shown}");
    assert!(world.audit_output(&["verify"]).0);
}

async fn a_suspension_by_the_operator_after_one_by_the_account_for_the_same_reason_is_recorded(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    let suspended = json!({"id": one.servers[0], "reason": "abuse"});
    call_ok(&world, account_key, "servers/suspend", &suspended).await;
    call_ok(&world, operator, "servers/suspend", &suspended).await;
    let log = call_ok(&world, account_key, "account/audit", &json!({"operation": "servers/suspend"})).await;
    let fields: Vec<(&Value, &Value)> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["before"]["suspended_by"], &entry["after"]["suspended_by"]))
        .collect();
    let (account, operators) = (json!("account"), json!("operator"));
    assert_eq!(fields, [(&account, &operators), (&Value::Null, &account)], "{log}");
    // The second call finds the server already resumed, and leaves no entry.
    for _ in 0..2 {
        call_ok(&world, operator, "servers/resume", &json!({"id": one.servers[0]})).await;
    }
    let log = call_ok(&world, account_key, "account/audit", &json!({"operation": "servers/resume"})).await;
    assert_eq!(log["items"].as_array().unwrap().len(), 1, "{log}");
}

async fn only_the_operator_sets_the_networks_of_an_address_key(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, operator) =
        ((ACCOUNT, one.key.as_str()), (OPERATOR, ready_field(&world, "operator_api_key")));
    let wanted =
        json!({"server": one.servers[0], "name": "x", "scope": "address", "allow": ["192.0.2.1/32"]});
    // Over the API nobody creates such a key; the command line does.
    for key in [account_key, operator] {
        assert_eq!(error_code(&world, key, "credentials/create", &wanted).await, "ValidationError");
    }
    let server = one.servers[0].to_string();
    let id = world.admin(&[
        "key",
        "create",
        "--server",
        &server,
        "--name",
        "printer",
        "--address",
        "192.0.2.0/24",
    ])["id"]
        .clone();
    let narrower = json!({"id": id, "allow": ["192.0.2.1/32"]});
    assert_eq!(error_code(&world, account_key, "credentials/update", &narrower).await, "ValidationError");
    let same = json!({"id": id, "name": "scanner", "allow": ["192.0.2.0/24"]});
    assert_eq!(call_ok(&world, account_key, "credentials/update", &same).await["name"], "scanner");
    call_ok(&world, operator, "credentials/update", &narrower).await;
    assert_eq!(world.admin(&["key", "get", &id.to_string()])["allow"], json!(["192.0.2.1/32"]));
}

async fn nothing_is_changed_in_a_deleted_account(world: World) {
    let one = create_customer(&world, "one").await;
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let person = world.admin(&["user", "create", "ann@one.example", "--account", "one"])["id"].clone();
    call_ok(&world, operator, "accounts/delete", &json!({"id": one.id})).await;
    let (account, server, credential) = (&one.id, &one.servers[0], &one.credentials[0]);
    let changes = [
        ("servers/create", json!({"account": account, "name": "third"}), "AccountNotFound"),
        ("account_keys/create", json!({"account": account, "name": "x"}), "AccountNotFound"),
        ("users/invite", json!({"account": account, "email": "bob@one.example"}), "AccountNotFound"),
        ("account/update", json!({"account": account, "name": "uno"}), "AccountNotFound"),
        ("domains/create", json!({"account": account, "name": "one.example"}), "AccountNotFound"),
        ("servers/update", json!({"id": server, "name": "x"}), "ServerNotFound"),
        ("servers/suspend", json!({"id": server, "reason": "x"}), "ServerNotFound"),
        ("servers/delete", json!({"id": one.servers[1]}), "ServerNotFound"),
        ("credentials/create", json!({"server": server, "name": "x"}), "ServerNotFound"),
        ("credentials/revoke", json!({"id": credential}), "CredentialNotFound"),
        ("users/update", json!({"id": person, "name": "x"}), "UserNotFound"),
    ];
    for (name, body, expected) in &changes {
        assert_eq!(&error_code(&world, operator, name, body).await, expected, "{name}");
    }
    for (name, body) in [
        ("servers/get", json!({"id": server})),
        ("credentials/get", json!({"id": credential})),
        ("account/audit", json!({"account": account})),
    ] {
        call_ok(&world, operator, name, &body).await;
    }
    call_ok(&world, operator, "accounts/restore", &json!({"id": one.id})).await;
    for (name, body, _) in &changes {
        call_ok(&world, operator, name, body).await;
    }
}

/// The time `seconds` from now (RFC 3339).
fn time_in(seconds: i64) -> String {
    let now = SystemClock.now().as_micros();
    Timestamp::from_micros(now + seconds * 1_000_000).to_rfc3339()
}

async fn account_keys_are_listed_by_name_and_state(world: World) {
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    let second = call_ok(&world, account_key, "account_keys/create", &json!({"name": "second"})).await;
    call_ok(&world, account_key, "account_keys/create", &json!({"name": "third"})).await;
    call_ok(&world, account_key, "account_keys/revoke", &json!({"id": second["id"]})).await;
    let listed = async |filter: Value| {
        let found = call_ok(&world, account_key, "account_keys/list", &filter).await;
        let items = found["items"].as_array().unwrap().clone();
        items.iter().map(|key| key["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(json!({})).await, ["main", "second", "third"]);
    assert_eq!(listed(json!({"revoked": false})).await, ["main", "third"]);
    assert_eq!(listed(json!({"revoked": true})).await, ["second"]);
    assert_eq!(listed(json!({"name": "third"})).await, ["third"]);
    assert!(listed(json!({"name": "third", "revoked": true})).await.is_empty());
}

async fn the_command_line_renames_accounts_and_servers_and_changes_keys(world: World) {
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    assert_eq!(world.admin(&["account", "rename", "one", "uno"])["name"], "uno");
    assert_eq!(world.admin(&["server", "rename", "uno/shop", "store"])["name"], "store");
    create_customer(&world, "two").await;
    for (arguments, part) in [
        (vec!["account", "rename", "uno", "two"], "exists already"),
        (vec!["account", "rename", "uno", "7"], "digits"),
        (vec!["server", "rename", "uno/store", "news"], "exists already"),
        (vec!["key", "get", "999999"], "there is no key"),
        (vec!["key", "update", "999999", "--hold", "true"], "there is no key"),
    ] {
        let (success, _, err) = world.admin_output(&arguments);
        assert!(!success && err.contains(part), "{arguments:?}: {err}");
    }
    let usage = world.admin(&["account", "usage", "uno"]);
    assert_eq!(
        (&usage["account"], &usage["servers"], &usage["users"]),
        (&json!("uno"), &json!(2), &json!(0))
    );
    let answer = call_ok(&world, account_key, "account/usage", &json!({})).await;
    assert_eq!((&answer["servers"], &answer["domains"]), (&usage["servers"], &usage["domains"]));

    let id = one.credentials[0].to_string();
    let shown = world.admin(&["key", "get", &id]);
    assert_eq!((&shown["name"], &shown["server"]), (&json!("web"), &json!("store")));
    let update = ["key", "update", &id, "--name", "app", "--hold", "true", "--allow", "192.0.2.0/24"];
    let changed = world.admin(&[update.as_slice(), &["--expires-at", "2099-01-01T00:00:00Z"]].concat());
    assert_eq!((&changed["name"], &changed["hold"]), (&json!("app"), &json!(true)));
    assert_eq!(
        (&changed["allow"], &changed["expires_at"]),
        (&json!(["192.0.2.0/24"]), &json!("2099-01-01T00:00:00Z"))
    );
    let changed = world.admin(&["key", "update", &id, "--allow-all", "--no-expiry"]);
    assert_eq!((&changed["allow"], &changed["expires_at"]), (&json!([]), &Value::Null));
    assert_eq!((&changed["name"], &changed["hold"]), (&json!("app"), &json!(true)), "the rest stays");
    assert_eq!(world.admin(&["key", "get", &id]), changed);
    assert!(!world.admin_output(&["key", "update", &id]).0, "nothing to change");
    let log =
        call_ok(&world, account_key, "account/audit", &json!({"actor": "command_line", "limit": 100})).await;
    let mut names: Vec<&str> =
        log["items"].as_array().unwrap().iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    names.reverse();
    assert_eq!(names, ["accounts/update", "servers/update", "credentials/update", "credentials/update"]);
}

async fn the_key_in_the_environment_is_used_unless_the_profile_option_is_given(world: World) {
    let one = create_customer(&world, "one").await;
    let profile = world.folder.path().join("profile.json");
    std::fs::write(&profile, world.daemon.ready().to_string()).expect("a file");
    let profile = profile.to_str().expect("text");
    // The profile is named by the option `--profile` or by a variable. It has an operator key, which may read every
    // account.
    let run_with = |key: Option<&str>, named_by: &str| {
        let mut command = std::process::Command::new(program());
        for name in
            ["POSTROAD_URL", "POSTROAD_API_KEY", "POSTROAD_ACCOUNT_API_KEY", "POSTROAD_OPERATOR_API_KEY"]
        {
            command.env_remove(name);
        }
        command.env_remove("POSTROAD_PROFILE").args(["api", "account/get"]);
        if let Some(key) = key {
            command.env("POSTROAD_ACCOUNT_API_KEY", key);
        }
        if named_by == "--profile" {
            command.args([named_by, profile]);
        } else {
            command.env(named_by, profile);
        }
        let output = command.output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
        (output.status.success(), answer["data"]["name"].clone(), answer["data"]["code"].clone())
    };
    let key = one.key.as_str();
    let (option, variable) = ("--profile", "POSTROAD_PROFILE");
    assert_eq!(run_with(Some(key), variable).1, "one", "the environment's key, at the profile's URL");
    let named = run_with(Some(key), option);
    assert_eq!(named, run_with(None, option), "the environment's key is not sent");
    assert_eq!(named, run_with(None, variable));
    assert_eq!(run_with(Some("wrong"), variable).2, "InvalidAccountAPIKey", "no other key is tried");
    // With `--profile`, an environment key with more rights is not sent beside the key of the profile.
    let narrow = world.folder.path().join("narrow.json");
    let url = ready_field(&world, "url");
    std::fs::write(&narrow, json!({"url": url, "account_api_key": key}).to_string()).expect("a file");
    let list_accounts = |envs: &[(&str, &str)], args: &[&str]| {
        let mut command = std::process::Command::new(program());
        command.env_remove("POSTROAD_PROFILE").args(["api", "accounts/list"]).args(args);
        for name in ["POSTROAD_URL", "POSTROAD_API_KEY", "POSTROAD_ACCOUNT_API_KEY"] {
            command.env_remove(name);
        }
        let operator_key = ready_field(&world, "operator_api_key");
        let output =
            command.env("POSTROAD_OPERATOR_API_KEY", operator_key).envs(envs.iter().copied()).output();
        let output = output.expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
        answer["data"]["code"].as_str().unwrap_or("success").to_owned()
    };
    assert_eq!(list_accounts(&[], &["--profile", narrow.to_str().expect("text")]), "AccessDenied");
    assert_eq!(list_accounts(&[], &["--url", url]), "success");
    // The keys of a profile without a URL do not go to the environment's URL.
    let without_url = world.folder.path().join("homeless.json");
    std::fs::write(&without_url, json!({ "account_api_key": key }).to_string()).expect("a file");
    let mut command = std::process::Command::new(program());
    let output = command.args(["api", "account/get", "--profile"]).arg(&without_url).output();
    let output = output.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("has no `url`"), "{output:?}");
    // A profile that is not needed is not read.
    let (missing_profile, url_variable) = (("POSTROAD_PROFILE", "/nonexistent.json"), ("POSTROAD_URL", url));
    assert_eq!(list_accounts(&[missing_profile, url_variable], &[]), "success");
    assert_eq!(list_accounts(&[missing_profile], &["--url", url]), "success");
    let (success, help, _) = world.command_output("api", &["--help"]);
    assert!(
        success && help.contains("POSTROAD_PROFILE") && help.contains("POSTROAD_ACCOUNT_API_KEY"),
        "{help}"
    );
}

async fn a_deleted_server_is_gone_until_it_is_restored(world: World) {
    let one = create_customer(&world, "one").await;
    let (account_key, server_key) = ((ACCOUNT, one.key.as_str()), (SERVER, one.server_keys[0].as_str()));
    let id = json!({"id": one.servers[0]});
    call_ok(&world, server_key, "server/get", &json!({})).await;
    let deleted = call_ok(&world, account_key, "servers/delete", &id).await;
    assert!(deleted["delete_at"].is_string());
    assert_eq!(error_code(&world, server_key, "server/get", &json!({})).await, "ServerSuspended");
    for name in ["servers/get", "servers/delete", "servers/resume"] {
        assert_eq!(error_code(&world, account_key, name, &id).await, "ServerNotFound", "{name}");
    }
    let gone = call_ok(&world, account_key, "servers/list", &json!({"deleted": true})).await;
    assert_eq!(gone["items"][0]["id"], one.servers[0]);
    call_ok(&world, account_key, "servers/restore", &id).await;
    call_ok(&world, server_key, "server/get", &json!({})).await;
    assert_eq!(error_code(&world, account_key, "servers/restore", &id).await, "ServerNotFound");
}
