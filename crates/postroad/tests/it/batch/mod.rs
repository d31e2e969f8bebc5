//! The endpoint `send/batch` over HTTP, on both store engines.

mod crash;
mod limits;
mod results;
mod same_rules;

use serde_json::{Value, json};

use crate::world::World;

pub(crate) const BATCH: &str = "/api/v1/send/batch";

/// The sender and the texts for all messages of a batch.
pub(crate) fn defaults() -> Value {
    json!({"from": "Shop <shop@example.test>", "subject": "Your order", "plain_body": "Thank you."})
}

/// A batch to these recipients, one message each.
pub(crate) fn batch_to(addresses: impl IntoIterator<Item = String>) -> Value {
    let messages: Vec<Value> = addresses.into_iter().map(|address| json!({"to": [address]})).collect();
    json!({"defaults": defaults(), "messages": messages})
}

/// Sends a batch, which succeeds; returns the `data` of the answer.
pub(crate) async fn send_batch(world: &World, batch: &Value) -> Value {
    let answer = world.call(BATCH, batch).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

/// The id of the only message of an accepted result.
pub(crate) fn id_of(result: &Value) -> i64 {
    let messages = result["messages"].as_object().unwrap_or_else(|| panic!("not accepted: {result}"));
    messages.values().next().expect("a message")["id"].as_i64().expect("an integer")
}
