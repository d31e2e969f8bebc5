//! Domains of servers and accounts: lists, DKIM keys, links to their records, and settings of the operator.

use serde_json::json;

use crate::roles::{call, join};
use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn domains_are_found_by_name_and_state() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let key = service.ready("account_api_key");
    call(&service, "x-account-api-key", &key, "domains/create", &json!({ "name": "shop.example" })).await;
    for list in [format!("{server}/domains"), "/account/domains".to_owned()] {
        let has = async |query: &str| {
            let page = service.get(&format!("{list}?{query}"), &cookie).await.text();
            ["example.test", "shop.example"].map(|name| page.contains(&format!("/domains/{name}\"")))
        };
        assert_eq!(has("").await, [true, true], "{list}");
        assert_eq!(has("q=SHOP").await, [false, true], "{list}");
        assert_eq!(has("state=verified").await, [true, false], "{list}");
        assert_eq!(has("state=not_verified").await, [false, true], "{list}");
        assert_eq!(has("state=failing").await, [false, false], "{list}");
        let none = service.get(&format!("{list}?q=nothing"), &cookie).await.text();
        assert!(none.contains("No domain matches"), "{none}");
    }
}

#[tokio::test]
async fn one_verified_domain_among_many_is_found() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let account_key = service.ready("account_api_key");
    let server = json!({ "name": "many" });
    let id = call(&service, "x-account-api-key", &account_key, "servers/create", &server).await["id"].clone();
    for number in 0..51 {
        let domain = json!({ "server": id, "name": format!("d{number}.example") });
        call(&service, "x-account-api-key", &account_key, "domains/create", &domain).await;
    }
    let is_step_done = async || {
        let page = service.get(&format!("/servers/{id}"), &cookie).await.text();
        let (before, _) = page.split_once("Verify a sending domain").unwrap();
        before.rsplit("<li").next().unwrap().contains("class=\"done\"")
    };
    assert!(!is_step_done().await);
    let form = format!("/servers/{id}/domains/d50.example/set_verified");
    assert_eq!(service.submit(&form, &cookie, "verified=1").await.status, 303);
    assert!(is_step_done().await);
    let page = service.get(&format!("/servers/{id}/first_message?since=0"), &cookie).await.text();
    assert!(page.contains("hello@d50.example"), "{page}");
    let form = "name=deploy&scope=send";
    let page = service.submit(&format!("/servers/{id}/keys"), &cookie, form).await.text();
    assert!(page.contains("d50.example"), "{page}");
}

#[tokio::test]
async fn a_domain_with_an_rsa_key_gets_an_ed25519_key_too() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/domains/example.test"))).await;
    browser.click("main > details summary").await;
    browser.run("document.querySelector('[name=algorithm]').value = 'ed25519'; return 1").await;
    browser.click("form.stack[action$='/rotate_dkim'] button").await;
    browser.until_text("Created").await;
    let cookie = service.sign_in().await;
    let page = service.get(&format!("/servers/{server}/domains/example.test"), &cookie).await.text();
    for algorithm in ["RSA", "Ed25519"] {
        assert!(page.contains(&format!("<td data-label=\"Algorithm\">{algorithm}</td>")), "{page}");
    }
    let path = format!("/servers/{server}/domains/example.test/rotate_dkim");
    let refused = service.submit(&path, &cookie, "algorithm=rot13").await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("The algorithm should be"), "{}", refused.text());
}

#[tokio::test]
async fn records_of_an_account_domain_are_shared_by_a_link() {
    let service = DevService::start();
    let key = service.ready("account_api_key");
    call(&service, "x-account-api-key", &key, "domains/create", &json!({ "name": "common.example" })).await;
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/domains/common.example")).await;
    browser.click("form[action$='/share'] button").await;
    browser.until_text("Send this link to whoever edits the DNS").await;
    let link = browser.text(".card .secret").await;
    let path = link.strip_prefix(&service.url).unwrap();
    let shared = service.client.get(path).await.unwrap();
    assert!(shared.status == 200 && shared.text().contains("common.example"), "{}", shared.text());
    browser.until("#links").await;
    browser.screenshot(&pictures().join("account-domain-links.png")).await;
    browser.click("#links button").await;
    browser.until_text("the link stops working at once").await;
    assert_eq!(service.client.get(path).await.unwrap().status, 404);
}

