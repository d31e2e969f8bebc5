//! Analytics from outside: counts match what was sent, and each server sees only its own.

mod attempts;
mod numbers;
mod parameters;
mod recipient_actions;
mod retention;

use postroad_testkit::eventually;
use serde_json::{Value, json};

use crate::world::World;

pub(crate) const SUMMARY: &str = "/api/v1/analytics/summary";
pub(crate) const TIMESERIES: &str = "/api/v1/analytics/timeseries";
pub(crate) const TOP: &str = "/api/v1/analytics/top";
pub(crate) const MESSAGE: &str = "/api/v1/analytics/message";

/// Calls an endpoint, which succeeds; returns its data.
pub(crate) async fn call_analytics(world: &World, path: &str, body: &Value) -> Value {
    let answer = world.call(path, body).await;
    assert_eq!(answer["status"], "success", "{answer:#}");
    answer["data"].clone()
}

/// Waits until a summary shows this count: on PostgreSQL, any open transaction delays counting.
pub(crate) async fn until_counted(world: &World, metric: &str, count: u64) -> Value {
    eventually(async || {
        let summary = call_analytics(world, SUMMARY, &json!({})).await;
        if summary[metric] == count {
            Ok(summary)
        } else {
            Err(format!("{metric} is not {count}: {summary:#}"))
        }
    })
    .await
}
