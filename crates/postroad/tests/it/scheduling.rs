//! send/cancel and send/reschedule: of one message, a tag or a batch, and in a race with delivery.

use std::time::Duration;

use postroad_model::{Clock, EventKind, SystemClock};
use postroad_testkit::eventually;
use postroad_testkit::http::Client;
use postroad_testkit::smtp_peer::Script;
use serde_json::{Value, json};

use crate::batch::{BATCH, batch_to, id_of};
use crate::delivery::inbox::wait_for_mail_to;
use crate::delivery::outside::Outside;
use crate::limits::create_other_server;
use crate::world::{Engine, World, both_engines, good_but};

const CANCEL: &str = "/api/v1/send/cancel";
const RESCHEDULE: &str = "/api/v1/send/reschedule";

/// The time so many milliseconds from now (RFC 3339).
pub(crate) fn in_millis(millis: u64) -> String {
    SystemClock.now().plus(Duration::from_millis(millis)).to_rfc3339()
}

/// Sends a message that is scheduled for an hour from now, unless `fields` say otherwise; returns its id.
async fn schedule_message(world: &World, fields: Value) -> i64 {
    let mut body = good_but(json!({"send_at": in_millis(3_600_000)}));
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    world.accepted_id(&body).await
}

async fn error_code(world: &World, path: &str, body: &Value) -> Value {
    let answer = world.call(path, body).await;
    assert_eq!(answer["status"], "error", "{answer}");
    answer["data"]["code"].clone()
}

async fn call_ok(world: &World, path: &str, body: &Value) -> Value {
    let answer = world.call(path, body).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

both_engines!(
    a_cancelled_scheduled_message_is_reported,
    unscheduled_sent_and_foreign_messages_are_refused_with_different_errors,
    a_rescheduled_message_is_sent_at_its_new_time,
    messages_of_a_tag_or_batch_are_cancelled_or_rescheduled_together,
    repeated_calls_with_a_limit_change_every_message_of_a_tag_once,
    the_hourly_limit_counts_a_rescheduled_message_when_it_is_due,
    scheduled_mail_of_a_server_in_development_mode_is_held_when_it_is_due
);

async fn a_cancelled_scheduled_message_is_reported(world: World) {
    let mut world = world;
    let id = schedule_message(&world, json!({"tag": "news"})).await;
    let cancelled = call_ok(&world, CANCEL, &json!({"id": id})).await;
    assert_eq!((&cancelled["id"], &cancelled["status"]["status"]), (&json!(id), &json!("Cancelled")));
    assert_eq!(
        (&cancelled["details"]["tag"], &cancelled["status"]["next_attempt"]),
        (&json!("news"), &Value::Null)
    );
    assert_eq!(world.deliveries(id).await[0]["details"], "The message was cancelled before it was sent");
    for path in [CANCEL, RESCHEDULE] {
        let body = json!({"id": id, "send_at": in_millis(1_000)});
        assert_eq!(error_code(&world, path, &body).await, "MessageNotScheduled", "it is cancelled already");
    }
    let events = world.events_at_the_end(id).await;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Cancelled]);
}

async fn unscheduled_sent_and_foreign_messages_are_refused_with_different_errors(world: World) {
    let plain = world.accepted_id(&good_but(json!({"to": ["a@example.net"]}))).await;
    let due = world.accepted_id(&good_but(json!({"to": ["b@example.net"], "send_at": in_millis(100)}))).await;
    world.until_status(plain, "Sent").await;
    world.until_status(due, "Sent").await;
    let (soon, key) = (in_millis(60_000), create_other_server(&world));
    for path in [CANCEL, RESCHEDULE] {
        let body = |id: i64| json!({"id": id, "send_at": soon});
        assert_eq!(error_code(&world, path, &body(plain)).await, "MessageNotScheduled");
        assert_eq!(error_code(&world, path, &body(due)).await, "TooLateToCancel");
        let unknown = world.call(path, &body(12)).await;
        assert_eq!(unknown["data"]["code"], "MessageNotFound");
        let mine = schedule_message(&world, json!({})).await;
        let mut foreign = world.call_as(&key, path, &body(mine)).await;
        assert_eq!(foreign["data"]["id"], mine);
        foreign["data"]["id"] = json!(12);
        assert_eq!(foreign["data"], unknown["data"], "a foreign id is answered like an unknown one");
    }
    let (_, read_key) = world.new_key(&["--scope", "read"]);
    assert_eq!(world.call_as(&read_key, CANCEL, &json!({"id": 12})).await["data"]["code"], "AccessDenied");
    let (_, test_key) = world.new_key(&["--test"]);
    assert_eq!(world.call_as(&test_key, CANCEL, &json!({"id": due})).await["data"]["code"], "AccessDenied");
    for (path, body, pointer) in [
        (CANCEL, json!({}), "/id"),
        (CANCEL, json!({"id": "1"}), "/id"),
        (CANCEL, json!({"id": 1, "tag": "x"}), ""),
        (CANCEL, json!({"tag": 5}), "/tag"),
        (CANCEL, json!({"batch_id": "x"}), "/batch_id"),
        (RESCHEDULE, json!({"id": 1}), "/send_at"),
        (RESCHEDULE, json!({"id": 1, "send_at": "tomorrow"}), "/send_at"),
        (RESCHEDULE, json!({"id": 1, "send_at": in_millis(40 * 24 * 3_600_000)}), "/send_at"),
    ] {
        let answer = world.call(path, &body).await;
        assert_eq!(answer["status"], "parameter-error", "{body}: {answer}");
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{body}");
    }
}

