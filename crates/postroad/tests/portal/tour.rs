//! Every page, as people may see it: light and dark, on a phone, without JavaScript; with nothing on the console and no
//! serious fault that axe-core finds.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::Method;
use postroad_testkit::{Browser, PYTHON_VARIABLE};
use serde_json::{Value, json};

use crate::site::{Site, pictures, server_of};

/// Names of pictures, and paths below the server.
const PAGES: &[(&str, &str)] = &[
    ("overview", ""),
    ("first-message", "/first_message"),
    ("messages", "/messages"),
    ("messages-search", "/messages?q=tag%3Areceipt"),
    ("messages-wrong-search", "/messages?q=colour%3Ared"),
    ("messages-held", "/messages?tab=held"),
    ("messages-scheduled", "/messages?tab=scheduled"),
    ("queue", "/queue"),
    ("events", "/events"),
    ("events-kinds", "/events?kind=message.accepted&kind=message.delivered"),
    ("analytics", "/analytics"),
    ("analytics-day", "/analytics?range=day&by=bounce_class"),
    ("analytics-more", "/analytics?by=tag&tag=receipt&zone=Europe%2FBerlin"),
    ("analytics-wrong", "/analytics?zone=Atlantis"),
    ("reports", "/reports"),
    ("templates", "/templates"),
    ("template-new", "/templates/new"),
    ("domains", "/domains"),
    ("domain", "/domains/example.test"),
    ("webhooks", "/webhooks"),
    ("webhook-inspector", "/webhooks/inspector"),
    ("suppressions", "/suppressions"),
    ("suppressions-days", "/suppressions?reason=complaint&since=2026-01-01"),
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
    for view in ["timeline", "events", "preview", "links", "text", "source", "headers", "attachments"] {
        pages.push((format!("message-{view}"), format!("/servers/{server}/messages/{message}?view={view}")));
    }
    pages.push(("message-bounced".to_owned(), format!("/servers/{server}/messages/{bounced}")));
    pages.push(("account".to_owned(), "/account".to_owned()));
    for name in ["people", "domains", "domains/common.example", "pools", "keys", "audit", "you"] {
        pages.push((format!("account-{}", name.replace('/', "-")), format!("/account/{name}")));
    }
    pages.push(("account-address".to_owned(), "/account/pools/address?address=192.0.2.9".to_owned()));
    pages.push(("account-person".to_owned(), "/account/people/1".to_owned()));
    pages.push(("operator-account".to_owned(), "/operator/accounts/1".to_owned()));
    for name in ["people", "keys", "audit"] {
        pages.push((format!("operator-account-{name}"), format!("/operator/accounts/1/{name}")));
    }
    pages.push(("account-audit-filtered".to_owned(), "/account/audit?subject=domain".to_owned()));
    for name in ["", "/accounts", "/keys", "/nodes", "/audit", "/doctor"] {
        pages.push((format!("operator{}", name.replace('/', "-")), format!("/operator{name}")));
    }
    pages.push(("inbox".to_owned(), "/inbox".to_owned()));
    pages.push(("inbox-one".to_owned(), "/inbox/1".to_owned()));
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
    let others =
        ["/account", "/account/people", "/account/pools", "/account/keys", "/account/audit", "/account/you"];
    let others = others.into_iter().chain([
        "/operator",
        "/operator/accounts",
        "/operator/keys",
        "/operator/doctor",
        "/operator/audit",
        "/operator/accounts/1",
        "/operator/accounts/1/people",
        "/account/people/1",
        "/account/domains",
        "/account/domains/common.example",
        "/inbox",
        "/inbox/1",
    ]);
    let of_server = PAGES.iter().map(|(_, path)| format!("/servers/{server}{path}"));
    for name in of_server.chain(others.map(str::to_owned)) {
        browser.open(&site.path(&name)).await;
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

#[tokio::test]
async fn a_page_that_nobody_sees_has_no_stream() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.path(&format!("/servers/{server}/messages"))).await;
    browser.until_text("No messages yet").await;
    let hide = "window.ended = 0; const close = EventSource.prototype.close; \
                EventSource.prototype.close = function () { window.ended += 1; close.call(this); }; \
                Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true }); \
                document.dispatchEvent(new Event('visibilitychange')); return window.ended";
    assert_eq!(browser.run(hide).await, 1);
    site.send(json!({ "subject": "It came meanwhile" })).await;
    let show = "delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange')); \
                return document.visibilityState";
    assert_eq!(browser.run(show).await, "visible");
    browser.until_text("It came meanwhile").await;
}

