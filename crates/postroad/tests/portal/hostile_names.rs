//! Scripts in names, reasons and notes that people of an account choose never run on the pages of others.

use serde_json::{Value, json};

use crate::hostile_texts::{PAYLOADS, check_nothing_ran, check_texts_shown, open_details, percent_encoded};
use crate::roles::{call, join};
use crate::service::{DevService, server_of};

#[tokio::test]
async fn names_of_objects_in_lists_run_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let (server_key, account_key, operator_key) =
        (service.ready("api_key"), service.ready("account_api_key"), service.ready("operator_api_key"));
    let by_server =
        async |path: &str, body: Value| call(&service, "x-server-api-key", &server_key, path, &body).await;
    let by_account =
        async |path: &str, body: Value| call(&service, "x-account-api-key", &account_key, path, &body).await;
    let by_operator = async |path: &str, body: Value| {
        call(&service, "x-operator-api-key", &operator_key, path, &body).await
    };
    let cookie = service.sign_in().await;
    let mut templates = Vec::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let body = payload.replace(['{', '}'], "");
        let template = json!({ "name": payload, "subject": body, "html_body": body, "plain_body": body, "publish": true });
        templates.push(by_server("templates/create", template).await["id"].clone());
        let address = format!("a{number}@example.net");
        by_server("suppressions/add", json!({ "address": address, "reason": "manual", "details": payload }))
            .await;
        let url = format!("http://127.0.0.1:9/{number}?{payload}");
        let hook = json!({ "url": url, "events": "all", "format": "standard" });
        service.client.post_json("/api/v1/webhooks/create", Some(&server_key), &hook).await.unwrap();
        by_account("credentials/create", json!({ "server": server, "name": payload, "scope": "send" })).await;
        by_account("account_keys/create", json!({ "name": payload, "scopes": ["read"] })).await;
        by_account("servers/create", json!({ "name": without_slash(payload) })).await;
        by_operator("accounts/create", json!({ "name": without_slash(payload) })).await;
        let form = format!("name={}&scopes=read", percent_encoded(payload));
        service.submit("/operator/keys", &cookie, &form).await;
        let gate = format!("scope=domain%3Ad{number}.example&reason={}", percent_encoded(payload));
        let gate = service.submit("/operator/suspend", &cookie, &gate).await;
        assert_eq!(gate.status, 303, "{}", gate.text());
        let search = format!("q={}", percent_encoded(payload));
        service.submit(&format!("/servers/{server}/messages/searches"), &cookie, &search).await;
    }
    for (page, shows_all) in [
        (format!("/servers/{server}/templates"), true),
        (format!("/servers/{server}/suppressions"), true),
        (format!("/servers/{server}/webhooks"), false),
        (format!("/servers/{server}/keys"), true),
        (format!("/servers/{server}/messages"), false),
        (format!("/servers/{server}/queue"), false),
        ("/servers".to_owned(), true),
        ("/account/keys".to_owned(), true),
        ("/account/domains".to_owned(), false),
        ("/account".to_owned(), false),
        ("/operator".to_owned(), true),
        ("/operator/accounts".to_owned(), true),
        ("/operator/accounts/1".to_owned(), false),
        ("/operator/keys".to_owned(), true),
        ("/account/audit".to_owned(), false),
    ] {
        let texts = all_pages(&service, &browser, &page).await;
        for payload in PAYLOADS.iter().filter(|_| shows_all) {
            let has_slashes = page != "/servers" && page != "/operator/accounts";
            let text = if has_slashes { (*payload).to_owned() } else { without_slash(payload) };
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(texts.contains(&words), "{page} does not show {text}: {texts}");
        }
    }
    for (payload, id) in PAYLOADS.iter().zip(&templates) {
        let page = format!("/servers/{server}/templates/{id}");
        browser.open(&service.url_of(&page)).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, &page).await;
        check_texts_shown(&browser, &page, [*payload]).await;
    }
}

/// Names of servers and accounts have no slash.
fn without_slash(payload: &str) -> String {
    payload.replace('/', "")
}

/// Texts of all pages of a list. Checks on each page that nothing ran.
async fn all_pages(service: &DevService, browser: &postroad_testkit::Browser, path: &str) -> String {
    let mut texts = String::new();
    browser.open(&service.url_of(path)).await;
    loop {
        browser.until("h1").await;
        open_details(browser).await;
        check_nothing_ran(browser, path).await;
        texts.push_str(&browser.page_text().await.split_whitespace().collect::<Vec<_>>().join(" "));
        if !browser.has("a[rel=next]").await {
            return texts;
        }
        browser.click("a[rel=next]").await;
    }
}

#[tokio::test]
async fn names_of_people_servers_and_accounts_run_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let cookie = service.sign_in().await;
    let (colleague, _) = join(&service, "colleague", "member").await;
    let account_key = service.ready("account_api_key");
    let by_account =
        async |path: &str, body: Value| call(&service, "x-account-api-key", &account_key, path, &body).await;
    for payload in PAYLOADS {
        by_account("users/update", json!({ "id": colleague, "name": payload })).await;
        let name = without_slash(payload);
        by_account("account/update", json!({ "name": name })).await;
        by_account("servers/update", json!({ "id": server, "name": name })).await;
        by_account("servers/suspend", json!({ "id": server, "reason": payload })).await;
        let own =
            service.submit("/account/you/name", &cookie, &format!("name={}", percent_encoded(payload))).await;
        assert_eq!(own.status, 303, "{}", own.text());
        for (page, text) in [
            (format!("/servers/{server}"), name.as_str()),
            ("/servers".to_owned(), name.as_str()),
            ("/account".to_owned(), name.as_str()),
            ("/account/people".to_owned(), payload),
            (format!("/account/people/{colleague}"), payload),
            ("/operator/accounts".to_owned(), name.as_str()),
        ] {
            browser.open(&service.url_of(&page)).await;
            browser.until("h1").await;
            check_nothing_ran(&browser, &format!("{payload} on {page}")).await;
            check_texts_shown(&browser, &page, [text]).await;
        }
    }
    // The newest name is in the log.
    let log = all_pages(&service, &browser, "/account/audit").await;
    let last = without_slash(PAYLOADS[PAYLOADS.len() - 1]);
    assert!(log.contains(&last), "{log}");
    // An invitation shows the account's name to whoever opens it.
    let newcomer = json!({ "account": 1, "email": "newcomer@example.com", "role": "member", "mail": false });
    let invited =
        call(&service, "x-operator-api-key", &service.ready("operator_api_key"), "users/invite", &newcomer)
            .await;
    let token = invited["link"].as_str().unwrap().split_once("token=").unwrap().1;
    browser.open(&service.url_of(&format!("/invitation?token={token}"))).await;
    browser.until("h1").await;
    check_nothing_ran(&browser, "the invitation").await;
    check_texts_shown(&browser, "the invitation", [&last]).await;
}
