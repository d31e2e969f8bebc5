//! Pages of an account: its people, usage and ceilings. Also the first message of a server.

use postroad_testkit::eventually;
use serde_json::json;

use crate::roles::{call, join};
use crate::service::{DevService, hidden_field, pictures, server_of};

#[tokio::test]
async fn the_operator_renames_and_signs_out_a_person_creates_a_reset_link_and_grants_operator_rights() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let (id, session) = join(&service, "bob", "member").await;
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/people")).await;
    browser.click(&format!("a[href='/account/people/{id}']")).await;
    browser.until_text("bob@example.com").await;
    browser.fill("main form.stack input[name=name]", "Robert").await;
    browser.click("main form.stack > button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.text("h1").await, "Robert");
    browser.click("#sessions button").await;
    browser.until_text("Nobody is signed in as").await;
    assert_eq!(service.get("/servers", &session).await.status, 303, "the session has ended");
    browser.click("form[action$='/reset_link'] button").await;
    browser.until_text("Pass this link on").await;
    let link = browser.text(".secret").await;
    assert!(link.contains("/reset_password?token="), "{link}");
    // Bob becomes an operator, and stops being one.
    let path = format!("/account/people/{id}");
    for (operator, is_one) in [("&operator=1", true), ("", false)] {
        let version = hidden_field(&service.get(&path, &cookie).await.text(), "version");
        let form = format!("version={version}&name=Robert&has_operator=1{operator}");
        assert_eq!(service.submit(&path, &cookie, &form).await.status, 303);
        let page = service.get(&path, &cookie).await.text();
        assert_eq!(page.contains("value=\"1\" checked> Operator"), is_one, "{page}");
    }
    let refused = service.submit(&format!("{path}/disable_app"), &cookie, "").await;
    assert_eq!(refused.status, 422, "Bob has no authenticator app");
    // An admin can give nobody the operator's right or a reset link.
    let (_, admin) = join(&service, "admin", "admin").await;
    let form = "name=Rob&has_operator=1&operator=1";
    assert_eq!(service.submit(&path, &admin, form).await.status, 422);
    assert_eq!(service.submit(&format!("{path}/reset_link"), &admin, "").await.status, 403);
}

#[tokio::test]
async fn a_first_message_is_sent_from_its_page() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/first_message"))).await;
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
async fn forms_warn_when_a_ceiling_is_reached() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let account_key = service.ready("account_api_key");
    let account =
        call(&service, "x-account-api-key", &account_key, "account/get", &json!({})).await["id"].clone();
    let ceilings = json!({ "servers": 2, "domains": 2, "webhooks": 1, "users": 2 });
    let operator_key = service.ready("operator_api_key");
    let body = json!({ "id": account, "ceilings": ceilings });
    call(&service, "x-operator-api-key", &operator_key, "accounts/update", &body).await;
    for (path, fields, what) in [
        ("/servers".to_owned(), "name=second&mode=live", "2 servers"),
        (format!("{server}/domains"), "name=shop.example", "2 domains"),
        (format!("{server}/webhooks"), "url=https://hooks.example/in", "1 webhooks"),
        ("/account/people".to_owned(), "email=bob@example.net&role=member", "2 users"),
    ] {
        let mut reply = service.submit(&path, &cookie, fields).await;
        if reply.status == 303 {
            reply = service.get(reply.headers["location"].to_str().unwrap(), &cookie).await;
        }
        let warning = format!("The account has {what}, the maximum.");
        assert!(reply.status == 200 && reply.text().contains(&warning), "{path}: {}", reply.text());
        // Only the page that answers the form shows the warning.
        assert!(!service.get("/servers", &cookie).await.text().contains("the maximum"));
    }
}

#[tokio::test]
async fn usage_of_the_account_is_shown_with_its_ceilings() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let operator = service.ready("operator_api_key");
    let headers = [("x-operator-api-key", operator.as_str()), ("content-type", "application/json")];
    let ceilings = json!({ "id": 1, "ceilings": { "servers": 1, "domains": 10, "daily_limit": 1000, "send_rate": "10/s" } });
    let call = service.client.request(
        postroad_testkit::http::Method::POST,
        "/api/v1/accounts/update",
        &headers,
        ceilings.to_string().into(),
    );
    let answer = call.await.unwrap().json();
    assert_eq!(answer["status"], "success", "{answer}");
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account")).await;
    browser.until_text("Messages today").await;
    let text = browser.text("table.rows").await;
    assert!(text.contains("Servers Reached") && text.contains("no limit"), "{text}");
    assert!(browser.page_text().await.contains("Send rate of all servers together"));
    assert_eq!(browser.attribute("meter[aria-label^='Domains']", "max").await.as_deref(), Some("10"));
    browser.fill("input[name=name]", "Shop Ltd").await;
    browser.click("main form button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.text("h1").await, "Shop Ltd");
    assert!(service.get("/account/audit", &cookie).await.text().contains("account/update"));
}

#[tokio::test]
async fn the_account_page_shows_the_messages_of_the_month_by_server() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let account_key = service.ready("account_api_key");
    let by_account =
        async |path: &str, body| call(&service, "x-account-api-key", &account_key, path, &body).await;
    for _ in 0..2 {
        let id = service.send(json!({})).await;
        service.until_status(id, "Sent").await;
    }
    let quiet = by_account("servers/create", json!({ "name": "Quiet" })).await["id"].as_i64().unwrap();
    let (_, reader) = join(&service, "reader", "read-only").await;
    let row = |page: &str, server: &str| {
        let (_, rest) = page.split_once(&format!(">{server}</a></td>"))?;
        let cells = rest.split("</tr>").next()?.split("<td").skip(1);
        Some(
            cells
                .map(|cell| cell.split(['>', '<']).nth(1).unwrap_or_default().to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let name = by_account("servers/list", json!({})).await["items"][0]["name"].as_str().unwrap().to_owned();
    eventually(async || {
        let page = service.get("/account", &reader).await;
        assert_eq!(page.status, 200);
        let found = row(&page.text(), &name);
        if found == Some(vec!["2".into(), "2".into()]) { Ok(()) } else { Err(page.text()) }
    })
    .await;
    let page = service.get("/account", &cookie).await.text();
    assert_eq!(row(&page, "Quiet"), Some(vec!["0".into(), "0".into()]), "{page}");
    assert!(page.contains("All servers") && page.contains("<strong>2</strong>"), "{page}");
    // If a new account name is refused, the page still shows the table of messages.
    let refused = service.submit("/account", &cookie, "name=").await;
    assert!(refused.status == 422 && refused.text().contains("Messages this month"), "{}", refused.text());

    by_account("servers/delete", json!({ "id": quiet })).await;
    assert_eq!(row(&service.get("/account", &cookie).await.text(), "Quiet"), None, "it is deleted");
    for number in 0..22 {
        by_account("servers/create", json!({ "name": format!("More {number}") })).await;
    }
    let page = service.get("/account", &cookie).await.text();
    assert!(page.contains("The first 20 servers") && page.contains("These servers together"), "{page}");
    let rows = page.matches("/analytics\">").count();
    assert_eq!(rows, 20, "{page}");
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account")).await;
    browser.until_text("Messages this month").await;
    browser.screenshot(&pictures().join("account.png")).await;
}
