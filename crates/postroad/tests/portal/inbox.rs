//! The inboxes of `postroad dev` and of development servers in the portal.

use postroad_testkit::eventually;
use serde_json::{Value, json};

use crate::roles::join;
use crate::service::{DevService, SecondServer, pictures, server_of};

#[tokio::test]
async fn caught_mail_appears_with_its_links_and_codes() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/inbox")).await;
    browser.until_text("Nothing was caught yet").await;
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    service
        .send(json!({
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
    let cookie = service.sign_in().await;
    let file = service.get("/inbox/1/attachments/1", &cookie).await;
    assert_eq!(
        (file.text().as_str(), &file.headers["content-type"]),
        ("hello", &"application/octet-stream".parse().unwrap())
    );
    assert!(service.get("/inbox/1/raw", &cookie).await.text().contains("Subject: Your sign-in code"));
    assert_eq!(service.get("/inbox/99", &cookie).await.status, 404);
    browser.open(&service.url_of("/inbox?q=nobody")).await;
    browser.until_text("No message matches").await;
    browser.open(&service.url_of("/inbox")).await;
    browser.click("form[action='/inbox/clear'] button").await;
    browser.accept_confirmation().await;
    browser.until_text("Nothing was caught yet").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn caught_mail_shows_its_sender_and_leads_to_its_timeline() {
    let service = DevService::start();
    service
        .send(json!({
            "from": "\"<img src=x onerror=alert(1)>\" <shop@example.test>", "cc": ["Bob <bob@example.net>"],
            "reply_to": "Help <help@example.test>", "subject": "Hostile name",
        }))
        .await;
    service.send(json!({ "from": "Jürgen’s Shop <shop@example.test>", "subject": "Friendly name" })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of("/inbox")).await;
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
    browser.open(&service.url_of("/inbox?q=onerror+ann")).await;
    browser.until_text("No message matches").await;
    browser.open(&service.url_of("/inbox?q=onerror")).await;
    browser.until(".rows a").await;
    // Each recipient's copy has a row of its own.
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
async fn empty_lists_of_mail_show_a_send_command_that_works() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    for page in [format!("/servers/{server}/messages"), "/inbox".to_owned()] {
        browser.open(&service.url_of(&page)).await;
        let command = browser.text(".empty pre").await;
        browser.screenshot(&pictures().join(format!("empty{}.png", page.replace('/', "-")))).await;
        assert!(
            command.starts_with(&format!("curl {}", service.url_of("/api/v1/send/message"))),
            "{command}"
        );
        assert!(command.contains("X-Server-API-Key: YOUR_API_KEY"), "{command}");
        let (_, body) = command.split_once("-d '").unwrap();
        let body: Value = serde_json::from_str(body.trim_end_matches('\'')).unwrap();
        let id = service.send_with(&service.ready("api_key"), &body).await[0];
        browser.until_text("First message").await;
        service.until_status(id, "Sent").await;
        if page.ends_with("messages") {
            browser.open(&service.url_of("/inbox")).await;
            browser.click("form[action='/inbox/clear'] button").await;
            browser.accept_confirmation().await;
            browser.until_text("Nothing was caught yet").await;
        }
    }
}

#[tokio::test]
async fn empty_lists_of_other_objects_show_an_api_call_that_works() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    for (page, endpoint) in [
        ("events", "send/message"),
        ("suppressions", "suppressions/add"),
        ("templates", "templates/create"),
        ("webhooks", "webhooks/create"),
    ] {
        browser.open(&service.url_of(&format!("/servers/{server}/{page}"))).await;
        let command = browser.text(".empty pre").await;
        browser.screenshot(&pictures().join(format!("empty-{page}.png"))).await;
        assert!(
            command.starts_with(&format!("curl {}", service.url_of(&format!("/api/v1/{endpoint}")))),
            "{command}"
        );
        let key = service.ready("api_key");
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
async fn an_inbox_of_101_messages_has_two_pages() {
    let service = DevService::start();
    let mut last = 0;
    for number in 1..=101 {
        last = service.send(json!({ "subject": format!("Number {number}.") })).await;
    }
    service.until_status(last, "Sent").await;
    let cookie = service.sign_in().await;
    let rows = |page: &str| page.matches("Number ").count();
    let first = eventually(async || {
        let first = service.get("/inbox", &cookie).await.text();
        let has_next = first.contains("rel=\"next\"");
        if has_next { Ok(first) } else { Err(format!("the inbox has no second page: {first}")) }
    })
    .await;
    assert_eq!(rows(&first), 100, "{first}");
    let next = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    let second = service.get(&format!("/inbox{next}"), &cookie).await.text();
    assert_eq!(rows(&second), 1, "{second}");
    assert!(!second.contains("rel=\"next\""), "{second}");
    let found = service.get("/inbox?q=number+7.", &cookie).await.text();
    assert_eq!(rows(&found), 1, "{found}");
}

#[tokio::test]
async fn emptied_inboxes_and_inspectors_are_in_the_audit_log() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    for path in [
        "/inbox/clear".to_owned(),
        format!("{server}/webhooks/inspector"),
        format!("{server}/webhooks/inspector/clear"),
    ] {
        assert_eq!(service.submit(&path, &cookie, "").await.status, 303, "{path}");
    }
    let log = service.get("/account/audit", &cookie).await.text();
    assert!(log.contains("webhooks/open_inspector") && log.contains("webhooks/clear_inspector"), "{log}");
    let log = service.get("/operator/audit", &cookie).await.text();
    assert!(log.contains("installation/clear_inbox"), "{log}");
}

#[tokio::test]
async fn development_server_has_an_inbox_of_what_it_holds_on_sqlite() {
    development_server_has_an_inbox_of_what_it_holds(DevService::start()).await;
}

#[tokio::test]
async fn development_server_has_an_inbox_of_what_it_holds_on_postgres() {
    development_server_has_an_inbox_of_what_it_holds(DevService::start_on_postgres()).await;
}

async fn development_server_has_an_inbox_of_what_it_holds(service: DevService) {
    let server = SecondServer::create_development(&service).await;
    let browser = service.signed_in_browser().await;
    let overview = service.url_of(&format!("/servers/{}", server.id));
    browser.open(&overview).await;
    browser.press("gn").await;
    browser.until_text("Nothing was caught yet").await;
    assert!(browser.url().await.ends_with(&format!("/servers/{}/inbox", server.id)));
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    let id = server
        .send(
            &service,
            json!({
                "subject": "Your sign-in code", "html_body": html, "plain_body": "Your code is 482 913.",
                "attachments": [{ "name": "terms.txt", "data": "aGVsbG8=" }],
            }),
        )
        .await;
    // It appears without a reload.
    browser.until_text("Your sign-in code").await;
    server
        .send(&service, json!({ "to": ["bob@example.net", "eve@example.net"], "subject": "For two" }))
        .await;
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
    let cookie = service.sign_in().await;
    let file = browser.attribute("td a", "href").await.unwrap();
    assert_eq!(service.get(&file, &cookie).await.text(), "hello");
    let raw = browser.attribute(".tabs a[href$='/raw']", "href").await.unwrap();
    assert!(service.get(&raw, &cookie).await.text().contains("Subject: Your sign-in code"));
    browser.click(".tabs a[href$='/messages/{id}']".replace("{id}", &id.to_string()).as_str()).await;
    browser.until("button[value=release]").await;

    // Somebody who only reads sees the mail, but cannot delete it.
    let (_, reader) = join(&service, "reader", "read-only").await;
    let path = format!("/servers/{}/inbox", server.id);
    assert!(service.get(&path, &reader).await.text().contains("For two"));
    assert_eq!(service.submit(&format!("{path}/clear"), &reader, "").await.status, 403);
    // A live server has held mail too, which the button must not touch.
    let live = service.server_path(&cookie).await;
    assert_eq!(service.submit(&format!("{live}/inbox/clear"), &cookie, "").await.status, 422);

    browser.open(&service.url_of(&path)).await;
    browser.until(".rows tbody tr:nth-child(3)").await;
    browser.click("form[action$='/inbox/clear'] button").await;
    browser.accept_confirmation().await;
    browser.until_text("Nothing was caught yet").await;
    let messages = service.get(&format!("/servers/{}/messages", server.id), &cookie).await.text();
    assert!(
        messages.contains("For two") && !messages.contains("warn\">Held"),
        "they are cancelled: {messages}"
    );
    assert!(service.get("/account/audit", &cookie).await.text().contains("messages/cancel_hold"));
    // A second click does no harm.
    assert_eq!(service.submit(&format!("{path}/clear"), &cookie, "").await.status, 303);
    // New mail still appears without a reload.
    server.send(&service, json!({ "subject": "Tomorrow" })).await;
    browser.until_text("Tomorrow").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn one_caught_message_is_deleted_and_the_others_stay() {
    let service = DevService::start();
    for subject in ["Kept", "Dropped"] {
        let id = service.send(json!({ "subject": subject })).await;
        service.until_status(id, "Sent").await;
    }
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/inbox")).await;
    browser.until_text("Dropped").await;
    browser.click(".rows tbody tr:first-child a").await;
    browser.until("iframe, pre").await;
    let page = browser.url().await;
    browser.screenshot(&pictures().join("inbox-delete.png")).await;
    browser.click("form[action$='/delete'] button").await;
    browser.until_text("Removed").await;
    let list = browser.text(".rows tbody").await;
    assert!(list.contains("Kept") && !list.contains("Dropped"), "{list}");
    let cookie = service.sign_in().await;
    let path = page.strip_prefix(&service.url).unwrap();
    assert_eq!(service.get(path, &cookie).await.status, 404);
    assert_eq!(service.submit(&format!("{path}/delete"), &cookie, "").await.status, 404);
    assert!(service.get("/operator/audit", &cookie).await.text().contains("installation/clear_inbox"));
}
