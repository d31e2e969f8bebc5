//! Weight of pages: large messages and a full inspector stay below 100 kB, style sheet and script included.

use postroad_testkit::eventually;
use postroad_testkit::http::{Bytes, Method};
use serde_json::json;

use crate::site::Site;

const BYTES_MAX: usize = 100_000;

#[tokio::test]
async fn large_contents_stay_below_a_hundred_kilobytes() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let line = "<td class=\"x\">a & b</td>\n";
    let (html, text) = (line.repeat(300_000 / line.len()), "one & two\n".repeat(30_000));
    let headers = json!({ "X-Long": "<&>".repeat(300) });
    let id = site.send(json!({ "html_body": html, "plain_body": text, "headers": headers })).await;
    site.until(id, "Sent").await;
    let inspector = format!("{server}/webhooks/inspector");
    site.submit(&inspector, &cookie, "").await;
    let page = site.get(&inspector, &cookie).await.text();
    let address = page.split("/inspect/").nth(1).unwrap().split('<').next().unwrap().to_owned();
    for number in 0..50 {
        let body = json!({ "type": "message.delivered", "number": number, "text": "<&>".repeat(6_000) });
        let headers = [("x-long", "<&>\"".repeat(200)), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let body = Bytes::from(body.to_string());
        let path = format!("/inspect/{address}");
        assert_eq!(site.client.request(Method::POST, &path, &headers, body).await.unwrap().status, 200);
    }
    let first = site.get(&server, &cookie).await.text();
    let mut shared = 0;
    for asset in first.split("/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let headers = [("accept-encoding", "gzip, deflate, br")];
        let path = format!("/assets/{asset}");
        let reply = site.client.request(Method::GET, &path, &headers, Bytes::new()).await.unwrap();
        assert_eq!(reply.headers["content-encoding"], "gzip", "{asset}");
        shared += reply.body.len();
        let plain = site.get(&path, "").await;
        assert!(
            plain.headers.get("content-encoding").is_none() && plain.body.len() > reply.body.len(),
            "{asset}"
        );
    }
    let mut pages = vec![inspector.clone(), "/inbox".to_owned(), format!("{server}/messages")];
    for view in ["timeline", "events", "preview", "links", "text", "source", "headers", "attachments"] {
        pages.push(format!("{server}/messages/{id}?view={view}"));
    }
    for view in ["preview", "text", "source", "headers"] {
        pages.push(format!("/inbox/1?view={view}"));
    }
    for page in pages {
        let reply = site.get(&page, &cookie).await;
        assert_eq!(reply.status, 200, "{page}");
        assert!(reply.body.len() + shared < BYTES_MAX, "{page}: {} + {shared}", reply.body.len());
        assert!(reply.headers.get("content-encoding").is_none(), "{page}: tokens are not compressed");
    }
    let source = site.get(&format!("{server}/messages/{id}?view=source"), &cookie).await.text();
    assert!(source.contains("The rest is in the download"), "{source}");
    // A request as a whole has a page of its own.
    let whole = site.get(&format!("{inspector}?request=50"), &cookie).await.text();
    assert!(whole.contains("&#38;") && whole.len() > 20_000, "{}", whole.len());
    assert_eq!(site.get(&format!("{inspector}?request=51"), &cookie).await.status, 404);
}

/// A recipient can open a message any number of times.
#[tokio::test]
async fn a_message_that_is_opened_often_has_light_pages_with_every_open() {
    const OPENS: usize = 300;
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let id = site.send(json!({ "html_body": "<p>hi</p>", "track": { "opens": true } })).await;
    site.until(id, "Sent").await;
    let caught = site.client.get("/dev/messages/wait?timeout=10").await.unwrap().text();
    let (_, rest) = caught.split_once("/o/").expect("the mail has a pixel");
    let pixel = format!("/o/{}", rest.split(['"', '\\', '\'', '>', ' ']).next().unwrap());
    let agent = format!("Mozilla/5.0 {}", "<&>".repeat(150));
    for _ in 0..OPENS {
        let headers = [("user-agent", agent.as_str())];
        let reply = site.client.request(Method::GET, &pixel, &headers, Bytes::new()).await.unwrap();
        assert_eq!(reply.status, 200, "{pixel}");
    }
    for (view, mark) in [("timeline", "<strong>Opened</strong>"), ("events", "<h2>message.opened</h2>")] {
        let mut path = format!("{server}/messages/{id}?view={view}");
        eventually(async || {
            let has_older = site.get(&path, &cookie).await.text().contains("Older ones");
            if has_older { Ok(()) } else { Err("the opens are not there yet") }
        })
        .await;
        let (mut seen, mut pages) = (0, 0);
        loop {
            let reply = site.get(&path, &cookie).await;
            assert!(reply.body.len() < 75_000, "{path}: {}", reply.body.len());
            let text = reply.text();
            (seen, pages) = (seen + text.matches(mark).count(), pages + 1);
            let Some((_, rest)) = text.split_once(&format!("?view={view}&amp;skipped=")) else { break };
            path = format!("{server}/messages/{id}?view={view}&skipped={}", rest.split('"').next().unwrap());
        }
        assert!(seen > OPENS / 2 && pages > 2, "{view}: {seen} opens on {pages} pages");
    }
}
