//! `postroad queue` without a running service, and the output of `queue show`. Also the pools that a send may name.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{damage, postgres};
use serde_json::json;

use super::outside::Outside;
use crate::terminal::{ESCAPES, assert_harmless, queue_text};
use crate::world::{Engine, SEND, World, both_engines, good_but};

fn in_a_week() -> String {
    SystemClock.now().plus(Duration::from_hours(7 * 24)).to_rfc3339()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_running_service_the_queue_is_read_from_the_store() {
    let outside = Outside::new();
    let mut world = outside.start(Engine::Sqlite, &[]);
    let scheduled = json!({"to": ["a@one.example"], "send_at": in_a_week()});
    let id = world.accepted_id(&good_but(scheduled)).await;
    world.daemon.kill9();
    let shown = world.queue(&["show", &id.to_string()]);
    assert!(shown["why"].as_str().unwrap().contains("Postroad is not running"), "{shown}");
    let stats = world.queue(&["stats"]);
    assert_eq!((&stats["queued"], &stats["later"]), (&json!(1), &json!(1)));
    world.queue(&["cancel", &id.to_string()]);
    world.restart();
    assert_eq!(world.expanded(id).await["status"]["status"], "Cancelled");
}

/// A stored recipient that is no longer a valid address stays out of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipients_address_cannot_reach_a_log_line() {
    let mut world = World::start(Engine::Sqlite);
    let scheduled = json!({"to": ["a@one.example"], "send_at": in_a_week()});
    let id = world.accepted_id(&good_but(scheduled)).await;
    assert!(world.daemon.terminate().success());
    damage::set_recipients(&world.data_dir().join("postroad.db"), "secret person@one.example");
    world.restart();
    world.queue(&["retry", &id.to_string()]);
    world.until_logged("message cannot be sent").await;
    let log = world.daemon.stderr_text();
    assert!(!log.contains("secret") && !log.contains("person@"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_earlier_messages_are_shown_when_the_store_fails_at_a_later_one() {
    let world = World::start(Engine::Postgres);
    let mut ids = Vec::new();
    for who in ["a", "b", "c"] {
        let scheduled = json!({"to": [format!("{who}@one.example")], "send_at": in_a_week()});
        ids.push(world.accepted_id(&good_but(scheduled)).await);
    }
    postgres::run(
        world.database().url(),
        &format!(
            "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
             CREATE TRIGGER refuse_change BEFORE UPDATE ON messages
                FOR EACH ROW WHEN (NEW.id = {}) EXECUTE FUNCTION refuse_change()",
            ids[1]
        ),
    );
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let (out, error) = world.refused_queue(&["cancel", &texts[0], &texts[1], &texts[2]]);
    let results: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    let done: Vec<_> = results.as_array().unwrap().iter().map(|result| result["done"].clone()).collect();
    assert_eq!(done, [true, false, false], "{results}");
    assert!(results[1]["result"].as_str().unwrap().starts_with("failed: "), "{results}");
    assert_eq!(results[2]["result"], "not tried");
    assert!(error.contains("2 of 3 messages"), "{error}");
    for (id, status) in ids.iter().zip(["Cancelled", "Scheduled", "Scheduled"]) {
        assert_eq!(world.expanded(*id).await["status"]["status"], status);
    }
}

both_engines!(
    a_message_that_cannot_be_read_fails_and_the_error_text_of_the_store_is_not_shown,
    a_remote_reply_cannot_send_escapes_to_the_terminal,
    queue_show_says_why_a_message_waits,
    a_send_may_name_only_its_servers_pool_or_the_shared_one
);

async fn a_message_that_cannot_be_read_fails_and_the_error_text_of_the_store_is_not_shown(engine: Engine) {
    let outside = Outside::new();
    let _peer = outside.site("one.example", Script::new());
    let mut world = outside.start(engine, &[]);
    world.queue(&["suspend", "everything", "--reason", "to damage it"]);
    let id = world.accepted_id(&good_but(json!({"to": ["a@one.example"]}))).await;
    world.daemon.kill9();
    world.execute(damage::REMOVE_TEXTS);
    world.restart();
    world.queue(&["resume", "everything"]);
    let deliveries = world.until_status(id, "HardFail").await;
    assert_eq!(deliveries[0]["details"], "the stored message cannot be read");
}

async fn a_remote_reply_cannot_send_escapes_to_the_terminal(engine: Engine) {
    let outside = Outside::new();
    let reply = format!("451 4.3.0 later {ESCAPES}");
    let _peer = outside.site("one.example", Script::new().on(Stage::RcptTo, Answer::reply(&reply)));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world.accepted_id(&good_but(json!({"to": ["a@one.example"]}))).await;
    world.until_status(id, "SoftFail").await;
    let shown = queue_text(&world, &["show", &id.to_string()]);
    assert!(shown.contains("451 4.3.0 later"), "{shown:?}");
    assert_harmless(&shown);
    assert_harmless(&queue_text(&world, &["list"]));
}

async fn queue_show_says_why_a_message_waits(engine: Engine) {
    let outside = Outside::new();
    let reply = "451 4.7.1 Try again later: greylisted, see https://mx.one.example/why";
    let _peer = outside.site("one.example", Script::new().on(Stage::RcptTo, Answer::reply(reply)));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world.accepted_id(&good_but(json!({"to": ["a@one.example"]}))).await;
    world.until_status(id, "SoftFail").await;
    world.queue(&["suspend", "domain:one.example", "--reason", "they asked us to wait"]);
    world.queue(&["suspend", "domain:two.example", "--reason", "somebody else"]);
    let shown = world.queue(&["show", &id.to_string()]);
    let failure = &shown["last_failure"];
    assert_eq!(
        (&failure["server_said"], &failure["code"], &failure["mx"]),
        (&json!(reply), &json!(451), &json!("mx.one.example")),
        "{shown}"
    );
    assert!(failure["details"].as_str().is_some_and(|text| !text.is_empty()), "{shown}");
    let next = shown["next_attempt"].as_str().unwrap();
    assert!(shown["why"].as_str().unwrap().contains(next), "{shown}");
    let gates = shown["gates"].as_array().unwrap();
    assert_eq!(gates.len(), 1, "{shown}");
    assert_eq!(
        (&gates[0]["scope"], &gates[0]["reason"]),
        (&json!("domain:one.example"), &json!("they asked us to wait"))
    );
    // A held message is not in the queue; the answer says why it is held, and how to release it.
    world.admin(&["suppression", "add", "b@one.example", "--server", "dev"]);
    let held = world.accepted_id(&good_but(json!({"to": ["b@one.example"]}))).await;
    let shown = world.queue(&["show", &held.to_string()]);
    let why = shown["why"].as_str().unwrap();
    assert_eq!((&shown["queued"], &shown["status"]), (&json!(false), &json!("Held")));
    assert!(why.contains("suppress") && why.contains(&format!("queue retry {held}")), "{why}");
}

async fn a_send_may_name_only_its_servers_pool_or_the_shared_one(engine: Engine) {
    let outside = Outside::new();
    let _peer = outside.site("one.example", Script::new());
    let world = outside.start(engine, &[]);
    world.admin(&["pool", "create", "main", "--shared"]);
    world.admin(&["pool", "add-address", "main", "127.0.1.1", "--helo", "shared.here.example"]);
    world.admin(&["pool", "create", "own"]);
    world.admin(&["pool", "add-address", "own", "127.0.1.2", "--helo", "own.here.example"]);
    world.admin(&["pool", "create", "others"]);
    world.admin(&["server", "set-pool", "dev", "own"]);
    for (pool, address) in [("main", "127.0.1.1"), ("own", "127.0.1.2")] {
        let named = good_but(json!({"to": [format!("{pool}@one.example")], "ip_pool": pool}));
        let id = world.accepted_id(&named).await;
        assert_eq!(world.until_status(id, "Sent").await[0]["source_ip"], address);
    }
    let foreign = good_but(json!({"to": ["c@one.example"], "ip_pool": "others"}));
    let refused = world.call(SEND, &foreign).await;
    assert_eq!(refused["data"]["errors"][0]["pointer"], "/ip_pool", "{refused}");
    let (success, _, error) = world.admin_output(&["pool", "delete", "own"]);
    assert!(!success && error.contains("is in use"), "{error}");
}
