//! The queue desk: what `postroad queue` says and does beside a running server.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::outside::{Outside, to};
use crate::world::{World, both_engines, good_but};

fn why(world: &World, id: i64) -> String {
    world.queue(&["show", &id.to_string()])["why"].as_str().expect("a sentence").to_owned()
}

/// The engine follows a change of the gates at once; a busy machine takes a moment.
async fn until_why(world: &World, id: i64, part: &str) {
    for _ in 0..200 {
        if why(world, id).contains(part) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not {part:?}: {}", why(world, id));
}

both_engines! {
    async fn a_suspended_domain_waits_with_its_reason_and_goes_on_at_once(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("one.example", Script::new());
        let other = outside.site("two.example", Script::new());
        let world = outside.start(engine, &[]);
        let gate = world.queue(&["suspend", "domain:one.example", "--reason", "their MX is broken", "--for", "2h"]);
        assert_eq!((&gate["scope"], &gate["by"]), (&json!("domain:one.example"), &json!("operator")));
        assert!(gate["until"].is_string());
        // Beside a running server a change counts within seconds; this one at once.
        let id = world.accepted_id(&to("a@one.example")).await;
        let free = world.accepted_id(&to("b@two.example")).await;
        world.until_status(free, "Sent").await;
        until_why(&world, id, "domain:one.example is suspended by an operator: their MX is broken").await;
        assert_eq!(peer.messages().len(), 0);
        let listed = world.queue(&["list", "--domain", "one.example"]);
        assert_eq!(listed[0]["id"], id);
        let stats = world.queue(&["stats"]);
        assert_eq!((&stats["queued"], &stats["domains"][0]["domain"]), (&json!(1), &json!("one.example")));
        assert_eq!(stats["gates"][0]["reason"], "their MX is broken");
        world.queue(&["resume", "domain:one.example"]);
        world.until_status(id, "Sent").await;
        assert_eq!((peer.messages().len(), other.messages().len()), (1, 1));
        let (success, _, error) = world.command_output("queue", &["resume", "domain:one.example"]);
        assert!(!success && error.contains("nothing is suspended"), "{error}");
    }

    async fn suspensions_outlive_a_crash(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("one.example", Script::new());
        let mut world = outside.start(engine, &[]);
        world.queue(&["suspend", "everything", "--reason", "maintenance of the network"]);
        world.crash_and_restart();
        let id = world.accepted_id(&to("a@one.example")).await;
        until_why(&world, id, "everything is suspended").await;
        assert_eq!(peer.messages().len(), 0);
        world.queue(&["resume", "everything"]);
        world.until_status(id, "Sent").await;
    }

    async fn a_retry_does_not_wait_for_its_time_and_a_cancelled_message_is_not_sent(engine: Engine) {
        let outside = Outside::new();
        let refuse = Answer::reply("451 4.3.0 try again later");
        let peer = outside.site("one.example", Script::new().first(2, Stage::RcptTo, refuse));
        let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
        let retried = world.accepted_id(&to("a@one.example")).await;
        let cancelled = world.accepted_id(&to("b@one.example")).await;
        for id in [retried, cancelled] {
            world.until_deliveries(id, 1).await;
            until_why(&world, id, "its next attempt is at").await;
        }
        let answer = world.queue(&["cancel", &cancelled.to_string()]);
        assert_eq!((&answer[0]["result"], &answer[0]["status"]), (&json!("cancelled"), &json!("Cancelled")));
        assert_eq!(world.queue(&["retry", &retried.to_string()])[0]["result"], "queued for now");
        world.until_status(retried, "Sent").await;
        assert_eq!(world.expanded(cancelled).await["status"]["status"], "Cancelled");
        assert_eq!(world.queue(&["retry", &cancelled.to_string()])[0]["result"].as_str().unwrap()[..11], *"not waiting");
        assert_eq!(peer.messages().iter().filter(|m| m.rcpt_to[0] == "b@one.example").count(), 0);
        assert_eq!(world.queue(&["retry", "77"])[0]["result"], "unknown");
        let (success, _, error) = world.command_output("queue", &["show", "77"]);
        assert!(!success && error.contains("there is no message 77"), "{error}");
    }

    async fn beyond_the_hourly_limit_messages_are_held_until_they_are_released(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("one.example", Script::new());
        let world = outside.start(engine, &[]);
        world.admin(&["server", "set-hourly-limit", "dev", "2"]);
        let recipients = json!({"to": ["a@one.example", "b@one.example", "c@one.example"]});
        let sent = world.accepted(&good_but(recipients)).await;
        let held = sent["messages"]["c@one.example"]["id"].as_i64().unwrap();
        for name in ["a@one.example", "b@one.example"] {
            world.until_status(sent["messages"][name]["id"].as_i64().unwrap(), "Sent").await;
        }
        let records = world.until_status(held, "Held").await;
        assert!(records[0]["details"].as_str().unwrap().contains("hourly limit of 2"), "{records:?}");
        assert_eq!(world.queue(&["retry", &held.to_string()])[0]["result"], "released");
        world.until_status(held, "Sent").await;
        assert_eq!(peer.messages().len(), 3);
    }

    async fn a_send_rate_paces_one_server(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("one.example", Script::new());
        let world = outside.start(engine, &[]);
        world.admin(&["server", "set-rate", "dev", "5/s"]);
        let recipients: Vec<String> = (0..12).map(|n| format!("u{n}@one.example")).collect();
        world.accepted(&good_but(json!({ "to": recipients }))).await;
        peer.wait_until(|record| record.messages.len() == 12).await;
        let messages = peer.messages();
        let took = messages[11].begun_at - messages[0].begun_at;
        // Eleven pauses of a fifth of a second.
        assert!(took >= Duration::from_millis(2_150), "{took:?}");
    }
}

/// Without a server the desk works on the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_the_desk_reads_the_store() {
    let outside = Outside::new();
    let mut world =
        outside.start(crate::world::Engine::Sqlite, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world
        .accepted_id(&good_but(json!({"to": ["a@one.example"], "send_at": "2026-12-01T00:00:00Z"})))
        .await;
    world.daemon.kill9();
    assert!(why(&world, id).contains("no server is running"), "{}", why(&world, id));
    let stats: Value = world.queue(&["stats"]);
    assert_eq!((&stats["queued"], &stats["later"]), (&json!(1), &json!(1)));
    world.queue(&["cancel", &id.to_string()]);
    world.restart();
    assert_eq!(world.expanded(id).await["status"]["status"], "Cancelled");
}
