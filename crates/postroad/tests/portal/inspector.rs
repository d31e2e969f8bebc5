//! The request inspector: two nodes of one database, limits on requests, and erasure.

use std::time::Duration;

use futures_util::future::join_all;
use postroad_testkit::eventually;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::roles::{call, join};
use crate::service::DevService;

/// Opens the inspector of the first server; returns the paths of its page and of its URL.
async fn open_inspector(service: &DevService, cookie: &str) -> (String, String) {
    let page = format!("{}/webhooks/inspector", service.server_path(cookie).await);
    assert_eq!(service.submit(&page, cookie, "").await.status, 303);
    let text = service.get(&page, cookie).await.text();
    let (_, rest) = text.split_once("/inspect/").expect("the page shows the URL");
    let token = rest.split('<').next().unwrap();
    (page, format!("/inspect/{token}"))
}

#[tokio::test]
async fn a_request_to_one_node_is_shown_on_the_pages_of_all_nodes() {
    let service = DevService::start_on_postgres();
    let second = service.start_beside();
    let cookie = service.sign_in().await;
    let (page, address) = open_inspector(&service, &cookie).await;
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&page)).await;
    browser.until_text("Waiting for a request").await;
    assert_eq!(second.post(&address, &[], "from=the-other-node\0").await.status, 200);
    browser.until_text("the-other-node").await;
    let shown = second.get(&page, &cookie).await.text();
    assert!(shown.contains(&address) && shown.contains("the-other-node"), "{shown}");
    // If the inspector is opened again, on either node, it keeps its URL.
    assert_eq!(open_inspector(&second, &cookie).await.1, address);
    assert_eq!(second.submit(&format!("{page}/clear"), &cookie, "").await.status, 303);
    browser.until_text("Waiting for a request").await;
}

#[tokio::test]
async fn requests_beyond_the_rate_limit_are_refused_for_a_moment() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let (_, address) = open_inspector(&service, &cookie).await;
    let mut refused = None;
    for _ in 0..20 {
        let replies = join_all((0..40).map(|_| service.post(&address, &[], "x=1"))).await;
        assert!(replies.iter().all(|reply| [200, 429].contains(&reply.status)), "{replies:?}");
        refused = replies.into_iter().find(|reply| reply.status == 429);
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("an inspector takes 20 requests a second");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(service.post("/inspect/AAAAAAAAAAAAAAAAAAAAAAAA", &[], "x=1").await.status, 404);
    eventually(async || match service.post(&address, &[], "x=later").await.status {
        200 => Ok(()),
        status => Err(format!("{status}")),
    })
    .await;
}

#[tokio::test]
async fn large_requests_are_refused_before_they_fill_the_disk() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let (page, address) = open_inspector(&service, &cookie).await;
    let large = "x".repeat(70 << 10);
    // 1 MiB are 16 bodies of 64 KiB; more are taken only at 128 KiB a second.
    let replies = join_all((0..40).map(|_| service.post(&address, &[], &large))).await;
    assert!(replies.iter().all(|reply| [200, 429].contains(&reply.status)), "{replies:?}");
    assert!(replies.iter().any(|reply| reply.status == 429), "{replies:?}");
    assert!(replies.iter().any(|reply| reply.status == 200), "{replies:?}");
    // A small request is accepted again after a moment.
    eventually(async || match service.post(&address, &[], "{\"a\":{\"b\":1}}").await.status {
        200 => Ok(()),
        status => Err(format!("{status}")),
    })
    .await;
    let shown = service.get(&page, &cookie).await.text();
    assert!(shown.contains("&#34;a&#34;: {\n  "), "with indents: {shown}");
    let (_, rest) = shown.split_once("?request=").expect("a long body has its own page");
    let whole = service.get(&format!("{page}?request={}", rest.split('"').next().unwrap()), &cookie).await;
    assert!(whole.status == 200 && whole.body.len() > 64 << 10, "{}", whole.status);
    assert_eq!(service.get(&format!("{page}?request=999"), &cookie).await.status, 404);
    let too_large = service.post(&address, &[], &"x".repeat((1 << 20) + 1)).await;
    assert!([413, 429].contains(&too_large.status), "{too_large:?}");
}

#[tokio::test]
async fn a_request_whose_body_stalls_is_ended() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let (page, address) = open_inspector(&service, &cookie).await;
    let mut stream = TcpStream::connect(service.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("POST {address} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nstalled");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    tokio::time::timeout(Duration::from_mins(1), read).await.expect("it does not wait for ever").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert!(!service.get(&page, &cookie).await.text().contains("stalled"));
}

#[tokio::test]
async fn every_erasure_removes_what_webhooks_posted_to_the_inspector() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let (page, address) = open_inspector(&service, &cookie).await;
    let key = service.ready("api_key");
    let post_and_see = async || {
        assert_eq!(service.post(&address, &[], "{\"subject\":\"Private words\"}").await.status, 200);
        assert!(service.get(&page, &cookie).await.text().contains("Private words"));
    };
    let until_removed = async || {
        eventually(async || {
            let text = service.get(&page, &cookie).await.text();
            assert!(text.contains(&address), "the address stays");
            if text.contains("Private words") { Err("it is still there") } else { Ok(()) }
        })
        .await;
    };
    for tag in ["one", "list", "query"] {
        let id = service.send(json!({ "tag": tag })).await;
        service.until_status(id, "Sent").await;
        post_and_see().await;
        let what = match tag {
            "one" => json!({ "id": id }),
            "list" => json!({ "ids": [id] }),
            _ => json!({ "query": format!("tag:{tag}") }),
        };
        call(&service, "x-server-api-key", &key, "messages/erase", &what).await;
        until_removed().await;
    }
    // No new request is posted here: the job of the last erasure may still run, and would remove it.
    let (_, reader) = join(&service, "reader", "read-only").await;
    let shown = service.get(&page, &reader).await;
    assert_eq!(shown.status, 200);
    assert!(!shown.text().contains("inspector/clear"), "a person who only reads has no button");
}
