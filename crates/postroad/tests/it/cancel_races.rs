//! Cancelling by tag and by batch while the messages are being delivered: each is cancelled or delivered, never both.

use std::time::Duration;

use postroad_model::{Clock, SystemClock};
use postroad_testkit::smtp_peer::Script;
use serde_json::{Value, json};

use crate::batch::{BATCH, batch_to, id_of};
use crate::delivery::outside::Outside;
use crate::world::{Engine, both_engines};

const CANCEL: &str = "/api/v1/send/cancel";
const MESSAGES: usize = 200;
/// Maximum number of messages that one call cancels. Small, so that delivery begins between two calls.
const CANCELLED_PER_CALL_MAX: usize = 5;

both_engines!(
    messages_of_a_tag_are_cancelled_or_delivered_and_never_both,
    messages_of_a_batch_are_cancelled_or_delivered_and_never_both
);

async fn messages_of_a_tag_are_cancelled_or_delivered_and_never_both(engine: Engine) {
    race(engine, |_| json!({"tag": "raced", "limit": CANCELLED_PER_CALL_MAX})).await;
}

async fn messages_of_a_batch_are_cancelled_or_delivered_and_never_both(engine: Engine) {
    race(engine, |batch_id| json!({"batch_id": batch_id, "limit": CANCELLED_PER_CALL_MAX})).await;
}

/// Cancels messages while they become due; `request` makes the body of a cancel call from the id of their batch.
async fn race(engine: Engine, request: impl Fn(&Value) -> Value) {
    let outside = Outside::new();
    let peer = outside.site("race.example", Script::new());
    let world = outside.start(engine, &[]);
    let mut batch = batch_to((0..MESSAGES).map(|number| format!("r{number}@race.example")));
    let due = SystemClock.now().plus(Duration::from_millis(1_500));
    batch["defaults"]["send_at"] = json!(due.to_rfc3339());
    batch["defaults"]["tag"] = json!("raced");
    let accepted = world.call(BATCH, &batch).await["data"].clone();
    let ids: Vec<i64> = accepted["results"].as_array().unwrap().iter().map(id_of).collect();
    let request = request(&accepted["batch_id"]);

    // Cancel from just before the messages are due until nothing is left to cancel.
    tokio::time::sleep(due.since(SystemClock.now()).saturating_sub(Duration::from_millis(40))).await;
    let mut cancelled = 0;
    loop {
        let answer = world.call(CANCEL, &request).await;
        assert_eq!(answer["status"], "success", "{answer}");
        cancelled += answer["data"]["cancelled"].as_u64().unwrap() as usize;
        if answer["data"]["matched"] == 0 && SystemClock.now() > due {
            break;
        }
    }
    let mut sent = 0;
    for id in ids {
        let status = world.expanded(id).await["status"]["status"].clone();
        if status != "Cancelled" {
            world.until_status(id, "Sent").await;
            sent += 1;
        }
        assert_eq!(world.deliveries(id).await.as_array().unwrap().len(), 1, "message {id}");
    }
    assert_eq!(sent + cancelled, MESSAGES, "each answer counts what was cancelled");
    assert!(cancelled > 0 && sent > 0, "{cancelled} of {MESSAGES}: there was no race");
    assert_eq!(peer.messages().len(), sent);
}
