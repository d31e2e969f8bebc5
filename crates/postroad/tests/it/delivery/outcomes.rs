//! Outcomes of a message that is deferred, refused or accepted: status, records, events, times.

use postroad_store::Event;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::outside::{Outside, to};
use crate::world::{Engine, both_engines};

/// Kinds and numbers of a message's events.
pub(super) fn numbered_kinds(events: &[Event]) -> Vec<(i64, &'static str)> {
    events.iter().map(|event| (event.seq, event.kind.as_str())).collect()
}

/// Asserts that the next attempt is announced for `pause` seconds after this one, give or take a tenth.
pub(super) fn assert_pause(delivery: &Value, pause: f64) {
    let next = delivery["next_attempt_at"].as_f64().expect("a soft failure says when it is tried again");
    let announced = next - delivery["timestamp"].as_f64().expect("every delivery has its time");
    assert!((announced / pause - 1.0).abs() < 0.101, "{announced} s instead of {pause} s");
}

both_engines!(
    a_message_that_is_deferred_three_times_is_delivered,
    a_message_to_a_missing_mailbox_bounces_and_its_recipient_is_suppressed,
    a_lost_reply_is_marked_as_a_possible_duplicate
);

async fn a_message_that_is_deferred_three_times_is_delivered(engine: Engine) {
    let outside = Outside::new();
    let deferral = Answer::reply("451 4.3.0 Mailbox is being moved");
    let peer = outside.site("moving.example", Script::new().first(3, Stage::Message, deferral));
    let envs = [("POSTROAD_DELIVERY_RETRY_SCHEDULE", "800ms,1600ms,800ms")];
    let mut world = outside.start(engine, &envs);
    let id = world.accepted_id(&to("ann@moving.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 4, "{deliveries:#?}");
    for (delivery, pause) in deliveries.iter().zip([0.8, 1.6, 0.8]) {
        let expected = json!({
            "id": delivery["id"], "status": "SoftFail",
            "details": "mx.moving.example refused it for now (final, other)",
            "output": "451 4.3.0 Mailbox is being moved", "sent_with_ssl": false,
            "log_id": delivery["log_id"], "time": delivery["time"], "timestamp": delivery["timestamp"],
            "mx": "mx.moving.example", "remote_ip": peer.address().ip().to_string(),
            "source_ip": delivery["source_ip"], "tls": null, "code": 451, "enhanced_code": "4.3.0",
            "bounce_class": "other", "next_attempt_at": delivery["next_attempt_at"],
            "possible_duplicate": false, "tls_policy": null, "dkim": delivery["dkim"],
        });
        assert_eq!(*delivery, expected);
        assert_eq!(delivery["dkim"].as_array().map(Vec::len), Some(1), "{delivery}");
        assert!(delivery["id"].is_i64() && delivery["log_id"].as_str().is_some_and(|id| !id.is_empty()));
        assert!(delivery["time"].as_f64().is_some_and(|time| time > 0.0 && time < 5.0), "{delivery}");
        assert!(delivery["source_ip"].as_str().is_some_and(|ip| ip.starts_with("127.")), "{delivery}");
        assert_pause(delivery, pause);
    }
    for pair in deliveries.windows(2) {
        let (due, came) = (pair[0]["next_attempt_at"].as_f64(), pair[1]["timestamp"].as_f64());
        assert!(came >= due, "tried before it was due: {pair:#?}");
    }
    let last = &deliveries[3];
    assert_eq!(last["status"], "Sent");
    assert_eq!(last["details"], "Accepted by mx.moving.example");
    assert_eq!(last["output"], "250 2.0.0 taken");
    assert_eq!((&last["code"], &last["enhanced_code"]), (&json!(250), &json!("2.0.0")));
    assert_eq!((&last["bounce_class"], &last["next_attempt_at"]), (&Value::Null, &Value::Null));
    let status = world.expanded(id).await["status"].clone();
    assert_eq!(status["last_delivery_attempt"], last["timestamp"]);
    assert_eq!(status["next_attempt"], Value::Null);

    let messages = peer.messages();
    assert_eq!(messages.len(), 4);
    let first = String::from_utf8_lossy(&messages[0].bytes).into_owned();
    assert!(first.contains("\r\nDKIM-Signature: v=1"), "{first}");
    for message in &messages {
        assert_eq!(message.bytes, messages[0].bytes, "every attempt sends the same bytes");
        assert_eq!(message.mail_from, messages[0].mail_from);
        assert_eq!(message.rcpt_to, ["ann@moving.example"]);
    }
    let events = world.events_at_the_end(id).await;
    let expected = [
        (1, "message.accepted"),
        (2, "message.delayed"),
        (3, "message.delayed"),
        (4, "message.delayed"),
        (5, "message.delivered"),
    ];
    assert_eq!(numbered_kinds(&events), expected);
}

async fn a_message_to_a_missing_mailbox_bounces_and_its_recipient_is_suppressed(engine: Engine) {
    let outside = Outside::new();
    let refusal = Answer::reply("550 5.1.1 <gone@left.example>: no such user here");
    let peer = outside.site("left.example", Script::new().on(Stage::RcptTo, refusal));
    let mut world = outside.start(engine, &[]);
    let id = world.accepted_id(&to("gone@left.example")).await;
    let deliveries = world.until_status(id, "HardFail").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    let refused = &deliveries[0];
    assert_eq!(refused["details"], "mx.left.example refused it (rcpt_to, bad_mailbox)");
    assert_eq!(refused["output"], "550 5.1.1 <gone@left.example>: no such user here");
    assert_eq!((&refused["code"], &refused["enhanced_code"]), (&json!(550), &json!("5.1.1")));
    assert_eq!(refused["bounce_class"], "bad_mailbox");
    assert_eq!(refused["next_attempt_at"], Value::Null);

    let again = world.accepted_id(&to("Gone@left.example")).await;
    let deliveries = world.until_status(again, "Held").await;
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("suppressed: hard_bounce since "), "{details}");
    assert!(details.contains("no such user here"), "{details}");
    let status = world.expanded(again).await["status"].clone();
    assert_eq!(status["held"], true);
    assert!(status["hold_expiry"].is_f64(), "{status}");
    let other = world.accepted_id(&to("here@left.example")).await;
    world.until_status(other, "HardFail").await;
    let commands: Vec<String> = peer.connections().into_iter().flat_map(|c| c.commands).collect();
    let recipients = commands.iter().filter(|line| line.starts_with("RCPT")).count();
    assert_eq!(recipients, 2, "a suppressed recipient is not attempted: {commands:?}");

    let events = world.events_at_the_end(id).await;
    assert_eq!(numbered_kinds(&events), [(1, "message.accepted"), (2, "message.bounced")]);
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    assert_eq!(data["bounce"]["class"], "bad_mailbox");
    assert_eq!(data["bounce"]["kind"], "sync");
}

async fn a_lost_reply_is_marked_as_a_possible_duplicate(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("drops.example", Script::new().first(1, Stage::Message, Answer::hang_up()));
    let mut world = outside.start(engine, &[]);
    let id = world.accepted_id(&to("ann@drops.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    assert_eq!(deliveries[0]["status"], "SoftFail");
    assert_eq!(deliveries[0]["possible_duplicate"], true);
    assert_eq!(deliveries[0]["bounce_class"], "protocol");
    assert_eq!(deliveries[0]["code"], Value::Null);
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.starts_with("The conversation with mx.drops.example broke off at final: "), "{details}");
    assert_eq!(deliveries[1]["possible_duplicate"], false);
    let messages = peer.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].bytes, messages[1].bytes);
    let events = world.events_at_the_end(id).await;
    let expected = [(1, "message.accepted"), (2, "message.delayed"), (3, "message.delivered")];
    assert_eq!(numbered_kinds(&events), expected);
}
