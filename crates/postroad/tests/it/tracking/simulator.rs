//! The simulator's recipients `open@` and `click@` open a message or click its first link over HTTP.

use postroad_testkit::http::Method;
use serde_json::json;

use super::{fetch, tracked_html, until_activity};
use crate::world::{World, both_engines, good_but};

const HTML: &str =
    "<body><a href='https://example.com/first'>1</a><a href='https://example.com/second'>2</a></body>";

both_engines!(simulated_readers_open_and_click);

async fn simulated_readers_open_and_click(world: World) {
    let opened = world.accepted_id(&tracked_html("open+1@sim.postroad.test", HTML)).await;
    let clicked = world.accepted_id(&tracked_html("click@sim.postroad.test", HTML)).await;
    let unopened = world.accepted_id(&tracked_html("delivered@sim.postroad.test", HTML)).await;
    let loads = until_activity(&world, opened, 1, 0).await;
    assert_eq!((&loads["loads"][0]["bot"], &loads["clicks"]), (&json!(false), &json!([])));
    let clicks = until_activity(&world, clicked, 0, 1).await;
    assert_eq!(clicks["clicks"][0]["url"], "https://example.com/first");
    assert_eq!(clicks["clicks"][0]["bot"], false);
    let activity = until_activity(&world, unopened, 0, 0).await;
    assert_eq!(activity, json!({"loads": [], "clicks": []}));
    // Untracked mail has nothing to fetch.
    let untracked = world.accepted_id(&good_but(json!({"to": ["click@sim.postroad.test"]}))).await;
    world.until_status(untracked, "Sent").await;
    assert_eq!(fetch(&world, Method::GET, "/c/x", &[]).await.status, 404);
}
