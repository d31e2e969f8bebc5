//! Keys of servers, accounts and the operator: lists, networks, expiry, changes, rotation and revocation.

use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, hidden_field, pictures, server_of};

#[tokio::test]
async fn keys_are_filtered_by_whether_they_are_revoked_and_by_name() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let account = service.ready("account_api_key");
    let call = async |path: &str, body| call(&service, "x-account-api-key", &account, path, &body).await;
    let id: i64 = server.rsplit('/').next().unwrap().parse().unwrap();
    let gone = call("credentials/create", json!({ "server": id, "name": "gone" })).await["id"].clone();
    call("credentials/create", json!({ "server": id, "name": "works" })).await;
    call("credentials/revoke", json!({ "id": gone })).await;
    let gone = call("account_keys/create", json!({ "name": "gone" })).await["id"].clone();
    call("account_keys/create", json!({ "name": "works" })).await;
    call("account_keys/revoke", json!({ "id": gone })).await;
    for list in [format!("{server}/keys"), "/account/keys".to_owned()] {
        let has = async |query: &str| {
            let page = service.get(&format!("{list}?{query}"), &cookie).await.text();
            ["gone", "works"].map(|name| page.contains(&format!("class=\"main\">{name}")))
        };
        assert_eq!(has("").await, [true, true], "{list}");
        assert_eq!(has("revoked=yes").await, [true, false], "{list}");
        assert_eq!(has("revoked=no").await, [false, true], "{list}");
    }
    for list in [format!("{server}/keys?q=WORK"), "/account/keys?q=works".to_owned()] {
        let named = service.get(&list, &cookie).await.text();
        assert!(named.contains("class=\"main\">works") && !named.contains("class=\"main\">gone"), "{named}");
    }
    let nothing = service.get(&format!("{server}/keys?q=%25"), &cookie).await.text();
    assert!(nothing.contains("No key matches"), "a percent sign is no wildcard: {nothing}");
}

#[tokio::test]
async fn after_a_rotation_the_old_key_works_for_the_chosen_number_of_hours() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let account = service.ready("account_api_key");
    let id: i64 = server.rsplit('/').next().unwrap().parse().unwrap();
    for (hours, works) in [("168", true), ("0", false)] {
        let new = json!({ "server": id, "name": format!("rotated-{hours}"), "scope": "read" });
        let made = call(&service, "x-account-api-key", &account, "credentials/create", &new).await;
        let (key, old) = (made["id"].clone(), made["api_key"].as_str().unwrap().to_owned());
        let form = format!("hours={hours}");
        let rotated = service.submit(&format!("{server}/keys/{key}/rotate"), &cookie, &form).await;
        assert!(rotated.text().contains("not shown again"), "{}", rotated.text());
        let answer =
            service.client.post_json("/api/v1/server/get", Some(&old), &json!({})).await.unwrap().json();
        assert_eq!(answer["status"] == "success", works, "{hours}: {answer}");
    }
}

#[tokio::test]
async fn account_and_operator_keys_have_allowed_networks_and_an_expiry() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    for path in ["/account/keys", "/operator/keys"] {
        browser.open(&service.url_of(path)).await;
        browser.fill("form.stack input[name=name]", "office").await;
        browser.click("form.stack details summary").await;
        browser.fill("form.stack input[name=allow]", "192.0.2.0/24").await;
        browser
            .run("document.querySelector('form.stack [name=expires_at]').value = '2090-01-31'; return 1")
            .await;
        browser.screenshot(&pictures().join(format!("new{}.png", path.replace('/', "-")))).await;
        browser.click("form.stack > button").await;
        browser.until_text("Copy the key now").await;
        let text = browser.text("table.rows").await;
        assert!(text.contains("from 192.0.2.0/24") && text.contains("ends"), "{text}");
        let key = browser.text(".secret").await;
        let header = if path == "/account/keys" { "x-account-api-key" } else { "x-operator-api-key" };
        let headers = [(header, key.as_str()), ("content-type", "application/json")];
        let refused = service.client.request(
            postroad_testkit::http::Method::POST,
            "/api/v1/servers/list",
            &headers,
            "{}".to_owned().into(),
        );
        assert_eq!(refused.await.unwrap().json()["status"], "error", "the key is used from another network");
    }
    let cookie = service.sign_in().await;
    let once = hidden_field(&service.get("/account/keys", &cookie).await.text(), "once");
    let form = format!("once={once}&name=x&allow=everywhere");
    let refused = service.submit("/account/keys", &cookie, &form).await;
    assert!(refused.status == 422 && refused.text().contains("is not a network"), "{}", refused.text());
}

#[tokio::test]
async fn the_page_of_a_second_key_waits_for_a_message_sent_with_that_key_on_sqlite() {
    the_page_of_a_second_key_waits_for_a_message_sent_with_that_key(DevService::start()).await;
}

#[tokio::test]
async fn the_page_of_a_second_key_waits_for_a_message_sent_with_that_key_on_postgres() {
    the_page_of_a_second_key_waits_for_a_message_sent_with_that_key(DevService::start_on_postgres()).await;
}

