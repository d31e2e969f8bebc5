//! Every page, as people may see it: light and dark, on a phone, without JavaScript; with nothing on the console and no
//! serious fault that axe-core finds.

use std::path::PathBuf;
use std::process::Command;

use postroad_testkit::{Browser, PYTHON_VARIABLE};
use serde_json::{Value, json};

use crate::site::{Site, pictures, server_of};

/// Names of pictures, and paths below the server.
const PAGES: &[(&str, &str)] = &[
    ("overview", ""),
    ("messages", "/messages"),
    ("messages-search", "/messages?q=tag%3Areceipt"),
    ("messages-wrong-search", "/messages?q=colour%3Ared"),
    ("messages-held", "/messages?tab=held"),
    ("messages-scheduled", "/messages?tab=scheduled"),
    ("analytics", "/analytics"),
    ("analytics-day", "/analytics?range=day&by=bounce_class"),
    ("templates", "/templates"),
    ("template-new", "/templates/new"),
    ("domains", "/domains"),
    ("domain", "/domains/example.test"),
    ("webhooks", "/webhooks"),
    ("suppressions", "/suppressions"),
    ("keys", "/keys"),
    ("settings", "/settings"),
];

#[tokio::test]
async fn every_page_is_legible_in_every_way() {
    let site = Site::start();
    let (message, bounced) = fill(&site).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let mut pages: Vec<(String, String)> =
        PAGES.iter().map(|(name, path)| ((*name).to_owned(), format!("/servers/{server}{path}"))).collect();
    for view in ["timeline", "preview", "text", "source", "headers", "attachments"] {
        pages.push((format!("message-{view}"), format!("/servers/{server}/messages/{message}?view={view}")));
    }
    pages.push(("message-bounced".to_owned(), format!("/servers/{server}/messages/{bounced}")));
    for name in ["people", "keys", "audit", "you"] {
        pages.push((format!("account-{name}"), format!("/account/{name}")));
    }
    pages.push(("servers".to_owned(), "/servers".to_owned()));
    pages.push(("not-found".to_owned(), "/servers/1234567".to_owned()));
    let axe = axe();
    for (name, path) in &pages {
        for (way, is_dark, width) in [("light", false, 1280), ("dark", true, 1280), ("phone", false, 390)] {
            browser.set_dark(is_dark).await;
            browser.set_size(width, 844).await;
            browser.open(&site.path(path)).await;
            browser.until("h1").await;
            browser.screenshot(&pictures().join(format!("{name}-{way}.png"))).await;
            let faults = faults(&browser, &axe).await;
            assert!(faults.is_empty(), "{name} {way}: {faults:#?}");
            let is_wide =
                "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
            assert_eq!(browser.run(is_wide).await, false, "{name} {way} has to be moved sideways");
        }
        let log: Vec<String> =
            browser.console().await.into_iter().filter(|line| !line.contains("404 (Not Found)")).collect();
        assert_eq!(log, [""; 0], "{name}");
    }
}

#[tokio::test]
async fn pages_are_read_and_forms_sent_without_javascript() {
    let site = Site::start();
    fill(&site).await;
    let browser = site.browser().await;
    browser.set_scripts(false).await;
    let server = server_of(&browser).await;
    for (name, path) in PAGES {
        browser.open(&site.path(&format!("/servers/{server}{path}"))).await;
        browser.until("h1").await;
        assert!(!browser.text("h1").await.is_empty(), "{name}");
    }
    browser.open(&site.path(&format!("/servers/{server}/messages?tab=held"))).await;
    browser.click("input[name=id]").await;
    browser.click("button[value=cancel_hold]").await;
    browser.until(".notice").await;
    browser.open(&site.path(&format!("/servers/{server}/suppressions"))).await;
    browser.fill("form.stack input[name=address]", "bob@example.net").await;
    browser.click("form.stack button").await;
    browser.until_text("bob@example.net").await;
}

#[tokio::test]
async fn pages_follow_what_happens_and_keys_open_them() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.press("gm").await;
    browser.until_text("No messages yet").await;
    site.send(json!({ "subject": "It came by itself" })).await;
    browser.until_text("It came by itself").await;
    browser.press("/").await;
    assert_eq!(browser.run("return document.activeElement.name").await, "q");
}

