//! Names, reasons and notes that people of an account choose run nothing on the pages of others.

use serde_json::{Value, json};

use crate::hostile::{PAYLOADS, check, in_query, open_details, shows};
use crate::roles::{call, join};
use crate::site::{Site, server_of};

#[tokio::test]
async fn names_of_things_in_lists_run_nothing() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let (server_key, account_key, operator_key) =
        (site.ready("api_key"), site.ready("account_api_key"), site.ready("operator_api_key"));
    let of_server =
        async |path: &str, body: Value| call(&site, "x-server-api-key", &server_key, path, &body).await;
    let of_account =
        async |path: &str, body: Value| call(&site, "x-account-api-key", &account_key, path, &body).await;
    let of_operator =
        async |path: &str, body: Value| call(&site, "x-operator-api-key", &operator_key, path, &body).await;
    let cookie = site.cookie().await;
    let mut templates = Vec::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let body = payload.replace(['{', '}'], "");
        let template = json!({ "name": payload, "subject": body, "html_body": body, "plain_body": body, "publish": true });
        templates.push(of_server("templates/create", template).await["id"].clone());
        let address = format!("a{number}@example.net");
        of_server("suppressions/add", json!({ "address": address, "reason": "manual", "details": payload }))
            .await;
        let url = format!("http://127.0.0.1:9/{number}?{payload}");
        let hook = json!({ "url": url, "events": "all", "format": "standard" });
        site.client.post_json("/api/v1/webhooks/create", Some(&server_key), &hook).await.unwrap();
        of_account("credentials/create", json!({ "server": server, "name": payload, "scope": "send" })).await;
        of_account("account_keys/create", json!({ "name": payload, "scopes": ["read"] })).await;
        of_account("servers/create", json!({ "name": without_slash(payload) })).await;
        of_operator("accounts/create", json!({ "name": without_slash(payload) })).await;
        let form = format!("name={}&scopes=read", in_query(payload));
        site.submit("/operator/keys", &cookie, &form).await;
        let gate = format!("scope=domain%3Ad{number}.example&reason={}", in_query(payload));
        let gate = site.submit("/operator/suspend", &cookie, &gate).await;
        assert_eq!(gate.status, 303, "{}", gate.text());
        let search = format!("q={}", in_query(payload));
        site.submit(&format!("/servers/{server}/messages/searches"), &cookie, &search).await;
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
        let texts = all_pages(&site, &browser, &page).await;
        for payload in PAYLOADS.iter().filter(|_| shows_all) {
            let has_slashes = page != "/servers" && page != "/operator/accounts";
            let text = if has_slashes { (*payload).to_owned() } else { without_slash(payload) };
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(texts.contains(&words), "{page} does not show {text}: {texts}");
        }
    }
    for (payload, id) in PAYLOADS.iter().zip(&templates) {
        let page = format!("/servers/{server}/templates/{id}");
        browser.open(&site.url_of(&page)).await;
        browser.until("h1").await;
        check(&browser, &page).await;
        shows(&browser, &page, [*payload]).await;
    }
}

/// Names of servers and accounts have no slash.
fn without_slash(payload: &str) -> String {
    payload.replace('/', "")
}

/// Texts of a list and of the pages that follow it; each is checked.
async fn all_pages(site: &Site, browser: &postroad_testkit::Browser, path: &str) -> String {
    let mut texts = String::new();
    browser.open(&site.url_of(path)).await;
    loop {
        browser.until("h1").await;
        open_details(browser).await;
        check(browser, path).await;
        texts.push_str(&browser.page_text().await.split_whitespace().collect::<Vec<_>>().join(" "));
        if !browser.has("a[rel=next]").await {
            return texts;
        }
        browser.click("a[rel=next]").await;
    }
}

#[tokio::test]
async fn names_of_people_servers_and_accounts_run_nothing() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let cookie = site.cookie().await;
    let (colleague, _) = join(&site, "colleague", "member").await;
    let account_key = site.ready("account_api_key");
    let of_account =
        async |path: &str, body: Value| call(&site, "x-account-api-key", &account_key, path, &body).await;
    for payload in PAYLOADS {
        of_account("users/update", json!({ "id": colleague, "name": payload })).await;
        let name = without_slash(payload);
        of_account("account/update", json!({ "name": name })).await;
        of_account("servers/update", json!({ "id": server, "name": name })).await;
        of_account("servers/suspend", json!({ "id": server, "reason": payload })).await;
        let own = site.submit("/account/you/name", &cookie, &format!("name={}", in_query(payload))).await;
        assert_eq!(own.status, 303, "{}", own.text());
        for (page, text) in [
            (format!("/servers/{server}"), name.as_str()),
            ("/servers".to_owned(), name.as_str()),
            ("/account".to_owned(), name.as_str()),
            ("/account/people".to_owned(), payload),
            (format!("/account/people/{colleague}"), payload),
            ("/operator/accounts".to_owned(), name.as_str()),
        ] {
            browser.open(&site.url_of(&page)).await;
            browser.until("h1").await;
            check(&browser, &format!("{payload} on {page}")).await;
            shows(&browser, &page, [text]).await;
        }
    }
    // The newest name is in the log.
    let log = all_pages(&site, &browser, "/account/audit").await;
    let last = without_slash(PAYLOADS[PAYLOADS.len() - 1]);
    assert!(log.contains(&last), "{log}");
    // An invitation shows the account's name to whoever opens it.
    let newcomer = json!({ "account": 1, "email": "newcomer@example.com", "role": "member", "mail": false });
    let invited =
        call(&site, "x-operator-api-key", &site.ready("operator_api_key"), "users/invite", &newcomer).await;
    let token = invited["link"].as_str().unwrap().split_once("token=").unwrap().1;
    browser.open(&site.url_of(&format!("/invitation?token={token}"))).await;
    browser.until("h1").await;
    check(&browser, "the invitation").await;
    shows(&browser, "the invitation", [&last]).await;
}
