//! Pages for operators and owners: maintenance, operator keys, people, templates, account domains, ceilings, the start
//! page and the first message.

use serde_json::json;

use crate::roles::{call, join};
use crate::site::{SecondServer, Site, hidden};

#[tokio::test]
async fn operator_begins_and_ends_maintenance() {
    let site = Site::start();
    let cookie = site.cookie().await;
    assert!(site.get("/operator", &cookie).await.text().contains("Begin maintenance"));
    assert_eq!(site.submit("/operator/maintenance", &cookie, "on=1").await.status, 303);
    let page = site.get("/operator", &cookie).await.text();
    assert!(page.contains("Maintenance mode is on") && page.contains("End maintenance"), "{page}");
    let account = site.ready("account_api_key");
    let headers = [("x-account-api-key", account.as_str())];
    assert_eq!(site.post("/api/v1/account/get", &headers, "{}").await.status, 503);
    assert_eq!(site.submit("/operator/maintenance", &cookie, "").await.status, 303);
    assert!(site.get("/operator", &cookie).await.text().contains("Begin maintenance"));
    call(&site, "x-account-api-key", &account, "account/get", &json!({})).await;
}

#[tokio::test]
async fn operator_keys_work_until_they_are_revoked() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.open(&site.url_of("/operator/keys")).await;
    browser.fill("form.stack input[name=name]", "provisioning").await;
    browser.fill("form.stack input[name=scopes]", "everything").await;
    browser.click("form.stack button").await;
    browser.until_text("Scopes are full, read, or groups").await;
    // The form has what was typed.
    browser.fill("form.stack input[name=scopes]", "full").await;
    browser.click("form.stack button").await;
    browser.until(".secret").await;
    let key = browser.text(".secret").await;
    let accounts = call(&site, "x-operator-api-key", &key, "accounts/list", &json!({})).await;
    assert!(!accounts["items"].as_array().unwrap().is_empty(), "{accounts}");
    browser.open(&site.url_of("/operator/keys")).await;
    browser.click("tbody tr:last-child .danger").await;
    browser.accept_question().await;
    browser.until_text("Revoked: the key stops working at once").await;
    let headers = [("x-operator-api-key", key.as_str()), ("content-type", "application/json")];
    let refused = site.client.request(
        postroad_testkit::http::Method::POST,
        "/api/v1/accounts/list",
        &headers,
        "{}".to_owned().into(),
    );
    assert_eq!(refused.await.unwrap().json()["status"], "error");
}

#[tokio::test]
async fn a_person_is_renamed_signed_out_and_gets_a_reset_link() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let (id, session) = join(&site, "bob", "member").await;
    let browser = site.browser().await;
    browser.open(&site.url_of("/account/people")).await;
    browser.click(&format!("a[href='/account/people/{id}']")).await;
    browser.until_text("bob@example.com").await;
    browser.fill("main form.stack input[name=name]", "Robert").await;
    browser.click("main form.stack > button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.text("h1").await, "Robert");
    browser.click("#sessions button").await;
    browser.until_text("Nobody is signed in as").await;
    assert_eq!(site.get("/servers", &session).await.status, 303, "the session has ended");
    browser.click("form[action$='/reset_link'] button").await;
    browser.until_text("Pass this link on").await;
    let link = browser.text(".secret").await;
    assert!(link.contains("/reset_password?token="), "{link}");
    // He becomes an operator, and stops being one.
    let path = format!("/account/people/{id}");
    for (operator, is_one) in [("&operator=1", true), ("", false)] {
        let version = hidden(&site.get(&path, &cookie).await.text(), "version");
        let form = format!("version={version}&name=Robert&has_operator=1{operator}");
        assert_eq!(site.submit(&path, &cookie, &form).await.status, 303);
        let page = site.get(&path, &cookie).await.text();
        assert_eq!(page.contains("value=\"1\" checked> Operator"), is_one, "{page}");
    }
    let refused = site.submit(&format!("{path}/disable_app"), &cookie, "").await;
    assert_eq!(refused.status, 422, "he has none");
    // An admin gives nobody the operator's right.
    let (_, admin) = join(&site, "admin", "admin").await;
    let form = "name=Rob&has_operator=1&operator=1";
    assert_eq!(site.submit(&path, &admin, form).await.status, 422);
    assert_eq!(site.submit(&format!("{path}/reset_link"), &admin, "").await.status, 403);
}

#[tokio::test]
async fn a_first_message_is_sent_from_its_page() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = crate::site::server_of(&browser).await;
    browser.open(&site.url_of(&format!("/servers/{server}/first_message"))).await;
    browser.until_text("Waiting for your first message").await;
    let own = browser.attribute("input[name=from]", "value").await.unwrap();
    assert!(own.starts_with("hello@"), "{own}");
    browser.fill("input[name=from]", "hello@elsewhere.example").await;
    browser.fill("input[name=to]", "ann@example.net").await;
    browser.click("main form.stack button").await;
    browser.until_text("not authorised to send").await;
    browser.fill("input[name=from]", &own).await;
    browser.click("main form.stack button").await;
    browser.until_text("It arrived here").await;
    browser.until_text("A first message from Postroad").await;
}

