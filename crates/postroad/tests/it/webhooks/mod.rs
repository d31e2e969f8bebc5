//! Webhooks and the event feed as their receivers see them.

mod calls;
mod crash;
mod crowd;
mod deleted_server;
mod feed;
mod guard;
mod libraries;
mod listen;
mod postal;
mod stopping;
mod trouble;

use postroad_testkit::eventually;
use serde_json::{Value, json};

use crate::world::World;

pub(crate) const EVENTS: &str = "/api/v1/events/list";

/// Short pauses between attempts, so that tests do not wait for the default ones.
const QUICK_RETRIES: (&str, &str) =
    ("POSTROAD_WEBHOOKS_RETRY_SCHEDULE", "100ms,100ms,100ms,100ms,100ms,100ms");

impl World {
    /// Calls `webhooks/<action>` and returns the `data` of the success.
    pub(crate) async fn webhooks(&self, action: &str, body: &Value) -> Value {
        let answer = self.call(&format!("/api/v1/webhooks/{action}"), body).await;
        assert_eq!(answer["status"], "success", "{action}: {answer}");
        answer["data"].clone()
    }

    /// Creates a webhook for some events; returns it, with the secret.
    async fn new_webhook(&self, url: &str, events: Value) -> Value {
        self.webhooks("create", &json!({ "url": url, "events": events })).await
    }

    async fn attempts(&self, webhook: &Value) -> Vec<Value> {
        let data = self.webhooks("attempts", &json!({ "id": webhook["id"], "limit": 500 })).await;
        data["items"].as_array().unwrap().clone()
    }

    /// The webhook's attempts, newest first, as soon as `is_enough` holds for them.
    async fn until_attempts(&self, webhook: &Value, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        eventually(async || {
            let attempts = self.attempts(webhook).await;
            if is_enough(&attempts) {
                return Ok(attempts);
            }
            Err(format!("{attempts:#?}\n{}", self.daemon.stderr_text()))
        })
        .await
    }

    async fn until_webhook(&self, webhook: &Value, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(async || {
            let now = self.webhooks("get", &json!({ "id": webhook["id"] })).await;
            if is_so(&now) { Ok(now) } else { Err(format!("{now:#}\n{}", self.daemon.stderr_text())) }
        })
        .await
    }
}
