//! The inboxes of `postroad dev` and of development servers in the portal.

use postroad_testkit::eventually;
use serde_json::{Value, json};

use crate::roles::join;
use crate::site::{SecondServer, Site, pictures, server_of};

#[tokio::test]
async fn caught_mail_appears_with_its_links_and_codes() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.open(&site.url_of("/inbox")).await;
    browser.until_text("Nothing was caught yet").await;
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    site.send(json!({
        "subject": "Your sign-in code", "html_body": html, "plain_body": "Your code is 482 913.",
        "attachments": [{ "name": "terms.txt", "data": "aGVsbG8=" }],
    }))
    .await;
    // It appears without a reload.
    browser.until_text("Your sign-in code").await;
    browser.screenshot(&pictures().join("inbox.png")).await;
    browser.click(".rows a").await;
    browser.until_text("482913").await;
    assert_eq!(browser.text(".plain-list a").await, "https://shop.example/reset?token=abc");
    assert!(browser.has("iframe.preview").await);
    browser.screenshot(&pictures().join("inbox-message.png")).await;
    browser.click(".tabs a[href='?view=headers']").await;
    browser.until_text("dkim-signature").await;
    let cookie = site.cookie().await;
    let file = site.get("/inbox/1/attachments/1", &cookie).await;
    assert_eq!(
        (file.text().as_str(), &file.headers["content-type"]),
        ("hello", &"application/octet-stream".parse().unwrap())
    );
    assert!(site.get("/inbox/1/raw", &cookie).await.text().contains("Subject: Your sign-in code"));
    assert_eq!(site.get("/inbox/99", &cookie).await.status, 404);
    browser.open(&site.url_of("/inbox?q=nobody")).await;
    browser.until_text("No message matches").await;
    browser.open(&site.url_of("/inbox")).await;
    browser.click("form[action='/inbox/clear'] button").await;
    browser.accept_question().await;
    browser.until_text("Nothing was caught yet").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn caught_mail_shows_its_sender_and_leads_to_its_timeline() {
    let site = Site::start();
    site.send(json!({
        "from": "\"<img src=x onerror=alert(1)>\" <shop@example.test>", "cc": ["Bob <bob@example.net>"],
        "reply_to": "Help <help@example.test>", "subject": "Hostile name",
    }))
    .await;
    site.send(json!({ "from": "Jürgen’s Shop <shop@example.test>", "subject": "Friendly name" })).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.url_of("/inbox")).await;
    browser.until_text("Friendly name").await;
    browser.until_text("Hostile name").await;
    let text = browser.page_text().await;
    assert!(text.contains("Jürgen’s Shop <shop@example.test>"), "{text}");
    assert!(text.contains("<img src=x onerror=alert(1)>\" <shop@example.test>"), "{text}");
    assert!(!text.contains("@rp."), "the return path is of no use in the list: {text}");
    browser.screenshot(&pictures().join("inbox-senders.png")).await;
    browser.fill("input[name=q]", "jürgen").await;
    browser.click("form.search button").await;
    browser.until(".rows tbody tr:only-child").await;
    browser.open(&site.url_of("/inbox?q=onerror+ann")).await;
    browser.until_text("No message matches").await;
    browser.open(&site.url_of("/inbox?q=onerror")).await;
    browser.until(".rows a").await;
    // One copy for each recipient.
    let to = browser.text(".rows tbody tr:last-child td[data-label=To]").await;
    browser.click(".rows tbody tr:last-child a").await;
    browser.until_text("Return path").await;
    let text = browser.page_text().await;
    for wanted in ["<img src=x onerror=alert(1)>", "Bob <bob@example.net>", "Help <help@example.test>"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!browser.has("img[src=x]").await, "names are text");
    browser.screenshot(&pictures().join("inbox-message-senders.png")).await;
    let timeline = browser.attribute(".tabs a[href*='/messages/']", "href").await.unwrap();
    assert!(timeline.starts_with(&format!("/servers/{server}/messages/")), "{timeline}");
    browser.click(".tabs a[href*='/messages/']").await;
    browser.until(".timeline").await;
    browser.until_text("Hostile name").await;
    assert_eq!(browser.text(".summary dd").await, to);
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn empty_lists_show_a_command_that_works() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    for page in [format!("/servers/{server}/messages"), "/inbox".to_owned()] {
        browser.open(&site.url_of(&page)).await;
        let command = browser.text(".empty pre").await;
        browser.screenshot(&pictures().join(format!("empty{}.png", page.replace('/', "-")))).await;
        assert!(command.starts_with(&format!("curl {}", site.url_of("/api/v1/send/message"))), "{command}");
        assert!(command.contains("X-Server-API-Key: YOUR_API_KEY"), "{command}");
        let (_, body) = command.split_once("-d '").unwrap();
        let body: Value = serde_json::from_str(body.trim_end_matches('\'')).unwrap();
        let id = site.send_with(&site.ready("api_key"), &body).await[0];
        browser.until_text("First message").await;
        site.until(id, "Sent").await;
        if page.ends_with("messages") {
            browser.open(&site.url_of("/inbox")).await;
            browser.click("form[action='/inbox/clear'] button").await;
            browser.accept_question().await;
            browser.until_text("Nothing was caught yet").await;
        }
    }
}