/// Messages in several states; the ids of a delivered one and one that bounced.
async fn fill(site: &Site) -> (i64, i64) {
    let html = "<html><body><h1>Thank you</h1><p>Your order <b>1234</b> is on its way.</p></body></html>";
    let sent = site
        .send(json!({
            "subject": "Your receipt for order 1234", "tag": "receipt", "html_body": html,
            "metadata": { "order": "1234" }, "attachments": [{ "name": "receipt.txt", "data": "aGVsbG8=" }],
        }))
        .await;
    let bounced =
        site.send(json!({ "to": ["missing@sim.postroad.test"], "subject": "Password reset" })).await;
    site.send(json!({ "to": ["defer@sim.postroad.test"], "subject": "Sign-in code", "tag": "code" })).await;
    site.send(json!({ "subject": "Next week", "send_at": "2026-12-10T09:00:00Z" })).await;
    let key = site.ready("api_key");
    let add = json!({ "address": "gone@example.net", "reason": "complaint", "details": "asked to stop" });
    site.client.post_json("/api/v1/suppressions/add", Some(&key), &add).await.unwrap();
    let held =
        site.send(json!({ "to": ["gone@example.net"], "subject": "To somebody who asked to stop" })).await;
    let hook = json!({ "url": "http://127.0.0.1:9/events", "events": "all" });
    site.client.post_json("/api/v1/webhooks/create", Some(&key), &hook).await.unwrap();
    site.until(sent, "Sent").await;
    site.until(bounced, "HardFail").await;
    site.until(held, "Held").await;
    (sent, bounced)
}

/// The script of axe-core, which the test's Python libraries bring along.
fn axe() -> String {
    let python = std::env::var(PYTHON_VARIABLE).expect("run with `cargo xtask test`");
    let find = "import axe_core_python, pathlib; print(pathlib.Path(axe_core_python.__file__).parent / 'axe.min.js')";
    let output = Command::new(python).args(["-c", find]).output().unwrap();
    let file = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("no axe-core in {}: {error}", file.display()))
}

/// Serious faults on the page: rule, and the first element.
async fn faults(browser: &Browser, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe}; const done = arguments[arguments.length - 1];
         axe.run(document, {{ iframes: false }}).then(found => done(found.violations), error => done([{{ id: String(error), \
         impact: 'critical', nodes: [] }}]));"
    );
    let found = browser.run_async(&script).await;
    let serious = |fault: &&Value| matches!(fault["impact"].as_str(), Some("serious" | "critical"));
    let found = found.as_array().cloned().unwrap_or_default();
    found
        .iter()
        .filter(serious)
        .map(|fault| format!("{}: {}", fault["id"], fault["nodes"][0]["html"]))
        .collect()
}

#[tokio::test]
async fn a_template_is_written_mended_published_and_sent() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.path(&format!("/servers/{server}/templates/new"))).await;
    browser.fill("input[name=name]", "Welcome").await;
    browser.fill("input[name=alias]", "welcome").await;
    browser.fill("textarea[name=html_body]", "<p>Hello {{ name }}</p>\n{% if name %}").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Nothing was saved").await;
    assert!(browser.page_text().await.contains("HTML, line"), "{}", browser.page_text().await);
    assert_eq!(
        browser.attribute("input[name=alias]", "value").await.as_deref(),
        Some("welcome"),
        "the form keeps its texts"
    );
    browser.fill("textarea[name=html_body]", "<p>Hello {{ name }}</p>").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Version 1 published").await;
    browser.screenshot(&pictures().join("template.png")).await;
    browser.fill("textarea[name=html_body]", "<p>Welcome {{ name }}</p>").await;
    browser.click("form.stack .quiet").await;
    browser.until("a[href*='compare']").await;
    browser.click("a[href*='compare']").await;
    browser.until(".diff .added").await;
    browser.screenshot(&pictures().join("template-compare.png")).await;
    browser.back().await;
    browser.fill("input[name=from]", "shop@example.test").await;
    browser.fill("input[name=to]", "ann@example.net").await;
    browser.click("form[action$='/send_test'] button").await;
    browser.until_text("Hello Ann").await;
    browser.until_text("Delivered").await;
    // The form with a mistake was answered so.
    let log: Vec<String> =
        browser.console().await.into_iter().filter(|line| !line.contains("status of 422")).collect();
    assert_eq!(log, [""; 0]);
}
