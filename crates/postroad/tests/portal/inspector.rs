//! The request inspector on two nodes of one database, and the limit of its requests.

use futures_util::future::join_all;
use postroad_testkit::eventually;

use crate::site::Site;

/// Opens the inspector of the first server; returns the paths of its page and of its URL.
async fn open_inspector(site: &Site, cookie: &str) -> (String, String) {
    let page = format!("{}/webhooks/inspector", site.server_path(cookie).await);
    assert_eq!(site.submit(&page, cookie, "").await.status, 303);
    let text = site.get(&page, cookie).await.text();
    let (_, rest) = text.split_once("/inspect/").expect("the page shows the URL");
    let token = rest.split('<').next().unwrap();
    (page, format!("/inspect/{token}"))
}

#[tokio::test]
async fn a_request_to_one_node_is_shown_by_the_pages_of_all() {
    let site = Site::start_on_postgres();
    let second = site.start_beside();
    let cookie = site.cookie().await;
    let (page, address) = open_inspector(&site, &cookie).await;
    let browser = site.browser().await;
    browser.open(&site.path(&page)).await;
    browser.until_text("Waiting for a request").await;
    assert_eq!(second.post(&address, &[], "from=the-other-node\0").await.status, 200);
    browser.until_text("the-other-node").await;
    let shown = second.get(&page, &cookie).await.text();
    assert!(shown.contains(&address) && shown.contains("the-other-node"), "{shown}");
    // Opening it again, on either node, keeps the URL.
    assert_eq!(open_inspector(&second, &cookie).await.1, address);
    assert_eq!(second.submit(&format!("{page}/clear"), &cookie, "").await.status, 303);
    browser.until_text("Waiting for a request").await;
}

#[tokio::test]
async fn a_flood_of_requests_is_refused_for_a_moment() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let (_, address) = open_inspector(&site, &cookie).await;
    let mut refused = None;
    for _ in 0..20 {
        let replies = join_all((0..40).map(|_| site.post(&address, &[], "x=1"))).await;
        assert!(replies.iter().all(|reply| [200, 429].contains(&reply.status)), "{replies:?}");
        refused = replies.into_iter().find(|reply| reply.status == 429);
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("an inspector takes 20 requests a second");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(site.post("/inspect/AAAAAAAAAAAAAAAAAAAAAAAA", &[], "x=1").await.status, 404);
    eventually(async || match site.post(&address, &[], "x=later").await.status {
        200 => Ok(()),
        status => Err(format!("{status}")),
    })
    .await;
}
