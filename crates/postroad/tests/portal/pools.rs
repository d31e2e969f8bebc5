//! Pools of source addresses: their pages, the pool of a server, and gates of a pool.

use serde_json::{Value, json};

use crate::roles::call;
use crate::service::{DevService, pictures};

#[tokio::test]
async fn a_server_whose_pool_is_stopped_shows_that_as_a_problem() {
    let service = DevService::start();
    let id = service.send(json!({})).await;
    service.until_status(id, "Sent").await;
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    assert!(service.get(&server, &cookie).await.text().contains("No problems"));
    for (scope, text) in [
        (
            "pool%3Adefault",
            "Mail from the pool default, which this server uses, is stopped or slowed: on a list",
        ),
        ("pool%3Abulk", "Mail from the pool bulk, which this server uses, is stopped or slowed: on a list"),
        (
            "lane%3Abulk%2Fslow.example",
            "Mail from the pool bulk to slow.example is stopped or slowed: on a list",
        ),
    ] {
        if scope.ends_with("bulk") {
            let pool = json!({ "name": "bulk", "shared": true });
            call(
                &service,
                "x-operator-api-key",
                &service.ready("operator_api_key"),
                "ip_pools/create",
                &pool,
            )
            .await;
        }
        let form = format!("scope={scope}&reason=on+a+list");
        let gate = service.submit("/operator/suspend", &cookie, &form).await;
        assert_eq!(gate.status, 303, "{}", gate.text());
        let home = service.get(&server, &cookie).await.text();
        assert!(home.contains(text) && !home.contains("No problems"), "{home}");
        service.submit("/operator/resume", &cookie, &format!("scope={scope}")).await;
    }
}

#[tokio::test]
async fn the_pool_of_a_server_is_preselected_however_many_pools_there_are() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let id: i64 = server.rsplit_once('/').unwrap().1.parse().unwrap();
    let key = service.ready("operator_api_key");
    let by_operator =
        async |path: &str, body: Value| call(&service, "x-operator-api-key", &key, path, &body).await;
    let mut last = Value::Null;
    // One pool more than the page lists.
    for number in 0..101 {
        last = by_operator("ip_pools/create", json!({ "name": format!("pool{number}") })).await["id"].clone();
    }
    let settings = format!("{server}/settings");
    let page = service.get(&settings, &cookie).await.text();
    assert!(!page.contains(&format!("<option value=\"{last}\"")), "it is not among the first 100");
    by_operator("servers/update", json!({ "id": id, "ip_pool": last })).await;
    let page = service.get(&settings, &cookie).await.text();
    assert!(page.contains(&format!("<option value=\"{last}\" selected>pool100<")), "{page}");
}

#[tokio::test]
async fn operator_makes_a_pool_and_warms_an_address_up() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/pools")).await;
    browser.until_text("There is no pool").await;
    browser.fill("form[action='/account/pools'] input[name=name]", "dedicated").await;
    browser.click("form[action='/account/pools'] button").await;
    browser.until_text("It has no addresses yet").await;
    let add = "form[action='/account/pools/address']";
    browser.click("details summary:has(+ form)").await;
    browser.fill(&format!("{add} input[name=address]"), "somewhere").await;
    browser.fill(&format!("{add} input[name=helo]"), "mail1.example.com").await;
    browser.click(&format!("{add} button")).await;
    browser.until_text("should look like 192.0.2.1").await;
    // The form is still open, with what was typed.
    assert_eq!(
        browser.attribute(&format!("{add} input[name=helo]"), "value").await.as_deref(),
        Some("mail1.example.com")
    );
    browser.fill(&format!("{add} input[name=address]"), "192.0.2.7").await;
    browser.fill(&format!("{add} input[name=helo]"), "mail1.example.com").await;
    browser.click(&format!("{add} button")).await;
    browser.until_text("Warming up").await;
    browser.until_text("day 1 of 21").await;
    browser.until_text("up to 150 messages today to each provider").await;
    browser.click("button[value=pause]").await;
    browser.until_text("paused by hand").await;
    browser.until_text("sends nothing").await;
    browser.screenshot(&pictures().join("pools.png")).await;
    browser.click("button[value=resume]").await;
    browser.until("button[value=pause]").await;
    browser.click(".rows a").await;
    browser.until_text("Nothing was sent from this address yet").await;
    assert!(browser.text("#quota tbody tr").await.split_whitespace().eq(["others", "0", "150"]));
    browser.fill("input[name=weight]", "5").await;
    browser.click("form[action$='/update'] button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.attribute("input[name=weight]", "value").await.as_deref(), Some("5"));
    browser.screenshot(&pictures().join("pool-address.png")).await;
}
