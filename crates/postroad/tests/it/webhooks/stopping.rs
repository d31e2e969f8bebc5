//! SIGTERM during a webhook post: the post is finished, or repeated after the restart or by another node. Two nodes
//! with one outbox post each event once.

use std::collections::HashSet;
use std::time::Duration;

use postroad_testkit::postgres::Database;
use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use crate::world::{Engine, World, both_engines, good_but};

const MESSAGES: usize = 60;

both_engines!(a_stop_waits_for_the_post_under_way, a_post_that_hangs_at_a_stop_is_repeated_after_the_restart);

async fn a_stop_waits_for_the_post_under_way(engine: Engine) {
    let mut world = World::start(engine);
    let catcher = WebhookCatcher::start();
    catcher.answer_next("/in", [CatcherAnswer::Late(Duration::from_secs(1))]);
    let webhook = world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good_but(json!({}))).await;
    let first = catcher.wait_for("/in", 1).remove(0);
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    world.restart();
    let attempts = world.attempts(&webhook).await;
    assert_eq!(attempts.iter().map(|attempt| &attempt["status"]).collect::<Vec<_>>(), [200], "{attempts:#?}");
    world.accepted(&good_but(json!({}))).await;
    let second = catcher.wait_for("/in", 2).remove(1);
    assert_ne!(first.header("webhook-id"), second.header("webhook-id"), "the first is not posted again");
}

async fn a_post_that_hangs_at_a_stop_is_repeated_after_the_restart(engine: Engine) {
    let mut world = World::start(engine);
    let catcher = WebhookCatcher::start();
    catcher.answer_next("/in", [CatcherAnswer::Hang]);
    world.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    world.accepted(&good_but(json!({}))).await;
    let before = catcher.wait_for("/in", 1).remove(0);
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    world.restart();
    let after = catcher.wait_for("/in", 2).remove(1);
    assert_eq!((after.header("webhook-id"), &after.body), (before.header("webhook-id"), &before.body));
}

/// The receiver gets every event exactly once, whichever node accepted the message, delivered it and posted the event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_post_each_event_once() {
    let database = Database::create();
    let url = database.url().to_owned();
    let first = World::start_on(Some(&url), Some(database), &[]);
    let second = World::start_on(Some(&url), None, &[]);
    let catcher = WebhookCatcher::start();
    let webhook =
        first.new_webhook(&catcher.url("/in"), json!(["message.accepted", "message.delivered"])).await;
    for number in 0..MESSAGES {
        let world = if number % 2 == 0 { &first } else { &second };
        world.accepted(&good_but(json!({"to": [format!("u{number}@example.com")]}))).await;
    }
    let posts = catcher.wait_for("/in", 2 * MESSAGES);
    let ids: HashSet<&str> =
        posts.iter().map(|post| post.header("webhook-id").expect("every post has it")).collect();
    assert_eq!(ids.len(), 2 * MESSAGES, "each once");
    // All outcomes are stored, so no node posts again.
    let attempts = first.until_attempts(&webhook, |attempts| attempts.len() >= 2 * MESSAGES).await;
    assert_eq!((attempts.len(), catcher.received_at("/in").len()), (2 * MESSAGES, 2 * MESSAGES));
}

/// Posts that a stopped node could not finish are repeated at once by another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_hangs_at_a_stop_is_repeated_by_another_node() {
    let database = Database::create();
    let url = database.url().to_owned();
    let mut first = World::start_on(Some(&url), Some(database), &[]);
    let catcher = WebhookCatcher::start();
    catcher.answer_next("/in", [CatcherAnswer::Hang]);
    first.new_webhook(&catcher.url("/in"), json!(["message.accepted"])).await;
    first.accepted(&good_but(json!({}))).await;
    let before = catcher.wait_for("/in", 1).remove(0);
    let _second = World::start_on(Some(&url), None, &[]);
    assert!(first.daemon.terminate().success(), "{}", first.daemon.stderr_text());
    let after = catcher.wait_for("/in", 2).remove(1);
    assert_eq!((after.header("webhook-id"), &after.body), (before.header("webhook-id"), &before.body));
}
