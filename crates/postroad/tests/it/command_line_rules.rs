//! The command line obeys the rules of the API (deleted objects, reasons, limits) and warns when a ceiling is near.

use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, OPERATOR, call_ok, create_customer, error_code, ready_field};
use crate::world::{World, both_engines};

both_engines!(
    the_command_line_changes_no_deleted_objects,
    the_command_line_refuses_blank_reasons_and_values_out_of_range,
    the_command_line_shows_one_server_and_one_pool,
    the_command_line_warns_when_a_ceiling_is_near,
    a_long_audit_log_is_checked_in_parts
);

fn assert_refused(world: &World, args: &[&str], part: &str) {
    let (success, out, error) = world.admin_output(args);
    assert!(!success && error.contains(part), "{args:?}: {out} {error}");
}

async fn the_command_line_changes_no_deleted_objects(world: World) {
    let one = create_customer(&world, "one").await;
    world.admin(&["domain", "create", "shop.example", "--server", "one/shop"]);
    world.admin(&["pool", "create", "spare"]);
    let key = one.credentials[0].to_string();
    call_ok(&world, (ACCOUNT, &one.key), "servers/delete", &json!({"id": one.servers[0]})).await;
    let changes: [&[&str]; 18] = [
        &["server", "rename", "one/shop", "other"],
        &["server", "suspend", "one/shop", "--reason", "x"],
        &["server", "resume", "one/shop"],
        &["server", "delete", "one/shop"],
        &["server", "set-mode", "one/shop", "development"],
        &["server", "set-pool", "one/shop", "spare"],
        &["server", "set-rate", "one/shop", "10/s"],
        &["server", "set-hourly-limit", "one/shop", "10"],
        &["server", "set-retention", "one/shop", "--bodies", "1"],
        &["server", "set-tracking", "one/shop", "--opens", "on"],
        &["key", "create", "--server", "one/shop"],
        &["key", "update", &key, "--name", "x"],
        &["key", "rotate", &key],
        &["key", "revoke", &key],
        &["domain", "create", "other.example", "--server", "one/shop"],
        &["domain", "set-verified", "shop.example"],
        &["domain", "set-tracking", "shop.example", "--opens", "on"],
        &["domain", "delete", "shop.example"],
    ];
    for args in changes {
        assert_refused(&world, args, "there is no");
    }
    world.admin(&["account", "delete", "one"]);
    let changes: [&[&str]; 8] = [
        &["server", "create", "third", "--account", "one"],
        &["server", "rename", "one/news", "other"],
        &["key", "create", "--server", "one/news"],
        &["domain", "create", "other.example", "--account", "one"],
        &["pool", "create", "theirs", "--account", "one"],
        &["account", "suspend", "one", "--reason", "x"],
        &["account", "rename", "one", "two"],
        &["user", "create", "a@one.example", "--account", "one"],
    ];
    for args in changes {
        assert_refused(&world, args, "there is no");
    }
    // Refused commands left no audit entry.
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    let log = call_ok(&world, operator, "account/audit", &json!({"account": one.id, "limit": 2})).await;
    let last: Vec<&Value> =
        log["items"].as_array().unwrap().iter().map(|entry| &entry["operation"]).collect();
    assert_eq!(last, ["accounts/delete", "servers/delete"]);
    world.admin(&["account", "restore", "one"]);
    world.admin(&["server", "restore", "one/shop"]);
    for args in [["server", "set-rate", "one/shop", "10/s"], ["key", "create", "--server", "one/shop"]] {
        world.admin(&args);
    }
}

