//! The operator's pages about a customer: people, keys, servers, ceilings, suspension, and the customer's audit log.

use serde_json::json;

use crate::roles::{call, join};
use crate::service::{DevService, hidden_field, pictures};

#[tokio::test]
async fn the_operator_sets_a_customer_up_in_the_browser() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/operator/accounts")).await;
    browser.fill("form.stack input[name=name]", "Shop Ltd").await;
    browser.click("form.stack button").await;
    browser.until_text("Nobody has joined yet").await;
    let url = browser.url().await;
    let base = url.split("/people").next().unwrap().strip_prefix(&service.url).unwrap().to_owned();
    let id = base.rsplit('/').next().unwrap().to_owned();
    // The first owner is invited by a link that the operator passes on.
    browser.fill("form.stack input[name=email]", "ada@shop.example").await;
    browser.run("document.querySelector('form.stack [name=role]').value = 'owner'; return 1").await;
    browser.click("form.stack > button").await;
    browser.until_text("Invited").await;
    let link = browser.text(".secret").await;
    browser.screenshot(&pictures().join("operator-account-people.png")).await;
    let token = link.split_once("token=").unwrap().1;
    let form = format!("token={token}&name=Ada&password=a+road+of+seven+posts");
    let joined = service.post("/invitation", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(joined.status, 303, "{}", joined.text());
    let ada = joined.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    browser.open(&service.url_of(&format!("{base}/people"))).await;
    browser.until_text("ada@shop.example").await;
    // The new server sends from the account's own pool.
    let cookie = service.sign_in().await;
    let pools = service.submit("/account/pools", &cookie, &format!("name=shop&account={id}")).await;
    assert_eq!(pools.status, 303, "{}", pools.text());
    browser.open(&service.url_of(&base)).await;
    browser.click("main > details summary").await;
    browser.fill("form[action$='/servers'] input[name=name]", "production").await;
    browser
        .run("const pool = document.querySelector('[name=pool]'); pool.value = pool.options[1].value; return 1")
        .await;
    browser.click("form[action$='/servers'] button").await;
    browser.until_text("Created").await;
    browser.screenshot(&pictures().join("operator-account-filled.png")).await;
    assert!(browser.text("main").await.contains("production"));
    let operator = service.ready("operator_api_key");
    let account: i64 = id.parse().unwrap();
    let wanted = json!({ "account": account });
    let servers = call(&service, "x-operator-api-key", &operator, "servers/list", &wanted).await;
    assert!(!servers["items"][0]["ip_pool"].is_null(), "{servers}");
    // A new key of the account is shown once.
    browser.click(".tabs a[href$='/keys']").await;
    browser.fill("form.stack input[name=name]", "provisioning").await;
    browser.click("form.stack > button").await;
    browser.until_text("Copy the key now").await;
    let key = browser.text(".secret").await;
    let own = call(&service, "x-account-api-key", &key, "account/get", &json!({})).await;
    assert_eq!(own["name"], "Shop Ltd");
    // The operator adds and verifies a domain that all servers of the account can send from.
    browser.click(".tabs a[href$='/domains']").await;
    browser.fill("form.stack input[name=name]", "shop.example").await;
    browser.click("form.stack > button").await;
    browser.until_text("_domainkey.shop.example").await;
    assert!(browser.url().await.contains(&format!("{base}/domains/shop.example")));
    browser.click("#operator summary").await;
    browser.click("form[action$='/set_verified'] button").await;
    browser.until_text("by the operator").await;
    let domains = call(&service, "x-account-api-key", &key, "domains/list", &json!({})).await;
    assert_eq!(domains["items"][0]["name"], "shop.example", "{domains}");
    browser.open(&service.url_of(&format!("{base}/domains"))).await;
    browser.until_text("shop.example").await;
    assert!(browser.text(".tabs [aria-current]").await.contains("Domains"));
    // The account is suspended with a reason: its owner is locked out.
    browser.open(&service.url_of(&base)).await;
    browser.fill("form[action$='/suspend'] input[name=reason]", "unpaid").await;
    browser.click("form[action$='/suspend'] button").await;
    browser.until_text("unpaid").await;
    assert_eq!(service.get("/servers", &ada).await.status, 303);
    // The operator reads the audit log of the account.
    browser.open(&service.url_of(&format!("{base}/audit"))).await;
    browser.until_text("accounts/suspend").await;
    let log = browser.page_text().await;
    for operation in ["users/invite", "servers/create", "account_keys/create"] {
        assert!(log.contains(operation), "{operation}: {log}");
    }
    let resumed = service.submit(&format!("{base}/resume"), &cookie, "").await;
    assert_eq!(resumed.status, 303);
    assert_eq!(service.get("/servers", &ada).await.status, 200, "she is let in again");
    // Its owner sees nothing of other accounts, and none of the operator's pages.
    for path in [
        "/operator/accounts/1/people",
        "/operator/accounts/1/keys",
        "/operator/accounts/1/domains",
        "/operator/accounts/1/domains/common.example/zone",
        "/operator/audit",
    ] {
        assert_eq!(service.get(path, &ada).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn accounts_servers_people_and_pools_are_found_by_name_and_state() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let operator = service.ready("operator_api_key");
    let by_operator =
        async |path: &str, body| call(&service, "x-operator-api-key", &operator, path, &body).await;
    let bad = by_operator("accounts/create", json!({ "name": "bad" })).await["id"].clone();
    by_operator("accounts/create", json!({ "name": "good" })).await;
    by_operator("accounts/suspend", json!({ "id": bad, "reason": "spam" })).await;
    let account = service.ready("account_api_key");
    let by_account =
        async |path: &str, body| call(&service, "x-account-api-key", &account, path, &body).await;
    let bad = by_account("servers/create", json!({ "name": "bad" })).await["id"].clone();
    by_account("servers/create", json!({ "name": "good" })).await;
    by_account("servers/suspend", json!({ "id": bad, "reason": "spam" })).await;
    for list in ["/operator/accounts", "/servers"] {
        let has = async |query: &str| {
            let page = service.get(&format!("{list}?{query}"), &cookie).await.text();
            let (_, main) = page.split_once("<main").unwrap();
            ["bad", "good"].map(|name| main.contains(&format!("\">{name}</a>")))
        };
        assert_eq!(has("").await, [true, true], "{list}");
        assert_eq!(has("suspended=yes").await, [true, false], "{list}");
        assert_eq!(has("suspended=no").await, [false, true], "{list}");
        assert_eq!(has("q=good").await, [false, true], "{list}");
        assert_eq!(has("q=OO").await, [false, true], "{list}: a part of the name, in upper or lower case");
        for none in ["none", "%25", "g__d", "%5C"] {
            assert_eq!(has(&format!("q={none}")).await, [false, false], "{list}: {none}");
        }
    }
    join(&service, "rita", "read-only").await;
    join(&service, "max", "member").await;
    let people = async |query: &str| {
        let page = service.get(&format!("/account/people?{query}"), &cookie).await.text();
        ["rita@example.com", "max@example.com"].map(|email| page.contains(&format!("<small>{email}")))
    };
    assert_eq!(people("role=read-only").await, [true, false]);
    assert_eq!(people("q=MAX%40example.com").await, [false, true]);
    assert_eq!(people("").await, [true, true]);
    by_operator("ip_pools/create", json!({ "name": "bulk", "shared": true })).await;
    by_operator("ip_pools/create", json!({ "name": "own", "account": 1 })).await;
    let pools = async |query: &str| {
        let page = service.get(&format!("/account/pools?{query}"), &cookie).await.text();
        ["bulk", "own"].map(|name| page.contains(&format!("<h2>{name}")))
    };
    assert_eq!(pools("shared=yes").await, [true, false]);
    assert_eq!(pools("shared=no").await, [false, true]);
    assert_eq!(pools("q=own").await, [false, true]);
}

#[tokio::test]
async fn ceilings_of_a_server_are_set_by_its_account_and_the_operator() {
    let service = DevService::start();
    let operator = service.sign_in().await;
    let server = service.server_path(&operator).await;
    let (_, admin) = join(&service, "admin", "admin").await;
    let settings = format!("{server}/settings");
    let save_ceilings = async |cookie: &str, fields: &str| {
        let version = hidden_field(&service.get(&settings, cookie).await.text(), "version");
        service.submit(&format!("{server}/ceilings"), cookie, &format!("version={version}&{fields}")).await
    };
    assert_eq!(save_ceilings(&operator, "hourly_limit=1000&send_rate=10%2Fs").await.status, 303);
    assert_eq!(save_ceilings(&admin, "hourly_limit=500&messages_days=30").await.status, 303);
    let page = service.get(&settings, &admin).await.text();
    assert!(page.contains("At most: ") && page.contains("500 messages an hour"), "{page}");
    assert!(page.contains("messages kept 30 days") && page.contains("send rate 10/s"), "{page}");
    // The account and the operator each see and change their own ceilings.
    let own_limit = |page: &str| {
        let (_, form) = page.split_once("/ceilings\"").unwrap();
        form.split("name=\"hourly_limit\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!(own_limit(&page), "500");
    assert_eq!(own_limit(&service.get(&settings, &operator).await.text()), "1000");
    let wrong = save_ceilings(&admin, "hourly_limit=many").await;
    assert!(wrong.status == 422 && wrong.text().contains("should be a number"), "{}", wrong.text());
    // The settings stay within the ceilings.
    let key = service.ready("api_key");
    let change = json!({ "hourly_limit": 800 });
    let refused =
        service.client.post_json("/api/v1/server/update", Some(&key), &change).await.unwrap().json();
    assert_eq!(refused["status"], "error", "{refused}");
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&settings)).await;
    browser.click("#ceilings summary").await;
    browser.screenshot(&pictures().join("settings-ceilings.png")).await;
}

#[tokio::test]
async fn all_servers_of_a_customer_are_listed_and_deleted_ones_restored() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let operator = service.ready("operator_api_key");
    let call = async |path: &str, body| call(&service, "x-operator-api-key", &operator, path, &body).await;
    let account = call("accounts/create", json!({ "name": "Customer" })).await["id"].clone();
    let mut last = json!(0);
    for number in 0..101 {
        let server = json!({ "account": account, "name": format!("server-{number}.") });
        last = call("servers/create", server).await["id"].clone();
    }
    let page = format!("/operator/accounts/{account}");
    let first = service.get(&page, &cookie).await.text();
    assert!(first.contains(">server-99.<") && !first.contains(">server-100.<"), "{first}");
    let next = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let second = service.get(&format!("{page}{}", next.split('"').next().unwrap()), &cookie).await.text();
    assert!(second.contains(">server-100.<") && !second.contains(">server-99.<"), "{second}");
    let deleted = service.submit(&format!("/servers/{last}/delete"), &cookie, "name=server-100.").await;
    assert_eq!(deleted.status, 303, "{}", deleted.text());
    let list = service.get(&page, &cookie).await.text();
    assert!(list.contains("Deleted servers") && list.contains(&format!("/servers/{last}/restore")), "{list}");
    assert_eq!(service.submit(&format!("/servers/{last}/restore"), &cookie, "").await.status, 303);
    assert!(!service.get(&page, &cookie).await.text().contains("Deleted servers"));
}