#[tokio::test]
async fn empty_lists_show_calls_of_the_api_that_work() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    for (page, endpoint) in [
        ("events", "send/message"),
        ("suppressions", "suppressions/add"),
        ("templates", "templates/create"),
        ("webhooks", "webhooks/create"),
    ] {
        browser.open(&site.url_of(&format!("/servers/{server}/{page}"))).await;
        let command = browser.text(".empty pre").await;
        browser.screenshot(&pictures().join(format!("empty-{page}.png"))).await;
        assert!(
            command.starts_with(&format!("curl {}", site.url_of(&format!("/api/v1/{endpoint}")))),
            "{command}"
        );
        let key = site.ready("api_key");
        let command = command.replace("YOUR_API_KEY", &key).replace("your-domain.example", "example.test");
        let output = tokio::process::Command::new("sh").args(["-c", &format!("{command} -sS")]).output();
        let output = output.await.unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(answer["status"], "success", "{page}: {answer}");
        browser.reload().await;
        browser.until("body:not(:has(.empty pre))").await;
    }
}

#[tokio::test]
async fn an_inbox_that_is_longer_than_a_page_has_more_pages() {
    let site = Site::start();
    let mut last = 0;
    for number in 1..=101 {
        last = site.send(json!({ "subject": format!("Number {number}.") })).await;
    }
    site.until(last, "Sent").await;
    let cookie = site.cookie().await;
    let rows = |page: &str| page.matches("Number ").count();
    let first = eventually(async || {
        let first = site.get("/inbox", &cookie).await.text();
        let has_next = first.contains("rel=\"next\"");
        if has_next { Ok(first) } else { Err(format!("the inbox has no second page: {first}")) }
    })
    .await;
    assert_eq!(rows(&first), 100, "{first}");
    let next = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    let second = site.get(&format!("/inbox{next}"), &cookie).await.text();
    assert_eq!(rows(&second), 1, "{second}");
    assert!(!second.contains("rel=\"next\""), "{second}");
    let found = site.get("/inbox?q=number+7.", &cookie).await.text();
    assert_eq!(rows(&found), 1, "{found}");
}

/// Every deletion is in the log.
#[tokio::test]
async fn emptied_inboxes_and_inspectors_are_in_the_audit_log() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    for path in [
        "/inbox/clear".to_owned(),
        format!("{server}/webhooks/inspector"),
        format!("{server}/webhooks/inspector/clear"),
    ] {
        assert_eq!(site.submit(&path, &cookie, "").await.status, 303, "{path}");
    }
    let log = site.get("/account/audit", &cookie).await.text();
    assert!(log.contains("webhooks/open_inspector") && log.contains("webhooks/clear_inspector"), "{log}");
    let log = site.get("/operator/audit", &cookie).await.text();
    assert!(log.contains("installation/clear_inbox"), "{log}");
}

#[tokio::test]
async fn development_server_has_an_inbox_of_what_it_holds_on_sqlite() {
    development_server_has_an_inbox_of_what_it_holds(Site::start()).await;
}

#[tokio::test]
async fn development_server_has_an_inbox_of_what_it_holds_on_postgres() {
    development_server_has_an_inbox_of_what_it_holds(Site::start_on_postgres()).await;
}

