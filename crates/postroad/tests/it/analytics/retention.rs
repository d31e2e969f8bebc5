//! What is older than it is kept goes by itself; what is not done stays.

use std::time::{Duration, Instant};

use postroad_model::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::world::{Engine, World, good, good_but};

/// PostgreSQL removes whole weeks, which no test waits for; the store's own tests move its clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_text_goes_and_what_is_scheduled_stays() {
    let envs = [("POSTROAD_RETENTION_BODIES", "1s"), ("POSTROAD_RETENTION_CHECK_EVERY", "100ms")];
    let world = World::start_with(Engine::Sqlite, &envs);
    let id = world.accepted_id(&good()).await;
    world.until_status(id, "Sent").await;
    world.until_logged("removed what is kept no longer").await;
    let deadline = Instant::now() + Duration::from_secs(30);
    let message = loop {
        let message = world.expanded(id).await;
        if message["raw_message"].is_null() || Instant::now() > deadline {
            break message;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for gone in ["raw_message", "plain_body", "html_body", "headers", "attachments"] {
        assert_eq!(message.get(gone), Some(&Value::Null), "{gone}: {message:#}");
    }
    assert_eq!(message["details"]["subject"], "Your order");
    assert_eq!(world.deliveries(id).await.as_array().unwrap().len(), 1);

    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let scheduled = world.accepted_id(&good_but(json!({ "send_at": tomorrow }))).await;
    // Nothing tells that something was not removed: two turns and more have to pass.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(world.expanded(scheduled).await["raw_message"].is_string());
}
