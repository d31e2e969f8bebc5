//! The operator's pages: delivery and gates of the installation, providers, accounts, nodes, and maintenance.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::{Database, TestCertificate};
use serde_json::json;
use tempfile::TempDir;

use crate::roles::call;
use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn the_operators_page_updates_itself_and_leads_to_the_queue_of_a_server() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of("/operator")).await;
    browser.until_text("Nothing is stopped or slowed").await;
    let cookie = service.sign_in().await;
    let gate = service.submit("/operator/suspend", &cookie, "scope=everything&reason=moving").await;
    assert_eq!(gate.status, 303, "{}", gate.text());
    service.send(json!({ "to": ["ann@waiting.example"] })).await;
    // The page updates itself, without a reload.
    let link = format!("#delivery a[href='/servers/{server}/queue']");
    browser.until(&link).await;
    browser.until_text("waiting.example").await;
    assert!(browser.page_text().await.contains("All mail of this installation"));
    browser.screenshot(&pictures().join("operator-waiting.png")).await;
    browser.click(&link).await;
    browser.until_text("What waits, and why").await;
}

#[tokio::test]
async fn the_limits_of_providers_are_shown_with_those_of_the_operators_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("providers.toml");
    std::fs::write(
        &file,
        "[google]\nconnections_max = 7\n[own]\nmx = [\"own.example\"]\nconnections_per_minute = 9\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let service = DevService::start_with(None, &[("POSTROAD_DELIVERY_PROVIDERS_FILE", file)]);
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/operator")).await;
    browser.click("details[data-key=limits] summary").await;
    let text = browser.text("#limits").await;
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).map(ToOwned::to_owned);
    assert!(text.contains("google.com, googlemail.com 7 "), "{text}");
    assert!(text.contains("own.example 10 9 "), "{text}");
    assert!(row("all others").is_some(), "{text}");
    browser.screenshot(&pictures().join("operator-limits.png")).await;
}

#[tokio::test]
async fn operator_slows_mail_to_a_domain_reads_the_check_up_and_manages_an_account() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    service.send(json!({ "subject": "Later", "send_at": tomorrow })).await;
    browser.open(&service.url_of("/operator")).await;
    browser.until_text("Nothing is stopped or slowed").await;
    let page = browser.page_text().await;
    assert!(page.contains("Waiting mail by server") && page.contains("First one due"), "{page}");
    browser.click("details summary:has(+ form)").await;
    browser.fill("input[name=scope]", "planet:mars").await;
    browser.fill("form[action='/operator/suspend'] input[name=reason]", "they asked for a pause").await;
    browser.click("form[action='/operator/suspend'] button").await;
    browser.until_text("should be everything, pool:NAME").await;
    browser.open(&service.url_of("/operator")).await;
    browser.click("details summary:has(+ form)").await;
    browser.fill("input[name=scope]", "domain:slow.example").await;
    browser.fill("form[action='/operator/suspend'] input[name=reason]", "they asked for a pause").await;
    browser.fill("form[action='/operator/suspend'] input[name=per_minute]", "30").await;
    browser.click("form[action='/operator/suspend'] button").await;
    browser.until_text("Mail to slow.example").await;
    assert!(browser.page_text().await.contains("30 a minute"));
    browser.screenshot(&pictures().join("operator-gate.png")).await;
    browser.click("form[action='/operator/resume'] button").await;
    browser.until_text("Nothing is stopped or slowed").await;
    browser.open(&service.url_of("/operator/doctor")).await;
    browser.until_text("It takes writes").await;
    let zone = service.get("/operator/doctor/zone", &service.sign_in().await).await;
    assert!(zone.headers["content-disposition"].to_str().unwrap().contains(".zone"));
    assert!(zone.text().contains("._domainkey."), "{}", zone.text());
    browser.open(&service.url_of("/operator/accounts")).await;
    browser.fill("form.stack input[name=name]", "Second customer").await;
    browser.click("form.stack button").await;
    browser.until_text("Nobody has joined yet").await;
    // The account's ceilings, its deletion and its restoration.
    browser.open(&service.url_of("/operator/accounts")).await;
    browser.click("tbody tr:last-child td a").await;
    browser.until_text("Name and ceilings").await;
    browser.fill("input[name=daily_limit]", "many").await;
    browser.click("#ceilings button").await;
    browser.until_text("should be a number").await;
    browser.fill("#ceilings input[name=name]", "Second Ltd").await;
    browser.fill("input[name=daily_limit]", "5000").await;
    browser.fill("input[name=send_rate]", "10/s").await;
    browser.click("#ceilings button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.attribute("input[name=daily_limit]", "value").await.as_deref(), Some("5000"));
    assert_eq!(browser.text("h1").await, "Second Ltd");
    browser.fill("form[action$='/delete'] input[name=name]", "Second Ltd").await;
    browser.click("form[action$='/delete'] button").await;
    browser.until("#deleted").await;
    browser.click("#deleted button").await;
    browser.until_text("Restored").await;
}

