//! Pages without sign-in: the link for the person who edits the DNS, and the address of the request inspector. Also the
//! QR code for an authenticator app.

use postroad_testkit::Browser;
use serde_json::json;

use crate::service::{DevService, form_token, pictures, server_of};

#[tokio::test]
async fn records_of_a_domain_are_shown_by_a_link_without_signing_in_on_sqlite() {
    records_of_a_domain_are_shown_by_a_link_without_signing_in(DevService::start()).await;
}

#[tokio::test]
async fn records_of_a_domain_are_shown_by_a_link_without_signing_in_on_postgres() {
    records_of_a_domain_are_shown_by_a_link_without_signing_in(DevService::start_on_postgres()).await;
}

async fn records_of_a_domain_are_shown_by_a_link_without_signing_in(service: DevService) {
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", "shared.test").await;
    browser.click("form.stack > button").await;
    browser.until_text("_domainkey.shared.test").await;
    browser.click("form[action$='/share'] button").await;
    browser.until_text("Send this link").await;
    let link = browser.text("section.card .secret").await;
    assert!(link.starts_with(&service.url_of("/dns/")), "{link}");
    let stranger = Browser::start().await;
    stranger.open(&link).await;
    stranger.until_text("DNS records of shared.test").await;
    stranger.until_text("_domainkey.shared.test").await;
    assert!(!stranger.has("form").await && !stranger.has("nav").await, "there is nothing to change");
    stranger.screenshot(&pictures().join("dns-link.png")).await;
    stranger.set_size(390, 844).await;
    stranger.screenshot(&pictures().join("dns-link-phone.png")).await;
    assert_eq!(stranger.console().await, [""; 0]);
    let path = link.strip_prefix(&service.url).unwrap();
    let zone = service.client.get(&format!("{path}/zone")).await.unwrap();
    assert!(zone.text().contains("._domainkey.shared.test."), "{}", zone.text());
    // The link opens no other page, and a changed link opens nothing.
    stranger.open(&service.url_of(&format!("/servers/{server}/domains/shared.test"))).await;
    stranger.until("input[name=password]").await;
    let (head, last) = path.split_at(path.len() - 2);
    let changed = format!("{head}{}", if last == "AA" { "BB" } else { "AA" });
    for wrong in [changed.as_str(), "/dns/x", "/dns/%00", &format!("/dns/{}", "A".repeat(5_000))] {
        let reply = service.client.get(wrong).await.unwrap();
        assert_eq!(reply.status, 404, "{wrong}");
    }
    // A revoked link opens nothing; other links still work.
    let page = service.url_of(&format!("/servers/{server}/domains/shared.test"));
    browser.open(&page).await;
    browser.click("form[action$='/share'] button").await;
    browser.until_text("Send this link").await;
    let second = browser.text("section.card .secret").await;
    let second = second.strip_prefix(&service.url).unwrap();
    browser.open(&page).await;
    browser.until("#links tbody tr:nth-child(2)").await;
    browser.screenshot(&pictures().join("domain-links.png")).await;
    browser.click("#links tbody tr:first-child button").await;
    browser.until_text("the link stops working at once").await;
    assert_eq!(browser.count("#links tbody tr").await, 1);
    assert_eq!(service.client.get(second).await.unwrap().status, 404, "the newest is on top");
    assert_eq!(service.client.get(&format!("{second}/zone")).await.unwrap().status, 404);
    assert_eq!(service.client.get(path).await.unwrap().status, 200);
    browser.open(&service.url_of("/account/audit")).await;
    browser.until_text("domains/unshare").await;
    let log = browser.page_text().await;
    assert!(log.matches("domains/share").count() == 2 && log.contains("domain link shared.test"), "{log}");
    assert!(!log.contains(path.strip_prefix("/dns/").unwrap()), "its secret is not in the log");
    // The links stop working when the domain is deleted.
    browser.open(&service.url_of(&format!("/servers/{server}/domains/shared.test"))).await;
    browser.click("form[action$='/delete'] button").await;
    browser.accept_confirmation().await;
    browser.until_text("Removed").await;
    assert_eq!(service.client.get(path).await.unwrap().status, 404);
}