async fn a_rescheduled_message_is_sent_at_its_new_time(world: World) {
    let id = schedule_message(&world, json!({"to": ["ann@example.net", "bob@example.net"]})).await;
    let at = SystemClock.now().plus(Duration::from_millis(1_500));
    let moved = call_ok(&world, RESCHEDULE, &json!({"id": id, "send_at": at.to_rfc3339()})).await;
    assert_eq!(moved["status"]["status"], "Scheduled");
    assert!((moved["status"]["next_attempt"].as_f64().unwrap() - at.as_epoch_seconds()).abs() < 0.01);
    let sent = world.until_status(id, "Sent").await;
    assert!(sent[0]["timestamp"].as_f64().unwrap() >= at.as_epoch_seconds() - 0.001, "{sent:#?}");
    // Rescheduled to a later time, and then to a past one, which means now.
    let expiring = json!({"to": ["cat@example.net"], "expires_at": in_millis(7_200_000)});
    let other = schedule_message(&world, expiring).await;
    let late = world.call(RESCHEDULE, &json!({"id": other, "send_at": in_millis(7_300_000)})).await;
    assert_eq!(late["data"]["errors"][0]["pointer"], "/send_at", "{late}");
    let later = in_millis(7_000_000);
    call_ok(&world, RESCHEDULE, &json!({"id": other, "send_at": later})).await;
    call_ok(&world, RESCHEDULE, &json!({"id": other, "send_at": "2020-01-01T00:00:00Z"})).await;
    world.until_status(other, "Sent").await;
    let timeline = call_ok(&world, "/api/v1/messages/timeline", &json!({"id": other})).await;
    let items = timeline["items"].as_array().unwrap_or_else(|| panic!("{timeline}"));
    let kinds: Vec<&str> = items.iter().take(3).filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!(kinds, ["accepted", "rescheduled", "rescheduled"], "{timeline}");
    let times = |at: usize, name: &str| items[at]["data"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!((times(1, "before"), times(1, "send_at")), (times(0, "send_at"), later.clone()), "{timeline}");
    assert_eq!(times(2, "before"), later, "{timeline}");
    assert_eq!(items[1]["text"], format!("Rescheduled to {later}"));
    wait_for_mail_to(&world, "cat@example.net").await;
}

async fn messages_of_a_tag_or_batch_are_cancelled_or_rescheduled_together(world: World) {
    let mut batch = batch_to((0..250).map(|number| format!("r{number}@example.net")));
    batch["defaults"]["send_at"] = json!(in_millis(3_600_000));
    batch["defaults"]["tag"] = json!("both");
    let first = call_ok(&world, BATCH, &batch).await;
    let second = call_ok(&world, BATCH, &batch).await;
    let unscheduled = call_ok(&world, BATCH, &batch_to(["now@example.net".to_owned()])).await;
    let id = |batch: &Value, at: usize| id_of(&batch["results"][at]);
    let by_batch = |batch: &Value| json!({"batch_id": batch["batch_id"]});
    let key = create_other_server(&world);
    let foreign = world.call_as(&key, CANCEL, &by_batch(&first)).await;
    let nothing = json!({"matched": 0, "cancelled": 0, "too_late": 0, "has_more": false});
    assert_eq!(foreign["data"], nothing);
    assert_eq!(call_ok(&world, CANCEL, &by_batch(&unscheduled)).await, nothing);
    assert_eq!(call_ok(&world, CANCEL, &json!({"tag": "none"})).await, nothing);

    let counts = call_ok(&world, CANCEL, &by_batch(&first)).await;
    assert_eq!(counts, json!({"matched": 250, "cancelled": 250, "too_late": 0, "has_more": false}));
    for at in [0, 249] {
        world.until_status(id(&first, at), "Cancelled").await;
        world.until_status(id(&second, at), "Scheduled").await;
    }
    let later = json!({"tag": "both", "send_at": in_millis(7_200_000)});
    let counts = call_ok(&world, RESCHEDULE, &later).await;
    assert_eq!(counts, json!({"matched": 250, "rescheduled": 250, "unchanged": 0, "has_more": false}));
    let now = json!({"batch_id": second["batch_id"], "send_at": in_millis(0)});
    assert_eq!(call_ok(&world, RESCHEDULE, &now).await["rescheduled"], 250);
    for at in [0, 125, 249] {
        world.until_status(id(&second, at), "Sent").await;
        assert_eq!(world.expanded(id(&first, at)).await["status"]["status"], "Cancelled");
    }
}

async fn repeated_calls_with_a_limit_change_every_message_of_a_tag_once(world: World) {
    for tag in ["other", "mine"] {
        let mut batch = batch_to((0..25).map(|number| format!("r{number}@example.net")));
        batch["defaults"]["send_at"] = json!(in_millis(3_600_000));
        batch["defaults"]["tag"] = json!(tag);
        call_ok(&world, BATCH, &batch).await;
    }
    let send_at = in_millis(7_200_000);
    let mut request = json!({"tag": "mine", "limit": 10, "send_at": send_at});
    let mut moved = Vec::new();
    // First with the cursor, then without it: a call leaves out messages that already have the new time.
    for keeps_cursor in [true, false] {
        loop {
            let answer = world.call(RESCHEDULE, &request).await;
            assert_eq!(answer["status"], "success", "{answer}");
            moved.push(answer["data"]["rescheduled"].as_u64().unwrap());
            let pagination = &answer["flags"]["pagination"];
            assert_eq!(pagination["has_more"], answer["data"]["has_more"], "{answer}");
            if answer["data"]["has_more"] == false {
                break;
            }
            if keeps_cursor {
                request["cursor"] = pagination["next_cursor"].clone();
            }
        }
        request = json!({"tag": "mine", "limit": 10, "send_at": in_millis(7_300_000)});
    }
    assert_eq!(moved, [10, 10, 5, 10, 10, 5]);
    let cancel = json!({"tag": "mine", "limit": 20});
    assert_eq!(call_ok(&world, CANCEL, &cancel).await["has_more"], true);
    let rest = json!({"matched": 5, "cancelled": 5, "too_late": 0, "has_more": false});
    assert_eq!(call_ok(&world, CANCEL, &cancel).await, rest);
    assert_eq!(call_ok(&world, CANCEL, &json!({"tag": "other"})).await["cancelled"], 25);
    for wrong in [json!({"tag": "x", "limit": 10_001}), json!({"tag": "x", "cursor": "!"})] {
        assert_eq!(world.call(CANCEL, &wrong).await["status"], "parameter-error", "{wrong}");
    }
}

async fn the_hourly_limit_counts_a_rescheduled_message_when_it_is_due(world: World) {
    world.admin(&["server", "set-hourly-limit", "dev", "1"]);
    let (one, two) = (schedule_message(&world, json!({})).await, schedule_message(&world, json!({})).await);
    call_ok(&world, CANCEL, &json!({"id": two})).await;
    let three = schedule_message(&world, json!({"to": ["three@example.net"]})).await;
    for id in [one, three] {
        call_ok(&world, RESCHEDULE, &json!({"id": id, "send_at": in_millis(0)})).await;
    }
    world.until_status(one, "Sent").await;
    let held = world.until_status(three, "Held").await;
    assert_eq!(held[0]["details"], "The hourly limit of 1 messages is reached");
    assert_eq!(error_code(&world, CANCEL, &json!({"id": three})).await, "MessageNotScheduled");
}

async fn scheduled_mail_of_a_server_in_development_mode_is_held_when_it_is_due(world: World) {
    let soon = json!({"to": ["ann@example.net"], "send_at": in_millis(1_500)});
    let id = schedule_message(&world, soon).await;
    call_ok(&world, "/api/v1/server/update", &json!({"mode": "development"})).await;
    let held = world.until_status(id, "Held").await;
    let details = "The server is in development mode, so the message is held until it is released";
    assert_eq!(held[0]["details"], details);
    let found = call_ok(&world, "/api/v1/messages/search", &json!({"status": "held"})).await;
    assert_eq!(found["items"][0]["held_reason"], "development", "{found}");
    eventually(async || {
        let events = call_ok(&world, "/api/v1/events/list", &json!({"types": ["message.held"]})).await;
        let has_it = events.to_string().contains(&format!("\"id\":{id}"));
        if has_it { Ok(()) } else { Err(events.to_string()) }
    })
    .await;
    call_ok(&world, "/api/v1/messages/release", &json!({"id": id})).await;
    world.until_status(id, "Sent").await;
    // A message that is released before it is due is not held again.
    let later = schedule_message(&world, json!({"to": ["bob@example.net"]})).await;
    world.until_status(later, "Held").await;
    call_ok(&world, "/api/v1/messages/release", &json!({"id": later})).await;
    world.until_status(later, "Scheduled").await;
    call_ok(&world, RESCHEDULE, &json!({"id": later, "send_at": in_millis(0)})).await;
    world.until_status(later, "Sent").await;
}

both_engines!(
    a_due_message_that_is_rescheduled_counts_in_its_new_hour,
    rescheduling_mail_accepted_before_a_ceiling_was_set_makes_no_count_negative,
    due_messages_of_a_tag_or_batch_are_cancelled_or_rescheduled_too,
    a_message_is_cancelled_or_delivered_and_never_both
);

/// Starts a service whose queue is suspended.
fn start_suspended(engine: Engine) -> (Outside, World) {
    let outside = Outside::new();
    let world = outside.start(engine, &[]);
    world.queue(&["suspend", "everything", "--reason", "so that it waits"]);
    (outside, world)
}

async fn a_due_message_that_is_rescheduled_counts_in_its_new_hour(engine: Engine) {
    let (outside, world) = start_suspended(engine);
    let _peer = outside.site("later.example", Script::new());
    world.admin(&["server", "set-hourly-limit", "dev", "1"]);
    let due = json!({"to": ["ann@later.example"], "send_at": in_millis(500)});
    let due = schedule_message(&world, due).await;
    world.until_status(due, "Pending").await;
    call_ok(&world, RESCHEDULE, &json!({"id": due, "send_at": in_millis(3_600_000)})).await;
    let other = world.accepted_id(&good_but(json!({"to": ["bob@later.example"]}))).await;
    assert_eq!(world.expanded(other).await["status"]["status"], "Pending", "the hour has room for it again");
    call_ok(&world, RESCHEDULE, &json!({"id": due, "send_at": in_millis(0)})).await;
    let held = world.until_status(due, "Held").await;
    assert_eq!(held[0]["details"], "The hourly limit of 1 messages is reached");
    world.queue(&["resume", "everything"]);
    world.until_status(other, "Sent").await;
}

async fn rescheduling_mail_accepted_before_a_ceiling_was_set_makes_no_count_negative(engine: Engine) {
    let (outside, world) = start_suspended(engine);
    let _peer = outside.site("later.example", Script::new());
    let mut uncounted = Vec::new();
    for name in ["ann", "bob", "cat"] {
        let due = json!({"to": [format!("{name}@later.example")], "send_at": in_millis(500)});
        uncounted.push(schedule_message(&world, due).await);
    }
    for id in &uncounted {
        world.until_status(*id, "Pending").await;
    }
    world.admin(&["account", "set-ceilings", "dev", "--monthly-limit", "2"]);
    world.apply_changes();
    let send = async || world.accepted_id(&good_but(json!({"to": ["dan@later.example"]}))).await;
    assert_eq!(world.expanded(send().await).await["status"]["status"], "Pending");
    for id in uncounted {
        call_ok(&world, RESCHEDULE, &json!({"id": id, "send_at": in_millis(3_600_000)})).await;
    }
    // The first rescheduling subtracted `dan`'s message; the others found the count at zero, where it stays.
    for _ in 0..2 {
        assert_eq!(world.expanded(send().await).await["status"]["status"], "Pending");
    }
    assert_eq!(world.expanded(send().await).await["status"]["status"], "Held", "the count began below zero");
}

async fn due_messages_of_a_tag_or_batch_are_cancelled_or_rescheduled_too(engine: Engine) {
    let (outside, world) = start_suspended(engine);
    let peer = outside.site("due.example", Script::new());
    let mut batch = batch_to((0..40).map(|number| format!("r{number}@due.example")));
    batch["defaults"]["send_at"] = json!(in_millis(500));
    batch["defaults"]["tag"] = json!("due");
    let (first, second) = (call_ok(&world, BATCH, &batch).await, call_ok(&world, BATCH, &batch).await);
    let id = |batch: &Value, at: usize| id_of(&batch["results"][at]);
    for at in 0..40 {
        world.until_status(id(&first, at), "Pending").await;
        world.until_status(id(&second, at), "Pending").await;
    }
    let counts = call_ok(&world, CANCEL, &json!({"batch_id": first["batch_id"]})).await;
    assert_eq!(counts, json!({"matched": 40, "cancelled": 40, "too_late": 0, "has_more": false}));
    let now = json!({"tag": "due", "send_at": in_millis(0)});
    assert_eq!(call_ok(&world, RESCHEDULE, &now).await["matched"], 0, "they are due already");
    let later = json!({"tag": "due", "send_at": in_millis(3_600_000)});
    let counts = call_ok(&world, RESCHEDULE, &later).await;
    assert_eq!(counts, json!({"matched": 40, "rescheduled": 40, "unchanged": 0, "has_more": false}));
    world.until_status(id(&second, 39), "Scheduled").await;
    assert_eq!(call_ok(&world, RESCHEDULE, &now).await["rescheduled"], 40);
    world.queue(&["resume", "everything"]);
    for at in [0, 39] {
        world.until_status(id(&second, at), "Sent").await;
        assert_eq!(world.expanded(id(&first, at)).await["status"]["status"], "Cancelled");
    }
    assert!(peer.messages().len() <= 40, "{}", peer.messages().len());
}

async fn a_message_is_cancelled_or_delivered_and_never_both(engine: Engine) {
    const MESSAGES: usize = 200;
    let outside = Outside::new();
    let peer = outside.site("race.example", Script::new());
    let world = outside.start(engine, &[]);
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let mut batch = batch_to((0..MESSAGES).map(|number| format!("r{number}@race.example")));
    let due = SystemClock.now().plus(Duration::from_millis(1_500));
    batch["defaults"]["send_at"] = json!(due.to_rfc3339());
    let sent = call_ok(&world, BATCH, &batch).await;
    let ids: Vec<i64> = sent["results"].as_array().unwrap().iter().map(id_of).collect();
    // All messages are due at the same time. From 200 ms before it, one of them is cancelled every 10 ms.
    let mut cancel_calls = tokio::task::JoinSet::new();
    for (at, id) in ids.iter().copied().enumerate() {
        let (client, key) = (Client::new(&url), world.key.clone());
        let delay = due.plus(Duration::from_millis(10 * at as u64)).since(SystemClock.now());
        cancel_calls.spawn(async move {
            tokio::time::sleep(delay.saturating_sub(Duration::from_millis(200))).await;
            let reply = client.post_json(CANCEL, Some(&key), &json!({"id": id})).await.unwrap();
            (id, reply.json())
        });
    }
    let answers = cancel_calls.join_all().await;
    let mut cancelled = 0;
    let mut expected = Vec::new();
    for (id, answer) in answers {
        if answer["status"] == "success" {
            cancelled += 1;
            assert_eq!(answer["data"]["status"]["status"], "Cancelled", "{answer}");
        } else {
            assert_eq!(answer["data"]["code"], "TooLateToCancel", "{answer}");
            world.until_status(id, "Sent").await;
            let number = ids.iter().position(|other| *other == id).unwrap();
            expected.push(format!("r{number}@race.example"));
        }
    }
    expected.sort_unstable();
    assert!(cancelled > 0 && cancelled < MESSAGES, "{cancelled} of {MESSAGES}: there was no race");
    let mut delivered_to: Vec<String> =
        peer.messages().iter().map(|message| message.rcpt_to[0].clone()).collect();
    delivered_to.sort_unstable();
    assert_eq!(delivered_to, expected, "each one that was not cancelled arrives once, and no other");
    for id in ids {
        let status = world.expanded(id).await["status"]["status"].clone();
        assert!(status == "Cancelled" || status == "Sent", "{status}");
        assert_eq!(world.deliveries(id).await.as_array().unwrap().len(), 1);
    }
}
