//! `postroad queue suspend|resume`: suspended mail waits untouched, shows why, and continues once it is
//! resumed.

use std::time::Duration;

use postroad_testkit::eventually;
use postroad_testkit::smtp_peer::Script;
use serde_json::{Value, json};

use super::limits::send_many;
use super::outside::{Outside, to};
use crate::world::{Engine, World, both_engines};

/// Waits until `queue show` gives a reason that contains `wanted`; returns what it shows.
async fn until_reason(world: &World, id: i64, wanted: &str) -> Value {
    eventually(async || {
        let shown = world.queue(&["show", &id.to_string()]);
        let is_shown = shown["why"].as_str().is_some_and(|why| why.contains(wanted));
        if is_shown { Ok(shown) } else { Err(format!("no reason with {wanted:?}: {shown}")) }
    })
    .await
}

both_engines!(
    mail_waits_while_a_scope_of_any_kind_is_suspended,
    a_suspension_outlives_the_process_and_ends_by_itself,
    a_cancelled_message_is_never_sent
);

async fn mail_waits_while_a_scope_of_any_kind_is_suspended(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("gated.example", Script::new());
    let world = outside.start(engine, &[]);
    let scopes = [
        "everything",
        "server:dev",
        "domain:gated.example",
        "pool:default",
        "lane:default/gated.example",
        "provider:mx.gated.example",
        "path:0.0.0.0/mx.gated.example",
        "source-provider:0.0.0.0/mx.gated.example",
    ];
    for (number, scope) in scopes.into_iter().enumerate() {
        let reason = format!("because of test {number}");
        let gate = world.queue(&["suspend", scope, "--reason", &reason]);
        assert_eq!((&gate["action"], &gate["by"]), (&"suspend".into(), &"operator".into()), "{gate}");
        let id = world.accepted_id(&to("ann@gated.example")).await;
        let shown = until_reason(&world, id, &reason).await;
        assert_eq!((&shown["attempts"], &shown["domain"]), (&json!(0), &json!("gated.example")), "{shown}");
        assert_eq!(world.deliveries(id).await, json!([]), "a gate is no attempt");
        assert_eq!(peer.messages().len(), number, "{scope} keeps it back");
        world.queue(&["resume", scope]);
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1);
    }
    assert_eq!(world.queue(&["stats"])["gates"], json!([]));
}

async fn a_suspension_outlives_the_process_and_ends_by_itself(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("gated.example", Script::new());
    let mut world = outside.start(engine, &[]);
    world.queue(&["suspend", "domain:gated.example", "--reason", "their host is ill", "--for", "4s"]);
    let id = world.accepted_id(&to("ann@gated.example")).await;
    world.crash_and_restart();
    let shown = until_reason(&world, id, "their host is ill").await;
    assert!(shown["why"].as_str().unwrap().contains("; it continues at "), "{shown}");
    assert!(peer.connections().is_empty());
    let gates = world.queue(&["stats"])["gates"].clone();
    assert_eq!((gates.as_array().unwrap().len(), &gates[0]["reason"]), (1, &json!("their host is ill")));
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1);
}

async fn a_cancelled_message_is_never_sent(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("gated.example", Script::new());
    let mut world = outside.start(engine, &[]);
    world.queue(&["suspend", "everything", "--reason", "wait"]);
    let cancelled = world.accepted_id(&to("ann@gated.example")).await;
    let other = world.accepted_id(&to("bob@gated.example")).await;
    let result = world.queue(&["cancel", &cancelled.to_string()]);
    assert_eq!((&result[0]["result"], &result[0]["status"]), (&"cancelled".into(), &"Cancelled".into()));
    world.queue(&["resume", "everything"]);
    world.until_status(other, "Sent").await;
    let status = world.expanded(cancelled).await["status"].clone();
    assert_eq!((&status["status"], &status["next_attempt"]), (&json!("Cancelled"), &Value::Null));
    assert_eq!(peer.messages().len(), 1);
    assert_eq!(peer.messages()[0].rcpt_to, ["bob@gated.example"]);
    let (again, _) = world.refused_queue(&["cancel", &other.to_string()]);
    assert!(again.contains("not waiting: it is delivered, failed or cancelled"), "{again}");
    let events = world.events_at_the_end(cancelled).await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["message.accepted", "message.cancelled"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_down_paces_mail_and_waiting_mail_is_listed() {
    let outside = Outside::new();
    let peer = outside.site("gated.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    world.queue(&["suspend", "domain:gated.example", "--reason", "gently", "--slow", "300"]);
    send_many(&world, &world.key, "gated.example", 12).await;
    let listed = world.queue(&["list", "--domain", "gated.example"]);
    assert!(listed.as_array().is_some_and(|list| list.len() >= 8), "{listed}");
    peer.wait_until(|record| record.messages.len() == 12).await;
    let messages = peer.messages();
    let took = messages[11].begun_at - messages[0].begun_at;
    // 300 a minute are 5 a second, so the eleven after the first take 2.2 s; the first also waits for its connection.
    assert!(took >= Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
}
