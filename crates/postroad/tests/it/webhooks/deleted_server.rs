//! Events of a deleted server are posted to its webhooks only after the server is restored.

use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use crate::accounts::{ACCOUNT, Customer, SERVER, call_ok, create_customer};
use crate::world::{Engine, World, both_engines, good_but};

/// Long enough to delete a server between two posts.
const RETRY_SCHEDULE: (&str, &str) = ("POSTROAD_WEBHOOKS_RETRY_SCHEDULE", "2s,2s,2s,2s");

both_engines!(events_of_a_deleted_server_are_posted_after_its_restore);

async fn add_webhook(world: &World, customer: &Customer, index: usize, url: String) {
    let webhook = json!({"url": url, "events": ["message.accepted"]});
    call_ok(world, (SERVER, &customer.server_keys[index]), "webhooks/create", &webhook).await;
}

async fn send(world: &World, customer: &Customer, index: usize, domain: &str) {
    let mail = good_but(json!({"from": format!("shop@{domain}")}));
    call_ok(world, (SERVER, &customer.server_keys[index]), "send/message", &mail).await;
}

async fn events_of_a_deleted_server_are_posted_after_its_restore(engine: Engine) {
    let world = World::start_with(engine, &[RETRY_SCHEDULE]);
    let customer = create_customer(&world, "one").await;
    let catcher = WebhookCatcher::start();
    catcher.answer("/shop", CatcherAnswer::Status(503)).answer("/news", CatcherAnswer::Status(503));
    for (index, name) in ["shop", "news"].into_iter().enumerate() {
        let (domain, owner) = (format!("{name}.example"), format!("one/{name}"));
        for action in ["create", "set-verified"] {
            world.admin(&["domain", action, &domain, "--server", &owner]);
        }
        add_webhook(&world, &customer, index, catcher.url(&format!("/{name}"))).await;
    }
    send(&world, &customer, 0, "shop.example").await;
    let first = catcher.wait_for("/shop", 1).remove(0);
    let account_key = (ACCOUNT, customer.key.as_str());
    call_ok(&world, account_key, "servers/delete", &json!({ "id": customer.servers[0] })).await;
    // After three posts of the other server, the next post of the deleted server has been due for a while.
    send(&world, &customer, 1, "news.example").await;
    catcher.wait_for("/news", 3);
    assert_eq!(catcher.received_at("/shop").len(), 1, "{:?}", catcher.received_at("/shop"));
    catcher.answer("/shop", CatcherAnswer::Status(200));
    call_ok(&world, account_key, "servers/restore", &json!({ "id": customer.servers[0] })).await;
    let posts = catcher.wait_for("/shop", 2);
    assert_eq!(posts[1].header("webhook-id"), first.header("webhook-id"));
    assert_eq!(posts[1].body, first.body);
}
