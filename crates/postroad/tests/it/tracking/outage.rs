//! Links work while the database does not, and what was clicked is stored when it is back. Also after a stop.

use postroad_testkit::postgres::{Database, PgProxy};

use super::{delivered, look, read_on, tracked_html, until_activity};
use crate::world::{Engine, World};

const HTML: &str = "<body><a href='https://example.com/'>1</a></body>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_leads_on_while_the_database_is_down_and_is_stored_later() {
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let world = World::start_on(Some(proxy.url()), Some(database), &[]);
    let got = delivered(&world, &tracked_html("ann@example.net", HTML)).await;
    read_on().await;
    proxy.cut();
    for _ in 0..2 {
        let reply = look(&world, &got.paths("/c/")[0]).await;
        assert_eq!((reply.status, reply.header("location")), (302, Some("https://example.com/")));
        assert_eq!(look(&world, &got.paths("/o/")[0]).await.status, 200);
    }
    world.until_logged("clicks and opens wait for the store").await;
    proxy.restore();
    // Not asked before it is back, and then until it is there.
    while world.client.get("/ready").await.unwrap().status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let activity = until_activity(&world, got.id, 2, 2).await;
    assert_eq!(activity["clicks"][0]["bot"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_written_when_the_service_stops() {
    let mut world = World::start(Engine::Sqlite);
    let got = delivered(&world, &tracked_html("ann@example.net", HTML)).await;
    read_on().await;
    look(&world, &got.paths("/c/")[0]).await;
    look(&world, &got.paths("/o/")[0]).await;
    let events = world.events_at_the_end(got.id).await;
    assert_eq!(events.len(), 4, "{events:?}");
}
