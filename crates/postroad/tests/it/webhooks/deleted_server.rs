//! Events of a deleted server wait for its webhooks until it is restored.

use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use crate::accounts::{ACCOUNT, Customer, SERVER, create_customer, done};
use crate::world::{Engine, World, both_engines, good_but};

/// Long enough to delete a server between two posts.
const PAUSES: (&str, &str) = ("POSTROAD_WEBHOOKS_RETRY_SCHEDULE", "2s,2s,2s,2s");

both_engines!(events_of_a_deleted_server_are_posted_after_its_restore);

async fn add_webhook(world: &World, of: &Customer, at: usize, url: String) {
    let webhook = json!({"url": url, "events": ["message.accepted"]});
    done(world, (SERVER, &of.server_keys[at]), "webhooks/create", &webhook).await;
}

async fn send(world: &World, of: &Customer, at: usize, domain: &str) {
    let mail = good_but(json!({"from": format!("shop@{domain}")}));
    done(world, (SERVER, &of.server_keys[at]), "send/message", &mail).await;
}

async fn events_of_a_deleted_server_are_posted_after_its_restore(engine: Engine) {
    let world = World::start_with(engine, &[PAUSES]);
    let one = create_customer(&world, "one").await;
    let catcher = WebhookCatcher::start();
    catcher.answer("/shop", CatcherAnswer::Status(503)).answer("/news", CatcherAnswer::Status(503));
    for (at, name) in ["shop", "news"].into_iter().enumerate() {
        let (domain, owner) = (format!("{name}.example"), format!("one/{name}"));
        for action in ["create", "set-verified"] {
            world.admin(&["domain", action, &domain, "--server", &owner]);
        }
        add_webhook(&world, &one, at, catcher.url(&format!("/{name}"))).await;
    }
    send(&world, &one, 0, "shop.example").await;
    let first = catcher.wait_for("/shop", 1).remove(0);
    let by = (ACCOUNT, one.key.as_str());
    done(&world, by, "servers/delete", &json!({ "id": one.servers[0] })).await;
    // After three posts of the other server, the next one of this server has been due for a while.
    send(&world, &one, 1, "news.example").await;
    catcher.wait_for("/news", 3);
    assert_eq!(catcher.received_at("/shop").len(), 1, "{:?}", catcher.received_at("/shop"));
    catcher.answer("/shop", CatcherAnswer::Status(200));
    done(&world, by, "servers/restore", &json!({ "id": one.servers[0] })).await;
    let posts = catcher.wait_for("/shop", 2);
    assert_eq!(posts[1].header("webhook-id"), first.header("webhook-id"));
    assert_eq!(posts[1].body, first.body);
}
