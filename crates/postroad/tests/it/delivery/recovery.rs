//! Outcomes recovered from the flight journal after a kill are recorded like any others, with all their
//! consequences.

use postroad_delivery::journal::{FinalReply, FlightKey, Journal};
use postroad_model::{Clock, MessageId, SourceId, SystemClock};
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::outside::{Outside, to};
use crate::world::{Engine, World, both_engines};

/// Stops the service and leaves the journal of a process that was killed right after this reply.
async fn leave_reply(world: &mut World, id: i64, attempt: u32, reply: (u16, &str), source: Option<&str>) {
    leave_reply_with_tls_problem(world, id, attempt, reply, source, None).await;
}

/// Like `leave_reply`; `tls_problem` is why TLS with the host failed, so that the message was sent without it.
async fn leave_reply_with_tls_problem(
    world: &mut World,
    id: i64,
    attempt: u32,
    reply: (u16, &str),
    source: Option<&str>,
    tls_problem: Option<&str>,
) {
    leave_replies(world, &[id], attempt, reply, source, tls_problem).await;
}

/// Like `leave_reply_with_tls_problem`, for several messages with the same reply.
async fn leave_replies(
    world: &mut World,
    ids: &[i64],
    attempt: u32,
    reply: (u16, &str),
    source: Option<&str>,
    tls_problem: Option<&str>,
) {
    let store = world.stopped_store().await;
    let servers = store.list_servers().await.unwrap();
    let server_id = servers.iter().find(|server| server.name == "dev").unwrap().id;
    let sources = store.list_sources().await.unwrap();
    let of_address = |address| sources.iter().find(|found| found.address.to_string() == address).unwrap().id;
    let source_id: Option<SourceId> = source.map(of_address);
    drop(store);
    let (journal, flights) = Journal::open(&world.data_dir().join("flights")).unwrap();
    assert_eq!(flights, []);
    let final_reply = FinalReply {
        accepted: reply.0 < 300,
        at: SystemClock.now(),
        code: reply.0,
        text: reply.1.to_owned(),
        mx: "mx.shop.example".to_owned(),
        remote_ip: "192.0.2.1".to_owned(),
        source_ip: String::new(),
        tls: None,
        tls_policy: None,
        without_tls: tls_problem.map(str::to_owned),
        dkim: None,
        duration_us: Some(250_000),
        phase: "final".to_owned(),
        source_id,
        ip_pool: source.map(|_| "own".to_owned()),
        provider: None,
    };
    for id in ids {
        let key = FlightKey { server_id, message_id: MessageId(*id), attempt };
        journal.mark_finishing(key).unwrap();
        journal.mark_reply(key, &final_reply).unwrap();
    }
}

both_engines!(
    a_reply_that_the_store_refuses_does_not_prevent_the_start,
    a_refusal_found_in_the_journal_suppresses_the_recipient_and_counts_as_a_bounce,
    a_message_is_given_up_because_of_its_age_even_after_a_kill,
    the_reason_why_a_message_was_sent_without_tls_is_known_after_a_kill,
);

async fn a_reply_that_the_store_refuses_does_not_prevent_the_start(engine: Engine) {
    let outside = Outside::new();
    let later = Answer::reply("451 4.3.0 later");
    let _shop = outside.site("shop.example", Script::new().on(Stage::RcptTo, later.clone()));
    let _other = outside.site("other.example", Script::new().on(Stage::RcptTo, later));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let mut ids = Vec::new();
    for address in ["ann@shop.example", "bob@other.example"] {
        let id = world.accepted_id(&to(address)).await;
        world.until_status(id, "SoftFail").await;
        ids.push(id);
    }
    leave_replies(&mut world, &ids, 1, (250, "2.0.0 taken"), None, None).await;
    world.refuse_outcomes_of(ids[0]);
    world.restart();
    assert_eq!(world.until_status(ids[1], "Sent").await.len(), 2);
    assert!(world.daemon.stderr_text().contains("settling is tried again at the next start"));
    assert_eq!(world.deliveries(ids[0]).await.as_array().map(Vec::len), Some(1));
    world.daemon.kill9();
    world.accept_outcomes();
    world.restart();
    assert_eq!(world.until_status(ids[0], "Sent").await.len(), 2, "the reply is still in the journal");
}

async fn the_reason_why_a_message_was_sent_without_tls_is_known_after_a_kill(engine: Engine) {
    let outside = Outside::new();
    let later = Answer::reply("451 4.3.0 later");
    let _peer = outside.site("shop.example", Script::new().on(Stage::RcptTo, later));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(id, "SoftFail").await;
    let tls_problem = Some("mx.shop.example broke off the TLS handshake");
    leave_reply_with_tls_problem(&mut world, id, 1, (250, "2.0.0 taken"), None, tls_problem).await;
    world.restart();
    let deliveries = world.until_status(id, "Sent").await;
    let details = deliveries[1]["details"].as_str().unwrap();
    assert!(details.contains(" without TLS, which failed: mx.shop.example broke off"), "{details}");
    assert_eq!(deliveries[1]["tls"], serde_json::Value::Null);
}

async fn a_refusal_found_in_the_journal_suppresses_the_recipient_and_counts_as_a_bounce(engine: Engine) {
    let outside = Outside::new();
    let later = Answer::reply("451 4.3.0 later");
    let _peer = outside.site("shop.example", Script::new().on(Stage::RcptTo, later));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    world.admin(&["pool", "create", "own"]);
    world.admin(&["pool", "add-address", "own", "127.0.1.1", "--helo", "out.example"]);
    world.admin(&["server", "set-pool", "dev", "own"]);
    world.apply_changes();
    let id = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(id, "SoftFail").await;
    leave_reply(&mut world, id, 1, (550, "5.1.1 no such user"), Some("127.0.1.1")).await;
    world.restart();
    let deliveries = world.until_status(id, "HardFail").await;
    assert_eq!(
        (&deliveries[1]["code"], &deliveries[1]["time"]),
        (&json!(550), &json!(0.25)),
        "{deliveries:#?}"
    );
    let counted = world.admin(&["pool", "list"])[0]["addresses"][0]["bounced_today"].clone();
    assert_eq!(counted, 1);
    let again = world.accepted_id(&to("ann@shop.example")).await;
    let held = world.until_status(again, "Held").await;
    assert!(held[0]["details"].as_str().unwrap().contains("suppress"), "{held:#?}");
}

async fn a_message_is_given_up_because_of_its_age_even_after_a_kill(engine: Engine) {
    let outside = Outside::new();
    let later = Answer::reply("451 4.3.0 later");
    let _peer = outside.site("shop.example", Script::new().on(Stage::RcptTo, later));
    let envs = [("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h"), ("POSTROAD_DELIVERY_GIVE_UP_AFTER", "1ms")];
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(id, "SoftFail").await;
    leave_reply(&mut world, id, 1, (451, "4.3.0 later"), None).await;
    world.restart_with(&envs);
    let deliveries = world.until_deliveries(id, 2).await;
    assert_eq!(deliveries[1]["status"], "HardFail", "{deliveries:#?}");
    assert!(deliveries[1]["details"].as_str().unwrap().contains("given up"), "{deliveries:#?}");
}
