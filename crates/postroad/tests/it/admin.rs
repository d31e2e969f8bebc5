//! `postroad admin` beside a running service and without one.

use postroad_model::{Clock as _, SystemClock, Timestamp};
use postroad_testkit::daemon;
use serde_json::{Value, json};

use crate::world::{SEND, World, both_engines, good_but, program};

both_engines!(
    a_customer_is_set_up_and_sends,
    dns_records_of_a_domain_are_shown,
    wrong_arguments_are_explained,
    server_and_account_names_are_unique_and_never_look_like_ids,
    a_server_is_suspended_although_another_server_has_its_id_as_name,
    rotating_a_key_shows_its_expiry_if_that_is_before_the_end_of_the_grace_period,
    a_rate_and_a_limit_are_removed_by_the_word_none,
    without_a_running_service_the_command_opens_the_store,
    without_the_json_option_the_output_is_readable_text
);

async fn a_customer_is_set_up_and_sends(world: World) {
    let account = world.admin(&["account", "create", "acme"]);
    assert_eq!(account["name"], "acme");
    assert_eq!(world.admin(&["account", "show", "acme"]), account);
    let pool = world.admin(&["pool", "create", "bulk"]);
    let server = world.admin(&["server", "create", "prod", "--account", "acme", "--pool", "bulk"]);
    assert_eq!((&server["mode"], &server["ip_pool"]), (&json!("live"), &pool["id"]));
    let domain = world.admin(&["domain", "create", "acme.test", "--server", "prod"]);
    assert_eq!(domain["verified"], false);
    let key = world.admin(&["key", "create", "--server", "prod"]);
    let api_key = key["api_key"].as_str().unwrap();
    let body = good_but(json!({"from": "a@acme.test"}));
    let answer = world.call_as(api_key, SEND, &body).await;
    assert_eq!(answer["data"]["code"], "UnauthenticatedFromAddress");
    world.admin(&["domain", "set-verified", "acme.test", "--server", "prod"]);
    assert_eq!(world.call_as(api_key, SEND, &body).await["status"], "success");
    world.admin(&["domain", "set-verified", "acme.test", "--server", "prod", "--no"]);
    assert_eq!(world.call_as(api_key, SEND, &body).await["data"]["code"], "UnauthenticatedFromAddress");
    let servers = world.admin(&["server", "list"]);
    let names: Vec<&str> = servers.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dev", "prod"]);
    let listed = world.admin(&["key", "list", "--server", "prod"]);
    assert_eq!(listed[0]["id"], key["id"]);
    assert!(!listed.to_string().contains(api_key), "the list shows an API key");
}

