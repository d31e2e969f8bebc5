//! Deletion of servers and accounts from the call to the last row: the clock is moved past the time in which they can
//! be restored, and the background work runs as in the service.

use std::time::Duration;

use postroad_app::App;
use postroad_app::analytics::CounterTask;
use postroad_model::{AccountId, Clock as _, DomainName, Limits, ServerId, SystemClock};
use postroad_store::{ServerFilter, Store};
use postroad_testkit::{ManualClock, OwnedRows, eventually};
use serde_json::{Value, json};

use crate::account_isolation::fill_account;
use crate::accounts::{ACCOUNT, Customer, OPERATOR, SERVER, call, call_ok, create_customer, ready_field};
use crate::world::{World, both_engines, good_but};

both_engines!(a_deleted_account_and_server_leave_no_row_and_others_keep_theirs);

/// Tables whose rows are removed within a week, and tables of counters, which the test itself changes.
const SHORT_LIVED_TABLES: [&str; 7] = [
    "creations.",
    "idempotency_keys.",
    "user_sessions.",
    "counters.",
    "counter_dimensions.",
    "counter_marks.",
    "recipient_domains.",
];
/// Columns of rows that stay: the audit log of an account.
const KEPT_COLUMNS: [&str; 2] = ["audit.account_id", "audit_heads.account_id"];

/// Creates a domain, a message, a webhook, a template and a suppression of a server of the account `one`. `at` is the
/// position of the server in `customer`.
async fn use_server(world: &World, customer: &Customer, name: &str, at: usize) {
    let server = (SERVER, customer.server_keys[at].as_str());
    let (domain, owner) = (format!("{name}.example"), format!("one/{name}"));
    for action in ["create", "set-verified"] {
        world.admin(&["domain", action, &domain, "--server", &owner]);
    }
    let mail = good_but(json!({"from": format!("shop@{domain}"), "to": ["ann@example.net"]}));
    call_ok(world, server, "send/message", &mail).await;
    let webhook = json!({"url": "https://hooks.example/in", "events": ["domain.verified"]});
    call_ok(world, server, "webhooks/create", &webhook).await;
    let template = json!({"alias": "hello", "name": "Hello", "subject": "Hi", "plain_body": "Hi"});
    call_ok(world, server, "templates/create", &template).await;
    call_ok(world, server, "suppressions/add", &json!({"address": "gone@example.net"})).await;
}

/// Waits until the messages of a server are counted: until then they are kept.
async fn until_counted(world: &World, key: &str, accepted: i64) {
    let now = SystemClock.now();
    let (from, to) = (now.minus(Duration::from_hours(1)), now.plus(Duration::from_hours(1)));
    let range = json!({"from": from.to_rfc3339(), "to": to.to_rfc3339()});
    eventually(async || {
        let counted = call(world, (SERVER, key), "analytics/summary", &range).await;
        let text = counted["data"].to_string();
        if text.contains(&format!("\"accepted\":{accepted}")) { Ok(()) } else { Err(counted) }
    })
    .await;
}

/// Runs the background work until the server and the account are removed.
async fn purge(world: &World, app: &App, store: &Store, server: ServerId, account: AccountId) {
    let counting = CounterTask::start(app.clone());
    eventually(async || {
        app.remove_expired_data().await.unwrap();
        app.run_housekeeping().await.unwrap();
        let is_left = store.find_server(server).await.unwrap().is_some()
            || store.find_account(account).await.unwrap().is_some();
        if is_left {
            Err(format!("{server} or {account} is still there: {:#?}", world.owned_rows()))
        } else {
            Ok(())
        }
    })
    .await;
    counting.stop();
}

/// `rows` without those of `SHORT_LIVED_TABLES` and without those whose keys end in one of `deleted_owners`.
fn rows_of_others(rows: &OwnedRows, deleted_owners: &[String]) -> OwnedRows {
    let is_kept = |key: &String| {
        !SHORT_LIVED_TABLES.iter().any(|table| key.starts_with(table))
            && !deleted_owners.iter().any(|end| key.ends_with(end))
    };
    rows.iter().filter(|(key, _)| is_kept(key)).map(|(key, count)| (key.clone(), *count)).collect()
}

