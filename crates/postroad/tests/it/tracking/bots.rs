//! Detection of bots that fetch links.

use postroad_testkit::http::Method;
use serde_json::Value;

use super::{
    FIREFOX, fetch, open_in_browser, send_and_receive, tracked_html, until_activity, wait_past_scanner_window,
};
use crate::world::{Engine, World, both_engines};

const THREE_LINKS: &str = "<body><a href='https://example.com/1'>1</a><a href='https://example.com/2'>2</a>\
                           <a href='https://example.com/3'>3</a></body>";

fn bot_flags(entries: &Value) -> Vec<bool> {
    entries.as_array().unwrap().iter().map(|entry| entry["bot"].as_bool().unwrap()).collect()
}

both_engines!(head_requests_prefetches_and_scanners_are_marked_as_bots);

async fn head_requests_prefetches_and_scanners_are_marked_as_bots(world: World) {
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", THREE_LINKS)).await;
    let (link, pixel) = (mail.paths("/c/").remove(0), mail.paths("/o/").remove(0));
    wait_past_scanner_window().await;
    let agent = |name: &'static str| [("User-Agent", name)];
    let scanner = agent("Mozilla/5.0 (Windows NT 6.1) AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b");
    let reply = fetch(&world, Method::HEAD, &link, &[FIREFOX]).await;
    assert_eq!((reply.status, reply.header("location")), (302, Some("https://example.com/1")));
    for headers in [
        &[FIREFOX, ("Purpose", "prefetch")][..],
        &[FIREFOX, ("Sec-Purpose", "prefetch;prerender")],
        &[FIREFOX, ("X-Moz", "prefetch")],
        &scanner,
        &agent("python-requests/2.31.0"),
        &[],
    ] {
        assert_eq!(fetch(&world, Method::GET, &link, headers).await.status, 302);
    }
    assert_eq!(fetch(&world, Method::HEAD, &pixel, &[FIREFOX]).await.status, 200);
    assert_eq!(fetch(&world, Method::GET, &pixel, &agent("Mozilla/5.0")).await.status, 200);
    open_in_browser(&world, &link).await;
    open_in_browser(&world, &pixel).await;
    let activity = until_activity(&world, mail.id, 3, 8).await;
    assert_eq!(bot_flags(&activity["clicks"]), [true, true, true, true, true, true, true, false]);
    assert_eq!(bot_flags(&activity["loads"]), [true, true, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_links_opened_at_once_count_as_clicks_of_a_scanner() {
    let world = World::start(Engine::Sqlite);
    let mail = send_and_receive(&world, &tracked_html("ann@example.net", THREE_LINKS)).await;
    wait_past_scanner_window().await;
    let (a, b, c) = (&mail.paths("/c/")[0], &mail.paths("/c/")[1], &mail.paths("/c/")[2]);
    tokio::join!(open_in_browser(&world, a), open_in_browser(&world, b), open_in_browser(&world, c));
    let activity = until_activity(&world, mail.id, 0, 3).await;
    assert_eq!(bot_flags(&activity["clicks"]), [true, true, true]);
    let other = send_and_receive(&world, &tracked_html("bob@example.net", THREE_LINKS)).await;
    wait_past_scanner_window().await;
    open_in_browser(&world, &other.paths("/c/")[0]).await;
    open_in_browser(&world, &other.paths("/c/")[1]).await;
    let activity = until_activity(&world, other.id, 0, 2).await;
    assert_eq!(bot_flags(&activity["clicks"]), [false, false]);
}