async fn dns_records_of_a_domain_are_shown(world: World) {
    let shown = world.admin(&["domain", "records", "example.test"]);
    assert_eq!(shown["name"], "example.test");
    assert_eq!(shown["verified"], true);
    let records = shown["records"].as_array().unwrap();
    let brief: Vec<(&str, &str, bool)> = records
        .iter()
        .map(|r| {
            (r["purpose"].as_str().unwrap(), r["type"].as_str().unwrap(), r["required"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(
        brief,
        [
            ("spf", "TXT", true),
            ("dkim", "TXT", true),
            ("dmarc", "TXT", true),
            ("return_path", "CNAME", false),
            ("tracking", "CNAME", false)
        ]
    );
    assert_eq!(records[0]["value"], "v=spf1 ip4:127.0.0.1 ip6:::1 ~all");
    assert!(records[1]["name"].as_str().unwrap().ends_with("._domainkey.example.test"));
    assert!(records[1]["value"].as_str().unwrap().starts_with("v=DKIM1; k=rsa; p=MII"));
    assert_eq!(records[2]["name"], "_dmarc.example.test");
    assert_eq!(records[3]["name"], "rp.example.test");
    assert_eq!(records[4]["value"], "track.postroad.localhost");
    assert!(records.iter().all(|r| r["status"] == "pending" && r["found"] == json!([])));
}

async fn wrong_arguments_are_explained(world: World) {
    let cases: [(&[&str], &str); 6] = [
        (&["account", "create", "dev"], "the account `dev` exists already"),
        (&["server", "create", "x", "--account", "nobody"], "there is no account `nobody`"),
        (&["domain", "create", "not a domain", "--server", "dev"], "not a domain"),
        (&["domain", "create", "example.test", "--server", "dev"], "exists already"),
        (&["key", "revoke", "999999"], "there is no key 999999"),
        (&["key", "create", "--server", "dev", "--expires-at", "2001-01-01T00:00:00Z"], "in the past"),
    ];
    for (args, expected) in cases {
        let (success, out, err) = world.admin_output(args);
        assert!(!success && out.is_empty(), "{args:?}: {out}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

async fn server_and_account_names_are_unique_and_never_look_like_ids(world: World) {
    world.admin(&["account", "create", "acme"]);
    world.admin(&["server", "create", "prod", "--account", "acme"]);
    let cases: [&[&str]; 5] = [
        &["server", "create", "prod", "--account", "acme"],
        &["server", "create", " prod ", "--account", "acme"],
        &["server", "create", "42", "--account", "acme"],
        &["account", "create", "42"],
        &["account", "create", "acme"],
    ];
    for args in cases {
        let (success, _, err) = world.admin_output(args);
        assert!(
            !success && (err.contains("exists already") || err.contains("taken for an id")),
            "{args:?}: {err}"
        );
    }
    assert_eq!(
        world.admin(&["server", "create", "prod", "--account", "dev"])["name"],
        "prod",
        "a server of another account can have the same name"
    );
    let answer = world.call("/api/v1/server/update", &json!({"name": "42"})).await;
    assert_eq!(answer["data"]["errors"][0]["pointer"], "/name", "{answer}");
    let (success, _, err) = world.admin_output(&["server", "suspend", "prod", "--reason", "x"]);
    assert!(!success && err.contains("acme/prod") && err.contains("dev/prod"), "{err}");
    assert_eq!(world.admin(&["server", "suspend", "acme/prod", "--reason", "x"])["suspended"], true);
}

async fn a_server_is_suspended_although_another_server_has_its_id_as_name(world: World) {
    let mut world = world;
    let prod = world.admin(&["server", "create", "prod", "--account", "dev"])["id"].clone();
    // Older versions accepted numbers as names: another server has the id of `prod` as its name.
    let store = world.stopped_store().await;
    let servers = store.list_servers().await.unwrap();
    let dev = servers.iter().find(|server| server.name == "dev").unwrap();
    let new = postroad_store::NewServer {
        account_id: dev.account_id,
        name: prod.to_string(),
        mode: postroad_model::ServerMode::Live,
        pool_id: None,
    };
    store.create_server(new).await.unwrap();
    drop(store);
    world.restart();
    assert_eq!(
        world.admin(&["server", "suspend", "dev/prod", "--reason", "spam"])["suspended_reason"],
        "spam"
    );
    assert_eq!(world.admin(&["server", "resume", "dev/prod"])["suspended"], false);
    assert_eq!(world.admin(&["server", "set-mode", "dev/prod", "development"])["mode"], "development");
}

async fn rotating_a_key_shows_its_expiry_if_that_is_before_the_end_of_the_grace_period(world: World) {
    let soon = Timestamp::from_micros((SystemClock.now().as_secs() + 7_200) * 1_000_000).to_rfc3339();
    let soon = soon.as_str();
    let (id, _) = world.new_key(&["--expires-at", soon]);
    let late = world.admin(&["key", "rotate", &id.to_string(), "--grace", "30d"]);
    assert_eq!(late["replaced_expires_at"], soon, "before the grace period is over");
    let keys = world.admin(&["key", "list", "--server", "dev"]);
    let old = keys.as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
    assert_eq!(old["expires_at"], soon);
    let again = world.admin(&["key", "rotate", &late["id"].to_string(), "--grace", "1h"]);
    assert!(again["replaced_expires_at"].as_str().unwrap() < soon, "{again}");
}

async fn a_rate_and_a_limit_are_removed_by_the_word_none(world: World) {
    for (command, value) in [("set-rate", "10/s"), ("set-hourly-limit", "5")] {
        world.admin(&["server", command, "dev", value]);
        let cleared = world.admin(&["server", command, "dev", "none"]);
        assert_eq!(
            (&cleared["send_rate"], &cleared["hourly_limit"]),
            (&Value::Null, &Value::Null),
            "{command}"
        );
    }
    let (success, _, err) = world.admin_output(&["server", "set-rate", "dev", "nothing"]);
    assert!(!success && err.contains("or none"), "{err}");
}

async fn without_a_running_service_the_command_opens_the_store(world: World) {
    let mut world = world;
    world.daemon.terminate();
    world.admin(&["account", "create", "offline"]);
    let accounts = world.admin(&["account", "list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 2);
    world.restart();
    let accounts = world.admin(&["account", "list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 2);
}

async fn without_the_json_option_the_output_is_readable_text(world: World) {
    let output = daemon::command(program(), &[])
        .args(["admin", "server", "list", "--data-dir"])
        .arg(world.data_dir())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("name: dev\n") && text.contains("mode: live\n"), "{text}");
    assert!(serde_json::from_str::<Value>(&text).is_err());
}

#[test]
fn a_mistyped_data_folder_does_not_become_an_installation() {
    let folder = tempfile::TempDir::new().unwrap();
    let data_dir = folder.path().join("typo");
    let output = daemon::command(program(), &[])
        .args(["admin", "server", "list", "--data-dir"])
        .arg(&data_dir)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("there is no installation"), "{error}");
    assert!(!data_dir.exists());
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = tempfile::TempDir::new().unwrap();
    let command = r#""$0" admin account create a --data-dir "$1" && "$0" config default | head -c 10"#;
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", command])
        .arg(program())
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_deep_data_folder_still_has_a_control_socket() {
    let folder = tempfile::TempDir::new().unwrap();
    // Longer than the 107 bytes that the address of a Unix socket can have.
    let deep = folder.path().join("d".repeat(60)).join("e".repeat(60));
    let data_dir = deep.to_str().unwrap();
    let args = ["dev", "--json", "--http-port", "0", "--data-dir", data_dir];
    let _daemon = postroad_testkit::Daemon::start(program(), args, &[]);
    let output = daemon::command(program(), &[])
        .args(["admin", "account", "list", "--json", "--data-dir", data_dir])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Two nodes on one PostgreSQL.
mod nodes {
    use std::time::Duration;

    use futures_util::future::join_all;
    use postroad_testkit::eventually_within;
    use postroad_testkit::postgres::Database;

    use super::*;
    use crate::world::{MESSAGE, World, good};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_change_on_one_node_is_seen_by_the_other_within_3_s() {
        let database = Database::create();
        let url = database.url().to_owned();
        let one = World::start_on(Some(&url), Some(database), &[]);
        let other = World::start_on(Some(&url), None, &[]);
        assert_eq!(one.call(SEND, &good()).await["status"], "success");
        other.admin(&["server", "suspend", "dev", "--reason", "test"]);
        eventually_within(Duration::from_secs(3), async || {
            let answer = one.call(SEND, &good()).await;
            let is_seen = answer["data"]["code"] == "ServerSuspended";
            if is_seen {
                Ok(())
            } else {
                Err(format!("the node does not see the suspension made on the other: {answer}"))
            }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_idempotency_key_on_two_nodes_makes_one_send_that_both_nodes_show() {
        let database = Database::create();
        let url = database.url().to_owned();
        let one = World::start_on(Some(&url), Some(database), &[]);
        let other = World::start_on(Some(&url), None, &[]);
        let body = good_but(json!({"idempotency_key": "both"}));
        let nodes = (0..60).map(|number| if number % 2 == 0 { &one } else { &other });
        let answers = join_all(nodes.map(|node| node.call(SEND, &body))).await;
        let first = answers.iter().filter(|answer| answer["flags"] == json!({})).count();
        assert_eq!(first, 1, "exactly one call stored the send");
        assert!(answers.iter().all(|answer| answer["data"] == answers[0]["data"]), "{answers:?}");
        let id = &answers[0]["data"]["messages"]["someone@example.com"]["id"];
        for node in [&one, &other] {
            assert_eq!(node.call(MESSAGE, &json!({ "id": id })).await["data"]["id"], *id);
        }
        let fresh = good();
        let ids = join_all([&one, &other, &one, &other].map(|node| node.accepted_id(&fresh))).await;
        let unique: std::collections::HashSet<&i64> = ids.iter().collect();
        assert_eq!(unique.len(), 4);
    }
}