async fn a_deleted_account_and_server_leave_no_row_and_others_keep_theirs(world: World) {
    let mut world = world;
    let (one, zebra) = (create_customer(&world, "one").await, create_customer(&world, "zebra").await);
    fill_account(&world, &zebra).await;
    use_server(&world, &one, "shop", 0).await;
    use_server(&world, &one, "news", 1).await;
    world.admin(&["user", "create", "olga@one.example", "--account", "one"]);
    for (key, accepted) in [(&zebra.server_keys[0], 2), (&one.server_keys[0], 1), (&one.server_keys[1], 1)] {
        until_counted(&world, key, accepted).await;
    }
    let number = |id: &Value| id.as_i64().unwrap();
    let (account, server) = (AccountId(number(&zebra.id)), ServerId(number(&one.servers[1])));
    let operator = ready_field(&world, "operator_api_key").to_owned();
    call_ok(&world, (ACCOUNT, &one.key), "servers/delete", &json!({ "id": server })).await;
    call_ok(&world, (OPERATOR, &operator), "accounts/delete", &json!({ "id": account })).await;

    // Everything is still there: nothing is removed while it can be restored.
    let clock = ManualClock::at(SystemClock.now().plus(Duration::from_hours(6 * 24)));
    let store = world.stopped_store_at(clock.clone()).await;
    let mut deleted_owners: Vec<String> = zebra.servers.iter().map(|id| format!(".server_id={id}")).collect();
    deleted_owners.extend([format!(".server_id={server}"), format!(".account_id={account}")]);
    let before = world.owned_rows();
    for end in &deleted_owners {
        assert!(before.keys().any(|key| key.ends_with(end)), "{end}: {before:#?}");
    }
    assert!(before.len() > 60, "most tables have rows of somebody: {before:#?}");
    let host = DomainName::parse("mail.example.test").unwrap();
    let app = App::new(store.clone(), std::sync::Arc::new(clock.clone()), Limits::default(), host);
    app.remove_expired_data().await.unwrap();
    app.run_housekeeping().await.unwrap();
    assert_eq!(rows_of_others(&world.owned_rows(), &[]), rows_of_others(&before, &[]));

    clock.advance(Duration::from_hours(2 * 24));
    // The deleted server and account cannot be restored any more, so they are not listed as deleted.
    let deleted = ServerFilter { deleted: true, ..ServerFilter::default() };
    assert!(store.list_servers_page(deleted, None, 10).await.unwrap().is_empty());
    purge(&world, &app, &store, server, account).await;
    let after = world.owned_rows();
    let left: Vec<&String> = after
        .keys()
        .filter(|key| deleted_owners.iter().any(|end| key.ends_with(end)))
        .filter(|key| !KEPT_COLUMNS.iter().any(|column| key.starts_with(column)))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // The account of the deleted server has one server, credential and domain less.
    let mut expected = rows_of_others(&before, &deleted_owners);
    for table in ["servers", "credentials", "domains"] {
        *expected.get_mut(&format!("{table}.account_id={}", one.id)).unwrap() -= 1;
    }
    assert_eq!(rows_of_others(&after, &deleted_owners), expected);
    drop((app, store));

    // The operator can still read the account's audit log, and keeps the pool that was made for the account.
    world.restart();
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let log = call_ok(&world, operator, "account/audit", &json!({"account": account, "limit": 500})).await;
    assert_eq!(log["items"][0]["operation"], "accounts/delete", "{log}");
    let (success, out, err) = world.audit_output(&["export", "--account", &account.to_string()]);
    assert!(success && out.lines().count() == log["items"].as_array().unwrap().len(), "{err}");
    let pools = call_ok(&world, operator, "ip_pools/list", &json!({"name": "zebra"})).await;
    assert_eq!(pools["items"][0]["account"], Value::Null, "{pools}");
    let other = call(&world, (ACCOUNT, &one.key), "account/audit", &json!({ "account": account })).await;
    assert_eq!(other["data"]["code"], "AccountNotFound");
}
