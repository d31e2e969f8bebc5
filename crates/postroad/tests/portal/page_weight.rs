//! Size of pages: each stays below 100 kB together with style sheet, script and icon, even with a large message, a full
//! inspector or full lists.

use postroad_testkit::http::{Bytes, Method};
use postroad_testkit::{CatcherAnswer, WebhookCatcher, eventually};
use serde_json::json;

use crate::roles::{call, join};
use crate::service::DevService;

const PAGE_BYTES_MAX: usize = 100_000;

#[tokio::test]
async fn pages_with_large_contents_stay_below_a_hundred_kilobytes() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let line = "<td class=\"x\">a & b</td>\n";
    let (html, text) = (line.repeat(300_000 / line.len()), "one & two\n".repeat(30_000));
    let headers = json!({ "X-Long": "<&>".repeat(300) });
    let id = service.send(json!({ "html_body": html, "plain_body": text, "headers": headers })).await;
    service.until_status(id, "Sent").await;
    let inspector = format!("{server}/webhooks/inspector");
    service.submit(&inspector, &cookie, "").await;
    let page = service.get(&inspector, &cookie).await.text();
    let token = page.split("/inspect/").nth(1).unwrap().split('<').next().unwrap().to_owned();
    for number in 0..50 {
        let body = json!({ "type": "message.delivered", "number": number, "text": "<&>".repeat(6_000) });
        let headers = [("x-long", "<&>\"".repeat(200)), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let body = Bytes::from(body.to_string());
        let path = format!("/inspect/{token}");
        assert_eq!(service.client.request(Method::POST, &path, &headers, body).await.unwrap().status, 200);
    }
    let overview = service.get(&server, &cookie).await.text();
    let mut asset_bytes = 0;
    for asset in overview.split("/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let headers = [("accept-encoding", "gzip, deflate, br")];
        let path = format!("/assets/{asset}");
        let reply = service.client.request(Method::GET, &path, &headers, Bytes::new()).await.unwrap();
        assert_eq!(reply.headers["content-encoding"], "gzip", "{asset}");
        asset_bytes += reply.body.len();
        let plain = service.get(&path, "").await;
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
        let reply = service.get(&page, &cookie).await;
        assert_eq!(reply.status, 200, "{page}");
        assert!(
            reply.body.len() + asset_bytes < PAGE_BYTES_MAX,
            "{page}: {} + {asset_bytes}",
            reply.body.len()
        );
        // The length of a compressed page could reveal its form token (BREACH).
        let headers = [("cookie", cookie.as_str()), ("accept-encoding", "gzip, deflate, br")];
        let reply = service.client.request(Method::GET, &page, &headers, Bytes::new()).await.unwrap();
        assert!(reply.headers.get("content-encoding").is_none(), "{page}: pages are never compressed");
    }
    let source = service.get(&format!("{server}/messages/{id}?view=source"), &cookie).await.text();
    assert!(source.contains("The rest is in the download"), "{source}");
    // The inspector cuts long requests; each has a page of its own that shows it in full.
    let whole = service.get(&format!("{inspector}?request=50"), &cookie).await.text();
    assert!(whole.contains("&#38;") && whole.len() > 20_000, "{}", whole.len());
    assert_eq!(service.get(&format!("{inspector}?request=51"), &cookie).await.status, 404);
}

