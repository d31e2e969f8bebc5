//! Domains: the list by name and state, keys of another algorithm, links for the account's domains, and what the operator
//! sets.

use serde_json::json;

use crate::roles::{call, join};
use crate::site::{Site, pictures, server_of};

#[tokio::test]
async fn domains_are_found_by_name_and_state() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let key = site.ready("account_api_key");
    call(&site, "x-account-api-key", &key, "domains/create", &json!({ "name": "shop.example" })).await;
    for list in [format!("{server}/domains"), "/account/domains".to_owned()] {
        let has = async |query: &str| {
            let page = site.get(&format!("{list}?{query}"), &cookie).await.text();
            ["example.test", "shop.example"].map(|name| page.contains(&format!("/domains/{name}\"")))
        };
        assert_eq!(has("").await, [true, true], "{list}");
        assert_eq!(has("q=SHOP").await, [false, true], "{list}");
        assert_eq!(has("state=verified").await, [true, false], "{list}");
        assert_eq!(has("state=not_verified").await, [false, true], "{list}");
        assert_eq!(has("state=failing").await, [false, false], "{list}");
        let none = site.get(&format!("{list}?q=nothing"), &cookie).await.text();
        assert!(none.contains("No domain matches"), "{none}");
    }
}

#[tokio::test]
async fn one_verified_domain_among_many_is_found() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let account_key = site.ready("account_api_key");
    let server = json!({ "name": "many" });
    let id = call(&site, "x-account-api-key", &account_key, "servers/create", &server).await["id"].clone();
    for number in 0..51 {
        let domain = json!({ "server": id, "name": format!("d{number}.example") });
        call(&site, "x-account-api-key", &account_key, "domains/create", &domain).await;
    }
    let is_step_done = async || {
        let page = site.get(&format!("/servers/{id}"), &cookie).await.text();
        let (before, _) = page.split_once("Verify a sending domain").unwrap();
        before.rsplit("<li").next().unwrap().contains("class=\"done\"")
    };
    assert!(!is_step_done().await);
    let form = format!("/servers/{id}/domains/d50.example/set_verified");
    assert_eq!(site.submit(&form, &cookie, "verified=1").await.status, 303);
    assert!(is_step_done().await);
    let page = site.get(&format!("/servers/{id}/first_message?since=0"), &cookie).await.text();
    assert!(page.contains("hello@d50.example"), "{page}");
    let form = "name=deploy&scope=send";
    let page = site.submit(&format!("/servers/{id}/keys"), &cookie, form).await.text();
    assert!(page.contains("d50.example"), "{page}");
}

#[tokio::test]
async fn a_domain_gets_a_second_key_with_ed25519() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.url_of(&format!("/servers/{server}/domains/example.test"))).await;
    browser.click("main > details summary").await;
    browser.run("document.querySelector('[name=algorithm]').value = 'ed25519'; return 1").await;
    browser.click("form.stack[action$='/rotate_dkim'] button").await;
    browser.until_text("Created").await;
    let cookie = site.cookie().await;
    let page = site.get(&format!("/servers/{server}/domains/example.test"), &cookie).await.text();
    for algorithm in ["RSA", "Ed25519"] {
        assert!(page.contains(&format!("<td data-label=\"Algorithm\">{algorithm}</td>")), "{page}");
    }
    let path = format!("/servers/{server}/domains/example.test/rotate_dkim");
    let refused = site.submit(&path, &cookie, "algorithm=rot13").await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("The algorithm should be"), "{}", refused.text());
}

#[tokio::test]
async fn records_of_an_account_domain_are_shared_by_a_link() {
    let site = Site::start();
    let key = site.ready("account_api_key");
    call(&site, "x-account-api-key", &key, "domains/create", &json!({ "name": "common.example" })).await;
    let browser = site.browser().await;
    browser.open(&site.url_of("/account/domains/common.example")).await;
    browser.click("form[action$='/share'] button").await;
    browser.until_text("Send this link to whoever edits the DNS").await;
    let link = browser.text(".card .secret").await;
    let path = link.strip_prefix(&site.url).unwrap();
    let shared = site.client.get(path).await.unwrap();
    assert!(shared.status == 200 && shared.text().contains("common.example"), "{}", shared.text());
    browser.until("#links").await;
    browser.screenshot(&pictures().join("account-domain-links.png")).await;
    browser.click("#links button").await;
    browser.until_text("the link stops working at once").await;
    assert_eq!(site.client.get(path).await.unwrap().status, 404);
}

#[tokio::test]
async fn the_operator_sets_verification_and_tracking_of_a_domain() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let key = site.ready("api_key");
    call(&site, "x-server-api-key", &key, "domains/create", &json!({ "name": "shop.example" })).await;
    let path = format!("{server}/domains/shop.example");
    let browser = site.browser().await;
    browser.open(&site.url_of(&path)).await;
    browser.until(".state .badge.warn").await;
    browser.click("#operator summary").await;
    browser.screenshot(&pictures().join("domain-operator.png")).await;
    browser.click("form[action$='/set_verified'] button").await;
    browser.until(".state .badge.good").await;
    browser.until_text("by the operator").await;
    let message =
        json!({ "to": ["ann@example.net"], "from": "a@shop.example", "subject": "hi", "plain_body": "hi" });
    site.send_with(&key, &message).await;
    let form = "opens=on&clicks=off&host=go.shop.example";
    assert_eq!(site.submit(&format!("{path}/set_tracking"), &cookie, form).await.status, 303);
    let page = site.get(&path, &cookie).await.text();
    assert!(page.contains("value=\"go.shop.example\""), "{page}");
    assert!(page.contains("<option value=\"off\" selected>"), "{page}");
    let refused = site.submit(&format!("{path}/set_tracking"), &cookie, "host=not+a+host").await;
    assert!(
        refused.status == 422 && refused.text().contains("The host is not a host name"),
        "{}",
        refused.text()
    );
    // The verification is ended again. An admin does not see the operator's section.
    assert_eq!(site.submit(&format!("{path}/set_verified"), &cookie, "").await.status, 303);
    let (_, admin) = join(&site, "admin", "admin").await;
    let page = site.get(&path, &admin).await.text();
    assert!(page.contains("Not verified") && !page.contains("For the operator"), "{page}");
    let log = site.get("/account/audit", &cookie).await.text();
    assert!(log.contains("domains/set_verified") && log.contains("domains/set_tracking"), "{log}");
}
