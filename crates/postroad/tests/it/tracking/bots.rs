//! Detection of bots that fetch links.

use postroad_testkit::http::Method;
use serde_json::Value;

use super::{FIREFOX, delivered, fetch, look, tracked_html, until_activity, wait_as_a_person};
use crate::world::{Engine, World, both_engines};

const THREE_LINKS: &str = "<body><a href='https://example.com/1'>1</a><a href='https://example.com/2'>2</a>\
                           <a href='https://example.com/3'>3</a></body>";

fn bots(entries: &Value) -> Vec<bool> {
    entries.as_array().unwrap().iter().map(|entry| entry["bot"].as_bool().unwrap()).collect()
}

both_engines!(head_prefetch_and_scanners_are_marked);

async fn head_prefetch_and_scanners_are_marked(world: World) {
    let got = delivered(&world, &tracked_html("ann@example.net", THREE_LINKS)).await;
    let (link, pixel) = (got.paths("/c/").remove(0), got.paths("/o/").remove(0));
    wait_as_a_person().await;
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
    look(&world, &link).await;
    look(&world, &pixel).await;
    let activity = until_activity(&world, got.id, 3, 8).await;
    assert_eq!(bots(&activity["clicks"]), [true, true, true, true, true, true, true, false]);
    assert_eq!(bots(&activity["loads"]), [true, true, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_links_at_once_count_as_a_scanner() {
    let world = World::start(Engine::Sqlite);
    let got = delivered(&world, &tracked_html("ann@example.net", THREE_LINKS)).await;
    wait_as_a_person().await;
    let (a, b, c) = (&got.paths("/c/")[0], &got.paths("/c/")[1], &got.paths("/c/")[2]);
    tokio::join!(look(&world, a), look(&world, b), look(&world, c));
    let activity = until_activity(&world, got.id, 0, 3).await;
    assert_eq!(bots(&activity["clicks"]), [true, true, true]);
    let other = delivered(&world, &tracked_html("bob@example.net", THREE_LINKS)).await;
    wait_as_a_person().await;
    look(&world, &other.paths("/c/")[0]).await;
    look(&world, &other.paths("/c/")[1]).await;
    let activity = until_activity(&world, other.id, 0, 2).await;
    assert_eq!(bots(&activity["clicks"]), [false, false]);
}