/// The rows have very long texts, mostly of characters that HTML escaping makes five times as long.
#[tokio::test]
async fn full_lists_of_the_longest_texts_stay_below_a_hundred_kilobytes() {
    const HOSTILE: &str = "<&\"'>";
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let server_id: i64 = server.rsplit('/').next().unwrap().parse().unwrap();
    let (key, account_key) = (service.ready("api_key"), service.ready("account_api_key"));
    let by_key = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    let by_account =
        async |path: &str, body| call(&service, "x-account-api-key", &account_key, path, &body).await;
    // Attempts of a webhook; the first 4 KiB of each answer are stored.
    let receiver = WebhookCatcher::start();
    let answer = HOSTILE.repeat(2_000);
    receiver.answer("/hook", CatcherAnswer::Full(500, Vec::new(), answer.clone().into_bytes()));
    let webhook =
        by_key("webhooks/create", json!({ "url": receiver.url("/hook"), "events": ["webhook.disabled"] }))
            .await;
    let webhook = webhook["id"].as_i64().unwrap();
    for _ in 0..26 {
        service.submit(&format!("{server}/webhooks/{webhook}/test"), &cookie, "event=message.opened").await;
    }
    // Events with long subjects and details, and the audit log of changes with long values.
    let id = service
        .send(json!({ "subject": HOSTILE.repeat(150), "html_body": "<p>hi</p>", "track": { "opens": true } }))
        .await;
    service.until_status(id, "Sent").await;
    let caught = service.client.get("/dev/messages/wait?timeout=10").await.unwrap().text();
    let (_, rest) = caught.split_once("/o/").expect("the mail has a pixel");
    let pixel = format!("/o/{}", rest.split(['"', '\\', '\'', '>', ' ']).next().unwrap());
    let agent = format!("Mozilla/5.0 {}", HOSTILE.repeat(90));
    for _ in 0..60 {
        let headers = [("user-agent", agent.as_str())];
        service.client.request(Method::GET, &pixel, &headers, Bytes::new()).await.unwrap();
    }
    for number in 0..55 {
        let name = format!("{number}{}", HOSTILE.repeat(18));
        by_account("servers/update", json!({ "id": server_id, "name": name })).await;
        let url = format!("{}?{number}{}", receiver.url("/hook"), "&'".repeat(480));
        by_key("webhooks/update", json!({ "id": webhook, "url": url })).await;
    }
    // Keys with as many networks as they may have, invitations and people.
    let networks: Vec<String> =
        (0..100).map(|number| format!("2001:db8:aaaa:bbbb:cccc:dddd:eeee:{number:x}/128")).collect();
    for _ in 0..25 {
        let new =
            json!({ "server": server_id, "name": HOSTILE.repeat(18), "scope": "full", "allow": networks });
        by_account("credentials/create", new).await;
    }
    let account = by_account("account/get", json!({})).await["id"].clone();
    for number in 0..25 {
        let email = format!("{number}-{}@{}.example", "a".repeat(50), "b".repeat(60));
        let new = json!({ "account": account, "email": email, "role": "member", "mail": false });
        call(&service, "x-operator-api-key", &service.ready("operator_api_key"), "users/invite", &new).await;
    }
    for number in 0..20 {
        let (person, _) = join(&service, &format!("person-{number}"), "member").await;
        let fields = format!("name={}", "%3C%26%22%27%3E".repeat(18));
        service.submit(&format!("/account/people/{person}"), &cookie, &fields).await;
    }
    let overview = service.get(&server, &cookie).await.text();
    let mut asset_bytes = 0;
    for asset in overview.split("/assets/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let headers = [("accept-encoding", "gzip")];
        let path = format!("/assets/{asset}");
        asset_bytes +=
            service.client.request(Method::GET, &path, &headers, Bytes::new()).await.unwrap().body.len();
    }
    let attempts = format!("{server}/webhooks/{webhook}");
    let events = format!("{server}/events");
    let jobs = format!("{server}/jobs");
    for number in 0..51 {
        let query = format!("\"{number}{}\"", "<&'>".repeat(240));
        // A server may have ten running jobs.
        eventually(async || {
            let headers = [("x-server-api-key", key.as_str()), ("content-type", "application/json")];
            let body = json!({ "query": query }).to_string();
            let call = service.client.request(Method::POST, "/api/v1/messages/retry", &headers, body.into());
            let answer = call.await.unwrap().json();
            if answer["status"] == "success" { Ok(()) } else { Err(answer) }
        })
        .await;
    }
    for page in [&attempts, &events, "/account/audit", &format!("{server}/keys"), "/account/people", &jobs] {
        let reply = service.get(page, &cookie).await;
        assert_eq!(reply.status, 200, "{page}");
        assert!(
            reply.body.len() + asset_bytes < PAGE_BYTES_MAX,
            "{page}: {} + {asset_bytes}",
            reply.body.len()
        );
        assert!(reply.text().contains("rel=\"next\""), "{page} is full: {}", reply.text());
    }
    let sample = service.submit(&format!("{attempts}/test"), &cookie, "event=message.opened").await;
    assert!(sample.body.len() + asset_bytes < PAGE_BYTES_MAX, "{}", sample.body.len());
    // A text that was cut has its own page.
    let full_page = async |list: &str, name: &str| {
        let page = service.get(list, &cookie).await.text();
        let (_, rest) = page.split_once(&format!("{list}?{name}=")).expect("something is cut");
        let id = rest.split(['"', '#']).next().unwrap();
        service.get(&format!("{list}?{name}={id}"), &cookie).await.text()
    };
    let escaped = |text: &str| {
        text.replace('&', "&#38;")
            .replace('<', "&#60;")
            .replace('>', "&#62;")
            .replace('"', "&#34;")
            .replace('\'', "&#39;")
    };
    assert!(full_page(&attempts, "attempt").await.contains(&escaped(&answer[..4_000])));
    assert!(full_page(&events, "event").await.contains(&escaped("'><&")));
}

/// A recipient can open a message any number of times.
#[tokio::test]
async fn pages_of_a_message_with_hundreds_of_opens_stay_small() {
    const OPENS: usize = 300;
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let id = service.send(json!({ "html_body": "<p>hi</p>", "track": { "opens": true } })).await;
    service.until_status(id, "Sent").await;
    let caught = service.client.get("/dev/messages/wait?timeout=10").await.unwrap().text();
    let (_, rest) = caught.split_once("/o/").expect("the mail has a pixel");
    let pixel = format!("/o/{}", rest.split(['"', '\\', '\'', '>', ' ']).next().unwrap());
    let agent = format!("Mozilla/5.0 {}", "<&>".repeat(150));
    for _ in 0..OPENS {
        let headers = [("user-agent", agent.as_str())];
        let reply = service.client.request(Method::GET, &pixel, &headers, Bytes::new()).await.unwrap();
        assert_eq!(reply.status, 200, "{pixel}");
    }
    for (view, mark) in [("timeline", "<strong>Opened</strong>"), ("events", "<h2>message.opened</h2>")] {
        let mut path = format!("{server}/messages/{id}?view={view}");
        eventually(async || {
            let has_older = service.get(&path, &cookie).await.text().contains("Older ones");
            if has_older { Ok(()) } else { Err("the opens are not there yet") }
        })
        .await;
        let (mut seen, mut pages) = (0, 0);
        loop {
            let reply = service.get(&path, &cookie).await;
            assert!(reply.body.len() < 75_000, "{path}: {}", reply.body.len());
            let text = reply.text();
            (seen, pages) = (seen + text.matches(mark).count(), pages + 1);
            let Some((_, rest)) = text.split_once(&format!("?view={view}&amp;skipped=")) else { break };
            path = format!("{server}/messages/{id}?view={view}&skipped={}", rest.split('"').next().unwrap());
        }
        // The last opens may not be stored yet.
        assert!(seen > OPENS / 2 && pages > 2, "{view}: {seen} opens on {pages} pages");
    }
}