async fn the_page_of_a_second_key_waits_for_a_message_sent_with_that_key(service: DevService) {
    service.send(json!({ "subject": "An old one" })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/keys"))).await;
    browser.fill("form.card.stack input[name=name]", "second").await;
    browser.click("form.card.stack > button").await;
    browser.until_text("Waiting for a message that is sent with this key").await;
    let key = browser.text("dl.summary div:first-child .secret").await;
    let panel = browser.attribute("#arrival", "data-source").await.unwrap();
    // A message sent with another key does not end the wait.
    service.send(json!({ "subject": "Of another key" })).await;
    let cookie = service.sign_in().await;
    let page = service.get(&panel, &cookie).await.text();
    assert!(page.contains("Waiting for a message that is sent with this key"), "{page}");
    browser.screenshot(&pictures().join("key-second.png")).await;
    assert!(!browser.page_text().await.contains("It arrived here"));
    let message = json!({
        "to": ["ann@example.net"], "from": "shop@example.test", "subject": "Of the new key", "plain_body": "Hi.",
    });
    service.send_with(&key, &message).await;
    browser.until_text("It arrived here").await;
    assert_eq!(browser.text("#arrival p a").await, "Of the new key");
    // A later message does not replace the one shown.
    let later = json!({
        "to": ["bob@example.net"], "from": "shop@example.test", "subject": "Later", "plain_body": "Hi.",
    });
    service.send_with(&key, &later).await;
    let page = service.get(&panel, &cookie).await.text();
    assert!(page.contains("Of the new key") && !page.contains(">Later<"), "{page}");
    // The panel without a key waits for any new message, even after it is loaded again.
    let waits = service.get(&format!("/servers/{server}/first_message"), &cookie).await;
    assert_eq!(waits.status, 303);
    let waits = waits.headers["location"].to_str().unwrap().to_owned();
    assert!(service.get(&waits, &cookie).await.text().contains("Waiting for a new message"));
    service.send(json!({ "subject": "A new one" })).await;
    assert!(service.get(&waits, &cookie).await.text().contains(">A new one</a>"));
}

#[tokio::test]
async fn a_key_is_changed_and_a_server_deleted_and_restored() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/servers")).await;
    browser.fill("form.stack input[name=name]", "staging").await;
    browser.click("form.stack button").await;
    browser.until_text("New key").await;
    let server = server_of(&browser).await;
    let keys = service.url_of(&format!("/servers/{server}/keys"));
    browser.click("form.stack button").await;
    browser.until(".secret").await;
    browser.open(&keys).await;
    browser.click("td details summary").await;
    browser.fill("td input[name=name]", "deploy").await;
    browser.fill("td input[name=allow]", "192.0.2.0").await;
    browser.run("document.querySelector('td [name=expires_at]').value = '2001-01-31'; return 1").await;
    browser.click("td details button").await;
    browser.until(".problem").await;
    // The form is still open, with what was typed.
    let typed = "return document.querySelector('td [name=name]').value";
    assert_eq!(browser.run(typed).await, json!("deploy"));
    browser.fill("td input[name=allow]", "192.0.2.0/24").await;
    browser.run("document.querySelector('td [name=expires_at]').value = '2090-01-31'; return 1").await;
    browser.screenshot(&pictures().join("key-edit.png")).await;
    browser.click("td details button").await;
    browser.until_text("Saved").await;
    let text = browser.text("table.rows").await;
    assert!(text.contains("deploy") && text.contains("from 192.0.2.0/24") && text.contains("ends"), "{text}");

    browser.open(&service.url_of(&format!("/servers/{server}/settings"))).await;
    browser.fill("form[action$='/delete'] input[name=name]", "staging").await;
    browser.click("form[action$='/delete'] button").await;
    browser.until("#deleted").await;
    assert!(browser.text("#deleted").await.contains("staging"));
    browser.screenshot(&pictures().join("servers-deleted.png")).await;
    browser.click("#deleted button").await;
    browser.until_text("Restored").await;
    browser.open(&keys).await;
    browser.until_text("deploy").await;
}

#[tokio::test]
async fn operator_keys_work_until_they_are_revoked() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/operator/keys")).await;
    browser.fill("form.stack input[name=name]", "provisioning").await;
    browser.fill("form.stack input[name=scopes]", "everything").await;
    browser.click("form.stack button").await;
    browser.until_text("Scopes are full, read, or groups").await;
    // The refused form still has the name that was typed.
    browser.fill("form.stack input[name=scopes]", "full").await;
    browser.click("form.stack button").await;
    browser.until(".secret").await;
    let key = browser.text(".secret").await;
    let accounts = call(&service, "x-operator-api-key", &key, "accounts/list", &json!({})).await;
    assert!(!accounts["items"].as_array().unwrap().is_empty(), "{accounts}");
    browser.open(&service.url_of("/operator/keys")).await;
    browser.click("tbody tr:last-child .danger").await;
    browser.accept_confirmation().await;
    browser.until_text("Revoked: the key stops working at once").await;
    let headers = [("x-operator-api-key", key.as_str()), ("content-type", "application/json")];
    let refused = service.client.request(
        postroad_testkit::http::Method::POST,
        "/api/v1/accounts/list",
        &headers,
        "{}".to_owned().into(),
    );
    assert_eq!(refused.await.unwrap().json()["status"], "error");
}
