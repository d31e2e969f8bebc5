//! From nothing to a delivered message and a received webhook, as somebody does it on the first day.

use postroad_testkit::{Browser, WebhookCatcher};
use serde_json::json;

use crate::site::{Site, pictures, server_of};

#[tokio::test]
async fn first_run_on_sqlite() {
    first_run(Site::start()).await;
}

#[tokio::test]
async fn first_run_on_postgres() {
    first_run(Site::start_on_postgres()).await;
}

async fn first_run(site: Site) {
    let browser = site.browser().await;
    browser.open(&site.path("/servers")).await;
    browser.fill("input[name=name]", "shop").await;
    browser.click("main form button").await;
    browser.until("input[name=once]").await;
    let server = server_of(&browser).await;

    browser.click("form.stack > button").await;
    browser.until_text("they are not shown again").await;
    let key = browser.text("dl.summary div:first-child .secret").await;
    assert!(browser.page_text().await.contains("Waiting for your first message"), "the panel waits");
    assert!(browser.text("pre.code").await.contains(&key), "the command has the key");
    browser.screenshot(&pictures().join("first-key.png")).await;

    let domain = add_domain(&site, &browser, server).await;
    browser.open(&site.path(&format!("/servers/{server}/first_message"))).await;
    browser.until_text("Waiting for your first message").await;
    let message = json!({
        "to": ["ann@example.net"], "from": format!("hello@{domain}"), "subject": "First one", "plain_body": "It works.",
    });
    let id = site.send_with(&key, &message).await[0];
    // The panel turns into the timeline by itself.
    browser.until_text("First one").await;
    browser.until_text("Delivered").await;
    browser.screenshot(&pictures().join("first-message.png")).await;
    browser.click("#arrival a").await;
    browser.until_text(&id.to_string()).await;

    let catcher = WebhookCatcher::start();
    browser.open(&site.path(&format!("/servers/{server}/webhooks"))).await;
    browser.fill("input[name=url]", &catcher.url("/events")).await;
    browser.click("form.stack > button").await;
    browser.until_text("Copy the secret now").await;
    assert!(browser.text(".secret").await.starts_with("whsec_"));
    browser.click("form[action$='/test'] button").await;
    browser.until_text("The sample").await;
    assert_eq!(catcher.wait_for("/events", 1)[0].json()["type"], "message.delivered");
    site.send_with(&key, &message).await;
    catcher.wait_until("/events", std::time::Duration::from_secs(20), |all| {
        all.iter().any(|received| received.json()["data"]["message"]["subject"] == "First one")
    });
    browser.open(&browser.url().await.replace("/test", "")).await;
    browser.until_text("message.accepted").await;

    browser.open(&site.path(&format!("/servers/{server}"))).await;
    browser.until_text("Last 24 hours").await;
    assert!(!browser.has(".checklist").await, "every step is done");
    assert_eq!(browser.console().await, [""; 0]);
}

async fn add_domain(site: &Site, browser: &Browser, server: i64) -> String {
    let domain = "shop.test";
    browser.open(&site.path(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", domain).await;
    browser.click("form.stack > button").await;
    browser.until_text("Not verified").await;
    browser.until_text("_domainkey.shop.test").await;
    browser.screenshot(&pictures().join("first-domain.png")).await;
    assert_eq!(site.post(&format!("/dev/dns/{domain}"), &[], "").await.status, 200);
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;
    domain.to_owned()
}