#[tokio::test]
async fn the_operator_sets_verification_and_tracking_of_a_domain() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let key = service.ready("api_key");
    call(&service, "x-server-api-key", &key, "domains/create", &json!({ "name": "shop.example" })).await;
    let path = format!("{server}/domains/shop.example");
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&path)).await;
    browser.until(".state .badge.warn").await;
    browser.click("#operator summary").await;
    browser.screenshot(&pictures().join("domain-operator.png")).await;
    browser.click("form[action$='/set_verified'] button").await;
    browser.until(".state .badge.good").await;
    browser.until_text("by the operator").await;
    let message =
        json!({ "to": ["ann@example.net"], "from": "a@shop.example", "subject": "hi", "plain_body": "hi" });
    service.send_with(&key, &message).await;
    let form = "opens=on&clicks=off&host=go.shop.example";
    assert_eq!(service.submit(&format!("{path}/set_tracking"), &cookie, form).await.status, 303);
    let page = service.get(&path, &cookie).await.text();
    assert!(page.contains("value=\"go.shop.example\""), "{page}");
    assert!(page.contains("<option value=\"off\" selected>"), "{page}");
    let refused = service.submit(&format!("{path}/set_tracking"), &cookie, "host=not+a+host").await;
    assert!(
        refused.status == 422 && refused.text().contains("The host is not a host name"),
        "{}",
        refused.text()
    );
    // The operator ends the verification. An admin does not see the operator's section of the page.
    assert_eq!(service.submit(&format!("{path}/set_verified"), &cookie, "").await.status, 303);
    let (_, admin) = join(&service, "admin", "admin").await;
    let page = service.get(&path, &admin).await.text();
    assert!(page.contains("Not verified") && !page.contains("For the operator"), "{page}");
    let log = service.get("/account/audit", &cookie).await.text();
    assert!(log.contains("domains/set_verified") && log.contains("domains/set_tracking"), "{log}");
}

#[tokio::test]
async fn a_domain_is_added_with_an_imported_dkim_key() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", "old.example").await;
    browser.click("form.stack details summary").await;
    browser.run("document.querySelector('[name=private_key]').value = 'no key'; return 1").await;
    browser.fill("input[name=selector]", "mine").await;
    browser.click("form.stack > button").await;
    browser.until(".problem").await;
    let key = serde_json::to_string(include_str!("../it/domains/own_key.pem")).unwrap();
    // The form is still open, with what was typed.
    let typed =
        "return ['name', 'selector'].map(name => document.querySelector(`form.stack [name=${name}]`).value)";
    assert_eq!(browser.run(typed).await, json!(["old.example", "mine"]));
    browser.run(&format!("document.querySelector('[name=private_key]').value = {key}; return 1")).await;
    browser.click("form.stack > button").await;
    browser.until_text("mine._domainkey.old.example").await;
    assert!(!service.get("/account/audit", &service.sign_in().await).await.text().contains("PRIVATE KEY"));
}

#[tokio::test]
async fn servers_send_from_a_domain_of_their_account() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of("/account/domains")).await;
    browser.until_text("of a server").await;
    browser.fill("input[name=name]", "not a name").await;
    browser.click("form.stack > button").await;
    browser.until(".problem").await;
    browser.fill("input[name=name]", "common.example").await;
    browser.click("form.stack > button").await;
    browser.until_text("Publish these records").await;
    service.client.post_json("/dev/dns/common.example", None, &json!({})).await.unwrap();
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;
    let key = service.ready("api_key");
    let message =
        json!({ "to": ["ann@example.net"], "from": "a@common.example", "subject": "hi", "plain_body": "hi" });
    service.send_with(&key, &message).await;
    browser.open(&service.url_of(&format!("/servers/{server}/domains/common.example"))).await;
    browser.click("a[href='/account/domains/common.example']").await;
    browser.click("form[action$='/delete'] button").await;
    browser.accept_confirmation().await;
    browser.until_text("Removed").await;
    assert!(!browser.page_text().await.contains("common.example"));
}