async fn development_server_has_an_inbox_of_what_it_holds(site: Site) {
    let server = SecondServer::create_development(&site).await;
    let browser = site.browser().await;
    let overview = site.url_of(&format!("/servers/{}", server.id));
    browser.open(&overview).await;
    browser.press("gn").await;
    browser.until_text("Nothing was caught yet").await;
    assert!(browser.url().await.ends_with(&format!("/servers/{}/inbox", server.id)));
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    let id = server
        .send(
            &site,
            json!({
                "subject": "Your sign-in code", "html_body": html, "plain_body": "Your code is 482 913.",
                "attachments": [{ "name": "terms.txt", "data": "aGVsbG8=" }],
            }),
        )
        .await;
    // It appears without a reload.
    browser.until_text("Your sign-in code").await;
    server.send(&site, json!({ "to": ["bob@example.net", "eve@example.net"], "subject": "For two" })).await;
    browser.until(".rows tbody tr:nth-child(3)").await;
    browser.screenshot(&pictures().join("development-inbox.png")).await;
    browser.fill("input[name=q]", "code").await;
    browser.click("form.search button").await;
    browser.until(".rows tbody tr:only-child").await;
    browser.click(".rows a").await;
    browser.until_text("482913").await;
    assert_eq!(browser.text(".plain-list a").await, "https://shop.example/reset?token=abc");
    browser.until("iframe.preview").await;
    browser.screenshot(&pictures().join("development-inbox-message.png")).await;
    browser.click(".toggles a[href*='dark=1']").await;
    browser.until("iframe.preview[src*='dark=1']").await;
    browser.click(".tabs a[href='?view=headers']").await;
    browser.until_text("message-id").await;
    let cookie = site.cookie().await;
    let file = browser.attribute("td a", "href").await.unwrap();
    assert_eq!(site.get(&file, &cookie).await.text(), "hello");
    let raw = browser.attribute(".tabs a[href$='/raw']", "href").await.unwrap();
    assert!(site.get(&raw, &cookie).await.text().contains("Subject: Your sign-in code"));
    browser.click(".tabs a[href$='/messages/{id}']".replace("{id}", &id.to_string()).as_str()).await;
    browser.until("button[value=release]").await;

    // Somebody who only reads sees the mail, but cannot delete it.
    let (_, reader) = join(&site, "reader", "read-only").await;
    let path = format!("/servers/{}/inbox", server.id);
    assert!(site.get(&path, &reader).await.text().contains("For two"));
    assert_eq!(site.submit(&format!("{path}/clear"), &reader, "").await.status, 403);
    // A live server has held mail too, which the button must not touch.
    let live = site.server_path(&cookie).await;
    assert_eq!(site.submit(&format!("{live}/inbox/clear"), &cookie, "").await.status, 422);

    browser.open(&site.url_of(&path)).await;
    browser.until(".rows tbody tr:nth-child(3)").await;
    browser.click("form[action$='/inbox/clear'] button").await;
    browser.accept_question().await;
    browser.until_text("Nothing was caught yet").await;
    let messages = site.get(&format!("/servers/{}/messages", server.id), &cookie).await.text();
    assert!(
        messages.contains("For two") && !messages.contains("warn\">Held"),
        "they are cancelled: {messages}"
    );
    assert!(site.get("/account/audit", &cookie).await.text().contains("messages/cancel_hold"));
    // A second click does no harm.
    assert_eq!(site.submit(&format!("{path}/clear"), &cookie, "").await.status, 303);
    // New mail still appears without a reload.
    server.send(&site, json!({ "subject": "Tomorrow" })).await;
    browser.until_text("Tomorrow").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn one_caught_message_is_deleted_and_the_others_stay() {
    let site = Site::start();
    for subject in ["Kept", "Dropped"] {
        let id = site.send(json!({ "subject": subject })).await;
        site.until(id, "Sent").await;
    }
    let browser = site.browser().await;
    browser.open(&site.url_of("/inbox")).await;
    browser.until_text("Dropped").await;
    browser.click(".rows tbody tr:first-child a").await;
    browser.until("iframe, pre").await;
    let page = browser.url().await;
    browser.screenshot(&pictures().join("inbox-delete.png")).await;
    browser.click("form[action$='/delete'] button").await;
    browser.until_text("Removed").await;
    let list = browser.text(".rows tbody").await;
    assert!(list.contains("Kept") && !list.contains("Dropped"), "{list}");
    let cookie = site.cookie().await;
    let path = page.strip_prefix(&site.url).unwrap();
    assert_eq!(site.get(path, &cookie).await.status, 404);
    assert_eq!(site.submit(&format!("{path}/delete"), &cookie, "").await.status, 404);
    assert!(site.get("/operator/audit", &cookie).await.text().contains("installation/clear_inbox"));
}
