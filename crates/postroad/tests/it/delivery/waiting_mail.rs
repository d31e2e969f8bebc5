//! Waiting mail: scheduled, expired, given up.

use std::time::Duration;

use postroad_model::{Clock, DomainName, MessageId, SystemClock};
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{ManualClock, eventually};
use serde_json::{Value, json};

use super::outcomes::numbered_kinds;
use super::outside::{Outside, to};
use crate::world::{Engine, SEND, both_engines, good_but};

fn in_millis(millis: u64) -> String {
    SystemClock.now().plus(Duration::from_millis(millis)).to_rfc3339()
}

both_engines!(
    no_message_is_sent_after_it_expires,
    a_message_that_expires_while_it_waits_is_not_attempted,
    expiry_is_recorded_in_time_whatever_a_message_waits_for,
    expiry_is_recorded_while_the_server_is_suspended_or_its_send_rate_is_used_up,
    a_message_expires_while_its_receiver_delays_a_reply,
    a_scheduled_message_becomes_pending_when_it_is_due,
    mail_accepted_while_the_clock_was_a_day_ahead_leaves_after_a_restart,
    undeliverable_messages_are_given_up,
    retries_of_a_released_message_count_from_its_release,
    scheduled_mail_leaves_when_it_is_due
);

async fn no_message_is_sent_after_it_expires(engine: Engine) {
    let outside = Outside::new();
    let deferral = Answer::reply("451 4.3.0 Not now");
    let peer = outside.site("later.example", Script::new().on(Stage::MailFrom, deferral));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "500ms")]);
    let expires_at = SystemClock.now().plus(Duration::from_millis(1_200));
    let body = good_but(json!({"to": ["ann@later.example"], "expires_at": expires_at.to_rfc3339()}));
    let id = world.accepted_id(&body).await;
    let deliveries = world.until_status(id, "HardFail").await;
    let (last, earlier) = deliveries.split_last().unwrap();
    assert_eq!(last["next_attempt_at"], Value::Null);
    // Attempts are about 0.5 s apart: at most three, and then the record of the expiry.
    assert!(deliveries.len() <= 4, "{deliveries:#?}");
    for delivery in earlier {
        assert_eq!(delivery["status"], "SoftFail");
        assert!(
            delivery["next_attempt_at"].as_f64().unwrap() < expires_at.as_epoch_seconds(),
            "{deliveries:#?}"
        );
    }
    let events = world.events_at_the_end(id).await;
    assert_eq!(numbered_kinds(&events).last().unwrap().1, "message.failed");
    assert!(peer.messages().is_empty());
}

