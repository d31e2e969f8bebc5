//! The audit log as people read it: names, and links to what still exists.

use serde_json::json;

use crate::roles::{call, join};
use crate::service::{DevService, form_token, pictures};

#[tokio::test]
async fn the_audit_log_names_people_keys_and_objects_on_sqlite() {
    the_audit_log_names_people_keys_and_objects(DevService::start()).await;
}

#[tokio::test]
async fn the_audit_log_names_people_keys_and_objects_on_postgres() {
    the_audit_log_names_people_keys_and_objects(DevService::start_on_postgres()).await;
}

async fn the_audit_log_names_people_keys_and_objects(service: DevService) {
    let operator = service.sign_in().await;
    let (anna_id, anna) = join(&service, "anna", "admin").await;
    let submit = async |cookie: &str, path: &str, fields: &str| {
        let token = form_token(&service.get("/servers", cookie).await);
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        let reply = service.post(path, &headers, &format!("csrf={token}&{fields}")).await;
        assert_eq!(reply.status, 303, "{path}: {}", reply.text());
        reply.headers["location"].to_str().unwrap().to_owned()
    };
    let staging = submit(&anna, "/servers", "name=staging&mode=live").await;
    let staging = staging.split("/keys").next().unwrap().to_owned();
    submit(&anna, &format!("{staging}/domains"), "name=shop.example").await;
    submit(&anna, &format!("{staging}/domains/shop.example/delete"), "").await;
    submit(&anna, &format!("{staging}/domains"), "name=store.example").await;
    let key = service.ready("account_api_key");
    let staging_id: i64 = staging.rsplit('/').next().unwrap().parse().unwrap();
    let wanted = json!({ "server": staging_id, "name": "deploy" });
    let made = call(&service, "x-account-api-key", &key, "credentials/create", &wanted).await;
    let deploy = made["api_key"].as_str().unwrap();
    let template = json!({ "name": "Welcome", "alias": "welcome", "subject": "hi", "plain_body": "hi" });
    call(&service, "x-server-api-key", deploy, "templates/create", &template).await;

    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/audit")).await;
    browser.until("table.rows").await;
    let text = browser.page_text().await;
    for part in [
        "anna (anna@example.com)",
        "server staging",
        "domain shop.example of staging",
        "key deploy of staging",
        "template Welcome of staging",
        "credentials/create",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = service.get("/account/audit", &operator).await.text();
    assert!(
        page.contains(&format!("<a href=\"{staging}/domains/store.example\">domain store.example</a>")),
        "{page}"
    );
    assert!(!page.contains("/domains/shop.example\""), "a domain that is gone has no link: {page}");
    assert!(page.contains(&format!("<a href=\"{staging}\">server staging</a>")), "{page}");
    browser.screenshot(&pictures().join("audit-names.png")).await;
    browser.click(&format!("a[href='{staging}/domains/store.example']")).await;
    browser.until_text("_domainkey.store.example").await;

    // The entry of the accepted invitation names Anna, although she had no id before she accepted it:
    // a person who is not found would be shown as removed.
    assert!(!page.contains("removed since"), "{page}");
    assert_eq!(page.matches("<small>person/accept_invitation</small>").count(), 1, "{page}");

    // Customers learn that the operator did something, but not from where.
    let (_, bert) = join(&service, "bert", "admin").await;
    let suspended = json!({ "id": staging_id, "reason": "abuse" });
    let operator_key = service.ready("operator_api_key");
    call(&service, "x-operator-api-key", &operator_key, "servers/suspend", &suspended).await;
    let page = service.get("/account/audit?operation=servers/suspend", &bert).await.text();
    assert!(page.contains("class=\"break\">operator</td>"), "{page}");
    assert!(!page.contains("from 127.0.0.1"), "{page}");
    let page = service.get("/account/audit?operation=servers/suspend", &operator).await.text();
    assert!(page.contains("from 127.0.0.1"), "{page}");

    submit(&operator, &format!("/account/people/{anna_id}/remove"), "").await;
    let page = service.get("/account/audit", &operator).await.text();
    assert!(page.contains("anna@example.com, removed since"), "{page}");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_exported_as_json_lines() {
    let service = DevService::start();
    let operator = service.sign_in().await;
    let (_, anna) = join(&service, "anna", "admin").await;
    assert_eq!(service.submit("/servers", &anna, "name=staging&mode=live").await.status, 303);
    let key = service.ready("account_api_key");
    let server =
        call(&service, "x-account-api-key", &key, "servers/create", &json!({ "name": "by-key" })).await;
    let has = async |query: &str| {
        let page = service.get(&format!("/account/audit?{query}"), &operator).await.text();
        let lines = service.get(&format!("/account/audit/export?{query}"), &operator).await;
        assert_eq!(lines.headers["content-disposition"], "attachment; filename=\"audit.jsonl\"");
        let entries: Vec<serde_json::Value> =
            lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_in = |name: &str| entries.iter().any(|entry| entry["after"]["name"] == name);
        let found = ["staging", "by-key"].map(|name| page.contains(&format!(">server {name}<")));
        assert_eq!(["staging", "by-key"].map(is_in), found, "{query}: {entries:#?}");
        let mut order: Vec<i64> = entries.iter().map(|entry| entry["seq"].as_i64().unwrap()).collect();
        assert!(order.is_sorted(), "{order:?}");
        order.dedup();
        assert_eq!(order.len(), entries.len());
        found
    };
    assert_eq!(has("").await, [true, true]);
    assert_eq!(has("actor=user").await, [true, false]);
    assert_eq!(has("actor=account_key").await, [false, true]);
    assert_eq!(has("operation=servers%2Fcreate").await, [true, true]);
    assert_eq!(has("operation=servers%2Fdelete").await, [false, false]);
    assert_eq!(has(&format!("subject=server&subject_id={}", server["id"])).await, [false, true]);
    assert_eq!(has("subject=domain").await, [false, false]);
    assert_eq!(has("since=2026-01-01&until=2090-01-01").await, [true, true]);
    assert_eq!(has("until=2026-01-01").await, [false, false]);
    for wrong in ["/account/audit/export?since=x", "/account/audit?subject_id=x"] {
        assert_eq!(service.get(wrong, &operator).await.status, 422, "{wrong}");
    }
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/audit?actor=user&since=2026-01-01")).await;
    browser.until_text("server staging").await;
    browser.screenshot(&pictures().join("audit-filtered.png")).await;
    // The installation's own log has the entries that belong to no account.
    let pool = json!({ "name": "bulk", "shared": true });
    call(&service, "x-operator-api-key", &service.ready("operator_api_key"), "ip_pools/create", &pool).await;
    browser.open(&service.url_of("/operator/audit?subject=ip_pool")).await;
    browser.until_text("ip_pools/create").await;
}

#[tokio::test]
async fn the_audit_log_shows_what_one_person_or_key_did() {
    let service = DevService::start();
    let (_, anna) = join(&service, "anna", "admin").await;
    let (_, bert) = join(&service, "bert", "admin").await;
    assert_eq!(service.submit("/servers", &anna, "name=annas&mode=live").await.status, 303);
    assert_eq!(service.submit("/servers", &bert, "name=berts&mode=live").await.status, 303);
    let key = service.ready("account_api_key");
    call(&service, "x-account-api-key", &key, "servers/create", &json!({ "name": "robots" })).await;
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/audit?operation=servers/create")).await;
    browser.until_text("annas").await;
    for (who, wanted, others) in
        [("anna@example.com", "annas", ["berts", "robots"]), ("account key", "robots", ["annas", "berts"])]
    {
        browser.open(&service.url_of("/account/audit?operation=servers/create")).await;
        let link = format!(
            "[...document.querySelectorAll('td[data-label=Who] a')].find(a => a.textContent.includes('{who}')).click()"
        );
        browser.run(&link).await;
        browser.until(".chip").await;
        let page = browser.page_text().await;
        assert!(page.contains(wanted) && others.iter().all(|other| !page.contains(other)), "{who}: {page}");
        let url = browser.url().await;
        assert!(url.contains("actor=") && url.contains("actor_id="), "{url}");
    }
    browser.screenshot(&pictures().join("audit-one.png")).await;
    // The export has the same entries, and the cross removes the filter.
    let cookie = service.sign_in().await;
    let query = browser.url().await.split_once('?').unwrap().1.to_owned();
    let lines = service.get(&format!("/account/audit/export?{query}"), &cookie).await.text();
    assert!(lines.contains("robots") && !lines.contains("annas"), "{lines}");
    browser.click(".chip a:last-child").await;
    browser.until_text("annas").await;
    // `actor_id` without `actor` is ignored.
    let page = service.get("/account/audit?operation=servers/create&actor_id=1", &cookie).await.text();
    assert!(page.contains("annas") && page.contains("berts"), "{page}");
}