#[tokio::test]
async fn one_person_has_at_most_twenty_streams() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let address = site.url.strip_prefix("http://").unwrap();
    let mut streams = Vec::new();
    for number in 1..=21 {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("GET {server}/live HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        let expected = if number <= 20 { "200" } else { "429" };
        assert!(line.contains(expected), "{number}: {line}");
        streams.push(stream);
    }
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
    let next_week = SystemClock.now().plus(Duration::from_hours(7 * 24)).to_rfc3339();
    site.send(json!({ "subject": "Next week", "send_at": next_week })).await;
    let key = site.ready("api_key");
    let add = json!({ "address": "gone@example.net", "reason": "complaint", "details": "asked to stop" });
    site.client.post_json("/api/v1/suppressions/add", Some(&key), &add).await.unwrap();
    let held =
        site.send(json!({ "to": ["gone@example.net"], "subject": "To somebody who asked to stop" })).await;
    let hook = json!({ "url": "http://127.0.0.1:9/events", "events": "all" });
    let operator = site.ready("operator_api_key");
    let call = async |path: &str, body: Value| {
        let headers = [("x-operator-api-key", operator.as_str()), ("content-type", "application/json")];
        let path = format!("/api/v1/ip_pools/{path}");
        let reply =
            site.client.request(Method::POST, &path, &headers, body.to_string().into()).await.unwrap();
        assert_eq!(reply.json()["status"], "success", "{}", reply.json());
        reply.json()["data"].clone()
    };
    let pool = call("create", json!({ "name": "dedicated" })).await["id"].clone();
    let address = json!({ "pool": pool, "address": "192.0.2.9", "helo": "mail9.example.com", "weight": 1, "warm_up": true });
    call("add_address", address).await;
    site.client.post_json("/api/v1/webhooks/create", Some(&key), &hook).await.unwrap();
    let account_key = site.ready("account_api_key");
    let domain = json!({ "name": "common.example" });
    crate::roles::call(site, "x-account-api-key", &account_key, "domains/create", &domain).await;
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
    // The number of the line is marked, and leads there.
    assert_eq!(browser.text(".gutter .bad").await, "2");
    browser.screenshot(&pictures().join("template-mistake.png")).await;
    browser.click("a[data-line]").await;
    let chosen = "const area = document.activeElement; return area.value.slice(area.selectionStart, area.selectionEnd)";
    assert_eq!(browser.run(chosen).await, "{% if name %}");
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

#[tokio::test]
async fn a_template_has_a_layout_and_languages() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let new = site.path(&format!("/servers/{server}/templates/new"));
    browser.open(&new).await;
    browser.click("input[value=layout]").await;
    browser.fill("input[name=name]", "Frame").await;
    browser.fill("input[name=alias]", "frame").await;
    browser.fill("input[name=subject]", "").await;
    browser.fill("textarea[name=html_body]", "<header>Shop Ltd</header>{{ content }}").await;
    browser.fill("textarea[name=sample_model]", "").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Version 1 published").await;
    browser.open(&new).await;
    browser.fill("input[name=name]", "Welcome").await;
    browser.fill("input[name=alias]", "welcome").await;
    browser.run("document.querySelectorAll('form.stack details').forEach((one) => { one.open = true; }); return 1").await;
    browser.run("document.querySelector('[name=layout]').value = 'frame'; return 1").await;
    browser.fill("input[name=locale_tag_0]", "de").await;
    browser.fill("input[name=locale_subject_0]", "Hallo {{ name }}").await;
    browser.fill("textarea[name=locale_html_0]", "<p>Hallo</p>\n<p>{{ name</p>").await;
    browser.click("button[name=publish]").await;
    browser.until_text("HTML (de), line 2").await;
    assert_eq!(browser.text("#locale_html_0").await.lines().count(), 2, "the form keeps its texts");
    browser.fill("textarea[name=locale_html_0]", "<p>Hallo {{ name }}</p>").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Version 1 published").await;
    browser.click(".toggles a[href='?locale=de']").await;
    browser.until("iframe[src$='locale=de']").await;
    browser.screenshot(&pictures().join("template-languages.png")).await;
    let path = browser.attribute("iframe", "src").await.unwrap();
    let preview = site.get(&path, &site.cookie().await).await.text();
    assert!(preview.contains("Shop Ltd") && preview.contains("Hallo Ann"), "{preview}");
    assert_eq!(browser.attribute("option[value=frame]", "selected").await.as_deref(), Some("true"));
}
