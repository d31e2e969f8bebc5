//! Webhook endpoints that answer badly, late, too much or not at all.

use std::time::{Duration, Instant};

use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use super::QUICK_RETRIES;
use crate::world::{Engine, World, both_engines, good};

both_engines!(
    a_failed_post_is_made_again_with_the_same_bytes,
    retry_after_pauses_all_events_of_an_endpoint,
    events_during_a_hanging_post_are_posted_at_once,
    status_410_disables_the_webhook_and_notifies_the_others,
    a_webhook_without_a_success_for_too_long_is_disabled,
    endpoints_that_hang_fail_redirect_or_never_end_their_answer_delay_no_other
);

async fn a_failed_post_is_made_again_with_the_same_bytes(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES]);
    let catcher = WebhookCatcher::start();
    catcher.answer_next("/in", [CatcherAnswer::Status(500), CatcherAnswer::Status(429)]);
    let webhook = world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good()).await;
    let posts = catcher.wait_for("/in", 3);
    assert!(posts.iter().all(|post| post.body == posts[0].body));
    assert!(posts.iter().all(|post| post.header("webhook-id") == posts[0].header("webhook-id")));
    let attempts = world.until_attempts(&webhook, |attempts| attempts.len() == 3).await;
    assert_eq!((&attempts[2]["status"], &attempts[2]["error_class"]), (&json!(500), &json!("http_status")));
    assert_eq!((&attempts[0]["number"], &attempts[0]["success"]), (&json!(3), &json!(true)));
    assert!(attempts[2]["next_attempt_at"].is_string() && attempts[0]["next_attempt_at"].is_null());
}

async fn retry_after_pauses_all_events_of_an_endpoint(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES]);
    let catcher = WebhookCatcher::start();
    let retry_after = vec![("retry-after".to_owned(), "2".to_owned())];
    catcher.answer_next("/in", [CatcherAnswer::Full(429, retry_after, Vec::new())]);
    world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good()).await;
    catcher.wait_for("/in", 1);
    world.accepted(&good()).await;
    let posts = catcher.wait_for("/in", 3);
    let pause = posts[1].at.saturating_duration_since(posts[0].at);
    assert!(pause >= Duration::from_millis(1_900), "{pause:?}");
}

async fn events_during_a_hanging_post_are_posted_at_once(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES]);
    let catcher = WebhookCatcher::start();
    let good_twice = [CatcherAnswer::Status(200), CatcherAnswer::Status(200)];
    catcher.answer_next("/in", good_twice.into_iter().chain([CatcherAnswer::Hang]));
    world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    for count in 1..=3 {
        world.accepted(&good()).await;
        catcher.wait_for("/in", count);
    }
    let begun = Instant::now();
    world.accepted(&good()).await;
    let posted_after = catcher.wait_for("/in", 4)[3].at.saturating_duration_since(begun);
    assert!(posted_after < Duration::from_secs(8), "{posted_after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_that_cannot_be_stored_stops_no_other_webhook() {
    let mut world = World::start_with(Engine::Postgres, &[QUICK_RETRIES]);
    world.database().refuse_webhook_attempts("/refused");
    let catcher = WebhookCatcher::start();
    let events = json!(["message.accepted"]);
    world.new_webhook(&catcher.url("/refused"), events.clone()).await;
    let healthy = world.new_webhook(&catcher.url("/lives"), events).await;
    for count in 1..=3 {
        world.accepted(&good()).await;
        catcher.wait_for("/refused", count);
        world.until_attempts(&healthy, |attempts| attempts.len() == count).await;
    }
    let store = world.stopped_store().await;
    assert!(store.list_due_webhooks().await.unwrap().is_empty(), "no event is posted again");
}

async fn status_410_disables_the_webhook_and_notifies_the_others(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/gone", CatcherAnswer::Status(410));
    let gone = world.new_webhook(&catcher.url("/gone"), json!(["message.accepted"])).await;
    world.new_webhook(&catcher.url("/other"), json!(["webhook.disabled"])).await;
    world.accepted(&good()).await;
    let event = catcher.wait_for("/other", 1).remove(0).json();
    assert_eq!(event["type"], "webhook.disabled");
    assert_eq!(event["data"]["webhook"]["id"], gone["id"]);
    let now = world.until_webhook(&gone, |now| now["enabled"] == false).await;
    assert!(now["disabled_reason"].as_str().unwrap().contains("410"), "{now}");
    world.accepted(&good()).await;
    // Once the webhook is enabled again, it gets the events from then on, but none from before.
    world.webhooks("update", &json!({ "id": gone["id"], "enabled": true })).await;
    catcher.answer("/gone", CatcherAnswer::Status(200));
    let third = world.accepted_id(&good()).await;
    let posts = catcher.wait_for("/gone", 2);
    assert_eq!(posts[1].json()["data"]["message"]["id"], third);
}

async fn a_webhook_without_a_success_for_too_long_is_disabled(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES, ("POSTROAD_WEBHOOKS_DISABLE_AFTER", "150ms")]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/in", CatcherAnswer::Status(500));
    let webhook = world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good()).await;
    world.until_webhook(&webhook, |now| now["enabled"] == false).await;
}

async fn endpoints_that_hang_fail_redirect_or_never_end_their_answer_delay_no_other(engine: Engine) {
    let world = World::start_with(engine, &[QUICK_RETRIES]);
    let catcher = WebhookCatcher::start();
    catcher.answer("/hangs", CatcherAnswer::Hang).answer("/endless", CatcherAnswer::Endless);
    catcher.answer("/fails", CatcherAnswer::Status(500));
    catcher.answer("/elsewhere", CatcherAnswer::redirect(&catcher.url("/inside")));
    let events = json!(["message.accepted"]);
    for path in ["/hangs", "/fails"] {
        world.new_webhook(&catcher.url(path), events.clone()).await;
    }
    let endless = world.new_webhook(&catcher.url("/endless"), events.clone()).await;
    let elsewhere = world.new_webhook(&catcher.url("/elsewhere"), events.clone()).await;
    world.new_webhook(&catcher.url("/healthy"), events).await;
    let mut slowest = Duration::ZERO;
    for count in 1..=20 {
        let begun = Instant::now();
        world.accepted(&good()).await;
        let posts = catcher.wait_for("/healthy", count);
        slowest = slowest.max(posts[count - 1].at.saturating_duration_since(begun));
    }
    eprintln!("the healthy endpoint got every post within {slowest:?} of the call");
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    let attempts = world.until_attempts(&endless, |attempts| !attempts.is_empty()).await;
    assert_eq!(attempts[0]["status"], 200);
    assert_eq!(attempts[0]["answer"].as_str().unwrap().len(), 4_096);
    let attempts = world.until_attempts(&elsewhere, |attempts| !attempts.is_empty()).await;
    assert_eq!((&attempts[0]["status"], &attempts[0]["success"]), (&json!(302), &json!(false)));
    assert!(catcher.received_at("/inside").is_empty(), "redirects are not followed");
}