async fn the_command_line_refuses_blank_reasons_and_values_out_of_range(world: World) {
    for args in [["server", "suspend", "dev", "--reason", " "], ["account", "suspend", "dev", "--reason", ""]]
    {
        assert_refused(&world, &args, "1 to 500 characters");
    }
    assert_refused(&world, &["server", "set-retention", "dev", "--bodies", "31"], "from 0 to 30");
    assert_refused(
        &world,
        &["server", "create", "12", "--account", "dev"],
        "should not consist of digits only",
    );
    assert_refused(
        &world,
        &["server", "create", "dev", "--account", "dev"],
        "the server `dev/dev` exists already",
    );
    assert_refused(&world, &["account", "create", "Postroad"], "the service's own");
    assert_refused(&world, &["key", "create", "--server", "dev", "--name", " "], "1 to 100 characters");
    let past = ["key", "create", "--server", "dev", "--expires-at", "2020-01-01T00:00:00Z"];
    assert_refused(&world, &past, "is in the past");
    let id = world.new_key(&[]).0.to_string();
    assert_refused(&world, &["key", "rotate", &id, "--grace", "31d"], "at most 30 days");
    world.admin(&["key", "create", "--server", "dev", "--login", "shop@example.com"]);
    let taken = ["key", "create", "--server", "dev", "--login", "Shop@example.com"];
    assert_refused(&world, &taken, "a key with the login shop@example.com exists already");
}

async fn the_command_line_shows_one_server_and_one_pool(world: World) {
    world.admin(&["pool", "create", "main"]);
    world.admin(&["pool", "add-address", "main", "192.0.2.1", "--helo", "mta.example.com"]);
    for (noun, name) in [("server", "dev"), ("pool", "main")] {
        let shown = world.admin(&[noun, "show", name]);
        let listed = world.admin(&[noun, "list"]);
        assert!(shown["name"] == name && shown["created_at"].is_string(), "{shown}");
        assert!(listed.as_array().unwrap().contains(&shown), "{listed}: {shown}");
        assert_refused(&world, &[noun, "show", "nobody"], "there is no");
    }
    let pool = world.admin(&["pool", "show", "main"]);
    assert!(pool["addresses"][0]["created_at"].is_string(), "{pool}");
}

async fn the_command_line_warns_when_a_ceiling_is_near(world: World) {
    world.admin(&["account", "create", "one"]);
    let ceilings = ["--servers", "2", "--domains", "2", "--users", "2"];
    world.admin(&[&["account", "set-ceilings", "one"], ceilings.as_slice()].concat());
    let warnings_of = |args: &[&str]| world.admin(args)["warnings"].clone();
    for (number, is_full) in [(1, false), (2, true)] {
        let (server, domain) = (format!("s{number}"), format!("d{number}.example"));
        let email = format!("p{number}@one.example");
        for warnings in [
            warnings_of(&["server", "create", &server, "--account", "one"]),
            warnings_of(&["domain", "create", &domain, "--account", "one"]),
            warnings_of(&["user", "create", &email, "--account", "one"]),
        ] {
            let text = warnings[0].as_str().unwrap_or_default();
            assert_eq!(text.contains('2') && text.contains("the maximum"), is_full, "{warnings}");
        }
    }
    assert_refused(&world, &["server", "create", "s3", "--account", "one"], "at most 2 servers");
}

async fn a_long_audit_log_is_checked_in_parts(world: World) {
    let operator = (OPERATOR, ready_field(&world, "operator_api_key"));
    // Each account has its own hash chain of audit entries; one request checks 50 parts of chains.
    for number in 0..60 {
        call_ok(&world, operator, "accounts/create", &json!({"name": format!("a{number}")})).await;
    }
    let (success, out, error) = world.audit_output(&["verify"]);
    assert!(success, "{error}");
    let verdict: Value = serde_json::from_str(&out).unwrap();
    let heads = verdict["heads"].as_array().unwrap();
    let accounts = call_ok(&world, operator, "accounts/list", &json!({"limit": 500})).await;
    for account in accounts["items"].as_array().unwrap() {
        let start = format!("{}:", account["id"]);
        let count = heads.iter().filter(|head| head.as_str().unwrap().starts_with(&start)).count();
        assert_eq!(count, 1, "{start}");
    }
    assert_eq!((&verdict["accounts"], &verdict["whole"]), (&json!(heads.len()), &json!(true)));
    let expected: Vec<&str> = heads.iter().map(|head| head.as_str().unwrap()).collect();
    assert!(world.audit_output(&["verify", "--expect", &expected.join(" ")]).0);
    assert_eq!(
        error_code(&world, operator, "account/audit", &json!({"account": 999_999})).await,
        "AccountNotFound"
    );
}