async fn a_message_that_expires_while_it_waits_is_not_attempted(engine: Engine) {
    let outside = Outside::new();
    // The only connection is busy with the first message until after the second one expires.
    let slow = Answer::reply("250 2.0.0 finally").after(Duration::from_millis(1_500));
    let peer = outside.site("slow.example", Script::new().first(1, Stage::Message, slow));
    let envs = [("POSTROAD_DELIVERY_CONNECTIONS", "1")];
    let mut world = outside.start(engine, &envs);
    let first = world.accepted_id(&to("ann@slow.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    let body = good_but(json!({"to": ["bob@slow.example"], "expires_at": in_millis(500)}));
    let second = world.accepted_id(&body).await;
    let deliveries = world.until_status(second, "HardFail").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(deliveries[0]["details"], "Its `expires_at` has passed");
    assert_eq!(deliveries[0]["mx"], Value::Null);
    world.until_status(first, "Sent").await;
    assert_eq!(peer.messages().len(), 1);
    let events = world.events_at_the_end(second).await;
    assert_eq!(numbered_kinds(&events), [(1, "message.accepted"), (2, "message.failed")]);
}

async fn expiry_is_recorded_in_time_whatever_a_message_waits_for(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("gated.example", Script::new());
    let elsewhere = outside.site("elsewhere.example", Script::new());
    outside.dns.mx("down.example", 10, "mx.down.example");
    outside.dns.a("mx.down.example", outside.new_address());
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    // Three messages wait: for a site that is backed off, for a suspended domain, and unclaimed in the store.
    let failing = world.accepted_id(&to("ann@down.example")).await;
    world.until_status(failing, "SoftFail").await;
    world.queue(&["suspend", "domain:gated.example", "--reason", "so that it waits"]);
    let expiring = |address: &str| good_but(json!({"to": [address], "expires_at": in_millis(1_500)}));
    let mut ids = Vec::new();
    for address in ["bob@down.example", "ann@gated.example"] {
        ids.push(world.accepted_id(&expiring(address)).await);
    }
    world.queue(&["suspend", "everything", "--reason", "so that all waits"]);
    ids.push(world.accepted_id(&expiring("ann@elsewhere.example")).await);
    for id in &ids {
        let deliveries = world.until_status(*id, "HardFail").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(deliveries[0]["details"], "Its `expires_at` has passed");
        assert_eq!(deliveries[0]["time"], Value::Null, "no host was contacted");
    }
    assert!(world.queue(&["list"]).as_array().unwrap().iter().all(|entry| entry["id"] == failing));
    assert!(peer.messages().is_empty() && elsewhere.messages().is_empty());
    let events = world.events_at_the_end(ids[1]).await;
    assert_eq!(numbered_kinds(&events), [(1, "message.accepted"), (2, "message.failed")]);
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    assert_eq!(data["attempt"], Value::Null, "{data}");
}

async fn expiry_is_recorded_while_the_server_is_suspended_or_its_send_rate_is_used_up(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    let done = world.call("/api/v1/server/update", &json!({"send_rate": "1/h"})).await;
    assert_eq!(done["status"], "success", "{done}");
    let first = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(first, "Sent").await;
    // One message waits because the rate of this hour is used up; another becomes due after the server is suspended.
    let slow = good_but(json!({"to": ["bob@shop.example"], "expires_at": in_millis(1_500)}));
    let slow = world.accepted_id(&slow).await;
    let fields =
        json!({"to": ["cat@shop.example"], "send_at": in_millis(2_000), "expires_at": in_millis(3_000)});
    let suspended = world.accepted_id(&good_but(fields)).await;
    world.admin(&["server", "suspend", "dev", "--reason", "so that it waits"]);
    // The API refuses calls of a suspended server, so the queue command is asked.
    eventually(async || {
        let waiting = world.queue(&["list"]);
        if waiting == json!([]) { Ok(()) } else { Err(waiting) }
    })
    .await;
    world.admin(&["server", "resume", "dev"]);
    for id in [slow, suspended] {
        let deliveries = world.until_status(id, "HardFail").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(deliveries[0]["details"], "Its `expires_at` has passed");
    }
    assert_eq!(peer.messages().len(), 1);
}

async fn a_message_expires_while_its_receiver_delays_a_reply(engine: Engine) {
    let outside = Outside::new();
    let late = |reply| Answer::reply(reply).after(Duration::from_mins(1));
    let peers = [
        outside.site("sender.example", Script::new().on(Stage::MailFrom, late("250 2.1.0 well"))),
        outside.site("recipient.example", Script::new().on(Stage::RcptTo, late("250 2.1.5 well"))),
    ];
    let world = outside.start(engine, &[]);
    let mut ids = Vec::new();
    for address in ["ann@sender.example", "ann@recipient.example"] {
        let body = good_but(json!({"to": [address], "expires_at": in_millis(1_500)}));
        ids.push(world.accepted_id(&body).await);
    }
    for (id, peer) in ids.into_iter().zip(&peers) {
        let deliveries = world.until_status(id, "HardFail").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(deliveries[0]["details"], "Its `expires_at` has passed");
        assert_ne!(
            deliveries[0]["mx"],
            Value::Null,
            "the record names the host that was asked: {deliveries:#?}"
        );
        assert!(peer.messages().is_empty());
    }
}

async fn a_scheduled_message_becomes_pending_when_it_is_due(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("later.example", Script::new());
    let world = outside.start(engine, &[]);
    world.queue(&["suspend", "everything", "--reason", "so that it waits"]);
    let body = good_but(json!({"to": ["ann@later.example"], "send_at": in_millis(1_200)}));
    let id = world.accepted_id(&body).await;
    assert_eq!(world.expanded(id).await["status"]["status"], "Scheduled");
    world.until_status(id, "Pending").await;
    world.queue(&["resume", "everything"]);
    world.until_status(id, "Sent").await;
    assert_eq!(peer.messages().len(), 1);
}

async fn mail_accepted_while_the_clock_was_a_day_ahead_leaves_after_a_restart(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let mut world = outside.start(engine, &[]);
    world.queue(&["suspend", "everything", "--reason", "so that it waits"]);
    let waiting = world.accepted_id(&to("ann@shop.example")).await;
    let other = world.accepted_id(&to("bob@shop.example")).await;
    let tomorrow = ManualClock::at(SystemClock.now().plus(Duration::from_hours(24)));
    let store = world.stopped_store_at(tomorrow).await;
    let server = store.locate_message(MessageId(waiting)).await.unwrap().unwrap();
    // By tomorrow's clock, one message becomes due, and cancelling the other writes an event with an id of tomorrow.
    let simulator_domain = DomainName::parse("sim.postroad.test").unwrap();
    store.retry(server, MessageId(waiting), simulator_domain).await.unwrap();
    store.cancel(server, MessageId(other)).await.unwrap();
    drop(store);
    world.restart();
    world.queue(&["resume", "everything"]);
    world.until_status(waiting, "Sent").await;
    assert_eq!(peer.messages().len(), 1);
}

async fn undeliverable_messages_are_given_up(engine: Engine) {
    let outside = Outside::new();
    let deferral = Answer::reply("451 4.3.0 Never now");
    let peer = outside.site("never.example", Script::new().on(Stage::Message, deferral));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_GIVE_UP_AFTER", "1s")]);
    let id = world.accepted_id(&to("ann@never.example")).await;
    let deliveries = world.until_status(id, "HardFail").await;
    let last = deliveries.last().unwrap();
    let details = last["details"].as_str().unwrap();
    assert!(details.ends_with(&format!("; given up after {} attempts", deliveries.len())), "{details}");
    assert_eq!((&last["code"], &last["next_attempt_at"]), (&json!(451), &Value::Null));
    let accepted = world.expanded(id).await["details"]["timestamp"].as_f64().unwrap();
    let age = last["timestamp"].as_f64().unwrap() - accepted;
    assert!((1.0..4.0).contains(&age), "given up after {age} s");
    let before = deliveries[deliveries.len() - 2]["timestamp"].as_f64().unwrap() - accepted;
    assert!(before < 1.0, "tried again {before} s after it came in");
    assert_eq!(peer.messages().len(), deliveries.len());
    let events = world.events_at_the_end(id).await;
    assert_eq!(numbered_kinds(&events).last().unwrap().1, "message.failed");
    assert_eq!(events.len(), deliveries.len() + 1);
}

async fn scheduled_mail_leaves_when_it_is_due(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("planned.example", Script::new());
    let world = outside.start(engine, &[]);
    let due = SystemClock.now().plus(Duration::from_secs(1));
    let body = good_but(json!({"to": ["ann@planned.example"], "send_at": due.to_rfc3339()}));
    let id = world.accepted_id(&body).await;
    assert_eq!(world.expanded(id).await["status"]["status"], "Scheduled");
    let deliveries = world.until_status(id, "Sent").await;
    let sent = deliveries[0]["timestamp"].as_f64().unwrap();
    assert!(sent >= due.as_epoch_seconds(), "sent {} s early", due.as_epoch_seconds() - sent);
    assert!(sent < due.as_epoch_seconds() + 3.0);
    assert_eq!(peer.messages().len(), 1);
}

async fn retries_of_a_released_message_count_from_its_release(engine: Engine) {
    let outside = Outside::new();
    let deferral = Answer::reply("451 4.3.0 Not now");
    let peer = outside.site("later.example", Script::new().first(1, Stage::MailFrom, deferral));
    let envs = [("POSTROAD_DELIVERY_GIVE_UP_AFTER", "3s"), ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "100ms")];
    let world = outside.start(engine, &envs);
    let (_, holding) = world.new_key(&["--hold"]);
    let held = world.call_as(&holding, SEND, &to("ann@later.example")).await;
    let id = held["data"]["messages"]["ann@later.example"]["id"].as_i64().unwrap_or_else(|| panic!("{held}"));
    // The message is held for longer than messages are retried.
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    world.call("/api/v1/messages/release", &json!({"id": id})).await;
    let deliveries = world.until_status(id, "Sent").await;
    let statuses: Vec<&Value> = deliveries.iter().map(|delivery| &delivery["status"]).collect();
    assert_eq!(statuses, ["Held", "SoftFail", "Sent"], "{deliveries:#?}");
    assert_eq!(peer.messages().len(), 1);
}
