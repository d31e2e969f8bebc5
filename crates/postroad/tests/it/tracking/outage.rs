//! Tracked links work while the database is down. Clicks, opens and unsubscriptions are stored when it is back, or when
//! the service stops. An unsubscription is answered with 503, because it is confirmed only once it is stored.

use postroad_testkit::eventually;
use postroad_testkit::http::Method;
use postroad_testkit::postgres::{Database, PgProxy};
use serde_json::json;

use super::{
    open_in_browser, paths_in, send_and_receive, tracked_html, until_activity, wait_past_scanner_window,
};
use crate::world::{Engine, World, good_but};

const HTML: &str = "<body><a href='https://example.com/'>1</a></body>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_redirects_while_the_database_is_down_and_is_stored_later() {
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let world = World::start_on(Some(proxy.url()), Some(database), &[]);
    let mut body = tracked_html("ann@example.net", HTML);
    body["list_unsubscribe"] = json!({"one_click": true});
    let mail = send_and_receive(&world, &body).await;
    wait_past_scanner_window().await;
    proxy.cut();
    for _ in 0..2 {
        let reply = open_in_browser(&world, &mail.paths("/c/")[0]).await;
        assert_eq!((reply.status, reply.header("location")), (302, Some("https://example.com/")));
        assert_eq!(open_in_browser(&world, &mail.paths("/o/")[0]).await.status, 200);
    }
    world.until_logged("tracking: store unavailable; events wait in the queue").await;
    let unsubscribe_path = paths_in(&String::from_utf8_lossy(&mail.raw), "/u/").remove(0);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let reply = world
        .client
        .request(Method::POST, &unsubscribe_path, &form, "List-Unsubscribe=One-Click".into())
        .await
        .unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("60")), "{}", reply.text());
    proxy.restore();
    // Waits until the service has noticed that the database is back.
    eventually(async || {
        let reply = world.client.get("/ready").await.unwrap();
        if reply.status == 200 { Ok(()) } else { Err(format!("{}: {}", reply.status, reply.text())) }
    })
    .await;
    let activity = until_activity(&world, mail.id, 2, 2).await;
    assert_eq!(activity["clicks"][0]["bot"], false);
    // Despite the 503, the unsubscription was kept.
    let later = world.accepted_id(&good_but(json!({"to": ["ann@example.net"]}))).await;
    world.until_status(later, "Held").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_tracking_events_are_stored_when_the_service_stops() {
    let mut world = World::start(Engine::Sqlite);
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", HTML)).await;
    wait_past_scanner_window().await;
    open_in_browser(&world, &mail.paths("/c/")[0]).await;
    open_in_browser(&world, &mail.paths("/o/")[0]).await;
    let events = world.events_at_the_end(mail.id).await;
    assert_eq!(events.len(), 4, "{events:?}");
}