#[tokio::test]
async fn a_template_is_rolled_back_and_older_versions_are_previewed() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let key = site.ready("api_key");
    let call = async |path: &str, body| call(&site, "x-server-api-key", &key, path, &body).await;
    let new = json!({ "name": "Bill", "alias": "bill", "subject": "x", "html_body": "<p>Text of one</p>", "publish": true });
    let id = call("templates/create", new).await["id"].clone();
    let change = json!({ "id": id, "html_body": "<p>Text of two</p>", "publish": true });
    call("templates/update", change).await;
    let path = format!("{server}/templates/{id}");
    let page = site.get(&format!("{path}?version=1"), &cookie).await.text();
    assert!(page.contains("Preview of version 1") && page.contains("The newest is"), "{page}");
    let preview = format!("{path}/preview?version=1");
    assert!(page.contains(&format!("src=\"{preview}\"")), "{page}");
    assert!(site.get(&preview, &cookie).await.text().contains("Text of one"));
    let page = site.get(&path, &cookie).await.text();
    assert!(page.contains("Preview of version 2") && !page.contains("The newest is"), "{page}");
    assert!(page.contains("Roll back to version 1"), "{page}");
    for _ in 0..2 {
        assert_eq!(site.submit(&format!("{path}/rollback"), &cookie, "version=1").await.status, 303);
        let page = site.get(&path, &cookie).await.text();
        assert!(page.contains("Version 1 published"), "{page}");
    }
}

#[tokio::test]
async fn a_domain_of_the_account_serves_its_servers() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = crate::site::server_of(&browser).await;
    browser.open(&site.url_of("/account/domains")).await;
    browser.until_text("of a server").await;
    browser.fill("input[name=name]", "not a name").await;
    browser.click("form.stack > button").await;
    browser.until(".problem").await;
    browser.fill("input[name=name]", "common.example").await;
    browser.click("form.stack > button").await;
    browser.until_text("Publish these records").await;
    site.client.post_json("/dev/dns/common.example", None, &json!({})).await.unwrap();
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;
    let key = site.ready("api_key");
    let message =
        json!({ "to": ["ann@example.net"], "from": "a@common.example", "subject": "hi", "plain_body": "hi" });
    site.send_with(&key, &message).await;
    browser.open(&site.url_of(&format!("/servers/{server}/domains/common.example"))).await;
    browser.click("a[href='/account/domains/common.example']").await;
    browser.click("form[action$='/delete'] button").await;
    browser.accept_question().await;
    browser.until_text("Removed").await;
    assert!(!browser.page_text().await.contains("common.example"));
}

#[tokio::test]
async fn forms_warn_when_a_ceiling_is_near() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let account_key = site.ready("account_api_key");
    let account =
        call(&site, "x-account-api-key", &account_key, "account/get", &json!({})).await["id"].clone();
    let ceilings = json!({ "servers": 2, "domains": 2, "webhooks": 1, "users": 2 });
    let operator_key = site.ready("operator_api_key");
    let body = json!({ "id": account, "ceilings": ceilings });
    call(&site, "x-operator-api-key", &operator_key, "accounts/update", &body).await;
    for (path, fields, what) in [
        ("/servers".to_owned(), "name=second&mode=live", "2 servers"),
        (format!("{server}/domains"), "name=shop.example", "2 domains"),
        (format!("{server}/webhooks"), "url=https://hooks.example/in", "1 webhooks"),
        ("/account/people".to_owned(), "email=bob@example.net&role=member", "2 users"),
    ] {
        let mut reply = site.submit(&path, &cookie, fields).await;
        if reply.status == 303 {
            reply = site.get(reply.headers["location"].to_str().unwrap(), &cookie).await;
        }
        let warning = format!("The account has {what}, the maximum.");
        assert!(reply.status == 200 && reply.text().contains(&warning), "{path}: {}", reply.text());
        // Only the page that answers the form shows the warning.
        assert!(!site.get("/servers", &cookie).await.text().contains("the maximum"));
    }
}

#[tokio::test]
async fn the_start_page_opens_the_server_that_was_looked_at_last() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let first = site.server_path(&cookie).await;
    let second = SecondServer::create_development(&site).await.id;
    let reply = site.get(&format!("/servers/{second}/messages"), &cookie).await;
    let set = reply.headers["set-cookie"].to_str().unwrap();
    assert!(set.starts_with(&format!("server={second}; ")), "{set}");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"), "{set}");
    let start = async |server: &str| {
        let reply = site.get("/", &format!("{cookie}; server={server}")).await;
        reply.headers["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(start(&second.to_string()).await, format!("/servers/{second}"));
    let again = site.get(&format!("/servers/{second}"), &format!("{cookie}; server={second}")).await;
    assert!(again.headers.get("set-cookie").is_none());
    // The first server is opened for an id that no server has, and for a text that is not an id.
    for wrong in ["987654321", "x", "-1", "../evil", ""] {
        assert_eq!(start(wrong).await, first, "{wrong}");
    }
    let missing = site.get("/servers/987654321", &cookie).await;
    assert!(missing.headers.get("set-cookie").is_none());
    // The same in the browser.
    let browser = site.browser().await;
    browser.open(&site.url_of(&format!("/servers/{second}/queue"))).await;
    browser.until_text("What waits").await;
    browser.click("a.brand").await;
    browser.until(&format!("nav.side a[href='/servers/{second}'][aria-current]")).await;
    // A deleted server is not opened.
    let deleted = site.submit(&format!("/servers/{second}/delete"), &cookie, "name=staging").await;
    assert_eq!(deleted.status, 303, "{}", deleted.text());
    assert_eq!(start(&second.to_string()).await, first);
}
