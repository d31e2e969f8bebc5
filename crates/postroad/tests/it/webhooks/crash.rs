//! kill -9 between a change and the webhook post about it: the event is posted afterwards, with the same id and bytes.

use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use crate::world::{Engine, World, both_engines, good_but};

/// Enough retries, a second apart, to outlast the restart.
const RETRY_EVERY_SECOND: (&str, &str) =
    ("POSTROAD_WEBHOOKS_RETRY_SCHEDULE", "1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s");

both_engines!(
    events_not_posted_before_a_crash_are_posted_after_it,
    a_post_interrupted_by_a_crash_is_repeated
);

async fn events_not_posted_before_a_crash_are_posted_after_it(engine: Engine) {
    let mut world = World::start_with(engine, &[RETRY_EVERY_SECOND]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/in", CatcherAnswer::Status(500));
    let webhook = world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good_but(json!({ "subject": "Before the crash" }))).await;
    let before = catcher.wait_for("/in", 1).remove(0);
    // The outcome of this attempt is stored, and the next one is not made yet.
    world.until_attempts(&webhook, |attempts| !attempts.is_empty()).await;
    world.daemon.kill9();
    let count = catcher.received_at("/in").len();
    catcher.answer("/in", CatcherAnswer::Status(200));
    world.restart();
    let after = catcher.wait_for("/in", count + 1).remove(count);
    assert_eq!(after.header("webhook-id"), before.header("webhook-id"));
    assert_eq!(after.body, before.body);
    assert_eq!(after.json()["data"]["message"]["subject"], "Before the crash");
}

async fn a_post_interrupted_by_a_crash_is_repeated(engine: Engine) {
    let mut world = World::start(engine);
    let catcher = WebhookCatcher::start();
    catcher.answer("/in", CatcherAnswer::Hang);
    world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good_but(json!({}))).await;
    let before = catcher.wait_for("/in", 1).remove(0);
    world.daemon.kill9();
    catcher.answer("/in", CatcherAnswer::Status(200));
    world.restart();
    let after = catcher.wait_for("/in", 2).remove(1);
    assert_eq!((after.header("webhook-id"), &after.body), (before.header("webhook-id"), &before.body));
}