#[tokio::test]
async fn operator_begins_and_ends_maintenance() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    assert!(service.get("/operator", &cookie).await.text().contains("Begin maintenance"));
    assert_eq!(service.submit("/operator/maintenance", &cookie, "on=1").await.status, 303);
    let page = service.get("/operator", &cookie).await.text();
    assert!(page.contains("Maintenance mode is on") && page.contains("End maintenance"), "{page}");
    let account = service.ready("account_api_key");
    let headers = [("x-account-api-key", account.as_str())];
    assert_eq!(service.post("/api/v1/account/get", &headers, "{}").await.status, 503);
    assert_eq!(service.submit("/operator/maintenance", &cookie, "").await.status, 303);
    assert!(service.get("/operator", &cookie).await.text().contains("Begin maintenance"));
    call(&service, "x-account-api-key", &account, "account/get", &json!({})).await;
}

#[tokio::test]
async fn nodes_are_listed_and_certificates_that_end_soon_are_problems_on_sqlite() {
    nodes_are_listed_and_certificates_that_end_soon_are_problems(None).await;
}

#[tokio::test]
async fn nodes_are_listed_and_certificates_that_end_soon_are_problems_on_postgres() {
    nodes_are_listed_and_certificates_that_end_soon_are_problems(Some(Database::create())).await;
}

async fn nodes_are_listed_and_certificates_that_end_soon_are_problems(database: Option<Database>) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let in_days = |days: u64| SystemClock.now().plus(Duration::from_hours(24 * days));
    let write = |pair: &TestCertificate, with_key: bool| {
        std::fs::write(path("cert.pem"), &pair.certificate_pem).unwrap();
        if with_key {
            std::fs::write(path("key.pem"), &pair.key_pem).unwrap();
        }
    };
    write(&TestCertificate::valid_until(&["localhost"], in_days(5)), true);
    let files = [("POSTROAD_TLS_CERTIFICATE", path("cert.pem")), ("POSTROAD_TLS_KEY", path("key.pem"))];
    let envs: Vec<(&str, &str)> = files.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let service = DevService::start_with(database, &envs);
    let id = service.send(json!({})).await;
    service.until_status(id, "Sent").await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    // The overview says what to do, and leads to the nodes.
    browser.open(&service.url_of(&format!("/servers/{server}"))).await;
    browser.until_text("The TLS certificate of").await;
    browser.until("#troubles ~ ul time").await;
    assert!(browser.text(".troubles").await.contains("renew the files"), "{}", browser.page_text().await);
    browser.screenshot(&pictures().join("overview-certificate.png")).await;
    browser.click(".troubles a[href='/operator/nodes']").await;
    browser.until_text("which shows this page").await;
    let text = browser.text("table.rows").await;
    for part in
        ["Runs", "node 0", "HTTP", "Bounces", "127.0.0.1:", env!("CARGO_PKG_VERSION"), "Problem", "expires"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    browser.screenshot(&pictures().join("operator-nodes-problem.png")).await;
    browser.open(&service.url_of("/operator/doctor")).await;
    browser.until_text("The TLS certificate of").await;
    browser.open(&service.url_of("/operator")).await;
    browser.until(".problem time").await;
    // Loading the new certificate fails while the file of its key is still the old one.
    let good = TestCertificate::valid_until(&["localhost"], in_days(80));
    write(&good, false);
    service.hang_up();
    browser.open(&service.url_of("/operator/nodes")).await;
    browser.reload_until_text("cannot be loaded again").await;
    assert!(browser.page_text().await.contains("does not belong to the certificate"));
    write(&good, true);
    service.hang_up();
    browser.reload_until_text("Good").await;
    let home = service.get(&format!("/servers/{server}"), &service.sign_in().await).await.text();
    assert!(!home.contains("TLS certificate") && home.contains("No problems"), "{home}");
    assert_eq!(browser.console().await, [""; 0]);
}