/// Without JavaScript, the browser reloads the page instead.
#[tokio::test]
async fn the_shared_page_of_dns_records_updates_itself_without_a_reload() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    assert_eq!(service.submit(&format!("{server}/domains"), &cookie, "name=quiet.test").await.status, 303);
    let shared = service.submit(&format!("{server}/domains/quiet.test/share"), &cookie, "").await.text();
    let link = format!("/dns/{}", shared.split_once("/dns/").unwrap().1.split(['<', '"']).next().unwrap());
    let reply = service.client.get(&link).await.unwrap();
    assert!(!reply.headers.contains_key("refresh"));
    assert!(reply.text().contains("<noscript><meta http-equiv=\"refresh\""), "{}", reply.text());
    let browser = Browser::start().await;
    browser.open(&service.url_of(&link)).await;
    browser.until_text("Records are missing").await;
    browser.run("window.isSamePage = true").await;
    assert_eq!(service.post("/dev/dns/quiet.test", &[], "").await.status, 200);
    assert_eq!(service.submit(&format!("{server}/domains/quiet.test/verify"), &cookie, "").await.status, 303);
    browser.until_text("All published").await;
    assert_eq!(browser.run("return window.isSamePage === true").await, true);
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn inspector_shows_what_webhooks_post() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/webhooks/inspector"));
    browser.open(&page).await;
    browser.click(".empty button").await;
    browser.until_text("Waiting for a request").await;
    let address = browser.text("section.card .secret").await;
    browser.click("section.card form[action$='/webhooks'] button").await;
    browser.until_text("Copy the secret now").await;
    browser.open(&page).await;
    browser.until_text("Waiting for a request").await;
    service.send(json!({ "subject": "Look at me" })).await;
    browser.until_text("message.accepted").await;
    browser.until_text("message.delivered").await;
    let text = browser.page_text().await;
    assert!(text.contains("webhook-signature") && text.contains("Look at me"), "{text}");
    browser.screenshot(&pictures().join("inspector.png")).await;
    assert_eq!(browser.console().await, [""; 0]);
    // The inspector answers with the status that the query asks for. Unknown addresses are not found, and huge bodies
    // are refused.
    let path = address.strip_prefix(&service.url).unwrap();
    let reply = service.post(&format!("{path}?status=503"), &[], "a=1").await;
    assert_eq!(reply.status, 503);
    browser.until_text("answered 503").await;
    assert_eq!(service.post("/inspect/AAAAAAAAAAAAAAAAAAAAAAAA", &[], "a=1").await.status, 404);
    assert_eq!(service.post(path, &[], &"x".repeat(2 << 20)).await.status, 413, "far too much");
    assert_eq!(service.post(path, &[], &"x".repeat(100_000)).await.status, 200);
    browser.until_text("the rest was not kept").await;
    browser.click("form[action$='/clear'] button").await;
    browser.until_text("Waiting for a request").await;
}

#[tokio::test]
async fn key_of_an_authenticator_app_is_shown_as_a_qr_code_too() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/you")).await;
    browser.click("form[action='/account/you/app'] button").await;
    browser.until("svg.qr").await;
    let secret = browser.text("form[action$='/enable'] .secret").await;
    assert!(secret.len() >= 32, "{secret}");
    browser.screenshot(&pictures().join("you-app.png")).await;
    assert_eq!(browser.console().await, [""; 0], "the page runs and styles nothing inline");
    let cookie = service.sign_in().await;
    let page = service.get("/account/you", &cookie).await;
    assert!(!page.text().contains(&secret), "it is shown once");
    assert!(!form_token(&page).is_empty());
}
