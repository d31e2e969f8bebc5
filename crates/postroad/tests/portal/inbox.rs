//! The inbox of `postroad dev` in the portal.

use serde_json::json;

use crate::site::{Site, pictures};

#[tokio::test]
async fn caught_mail_appears_with_its_links_and_codes() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.open(&site.path("/inbox")).await;
    browser.until_text("Nothing was caught yet").await;
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    site.send(json!({
        "subject": "Your sign-in code", "html_body": html, "plain_body": "Your code is 482 913.",
        "attachments": [{ "name": "terms.txt", "data": "aGVsbG8=" }],
    }))
    .await;
    // By itself.
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
    browser.open(&site.path("/inbox?q=nobody")).await;
    browser.until_text("No message matches").await;
    browser.open(&site.path("/inbox")).await;
    browser.click("form[action='/inbox/clear'] button").await;
    browser.accept_question().await;
    browser.until_text("Nothing was caught yet").await;
    assert_eq!(browser.console().await, [""; 0]);
}
