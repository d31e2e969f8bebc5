//! Every page in light, in dark and on a phone: the console stays empty, and axe-core finds no serious fault. Also
//! pages that update themselves, and the template editor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;

use postroad_testkit::{Browser, eventually};
use serde_json::{Value, json};

use crate::pages::{self, OPEN_PAGES, PAGES};
use crate::reports::mail_reports;
use crate::service::{DevService, FreshService, pictures, server_of};

/// Width of a phone's screen.
const PHONE_WIDTH: u32 = 390;

/// The pages are divided into this many parts, which are tested at the same time.
const PARTS: usize = 3;

async fn look_at_pages(part: usize) {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let mut tour = Tour::start(service.signed_in_browser().await);
    for (name, route, query, expected) in PAGES.iter().skip(part).step_by(PARTS) {
        tour.open(name, &service.url_of(&pages::path_of(&placeholders, route, query)), expected).await;
    }
    tour.end();
}

#[tokio::test]
async fn every_page_is_legible_in_light_dark_and_on_a_phone_part_1() {
    look_at_pages(0).await;
}

#[tokio::test]
async fn every_page_is_legible_in_light_dark_and_on_a_phone_part_2() {
    look_at_pages(1).await;
}

#[tokio::test]
async fn every_page_is_legible_in_light_dark_and_on_a_phone_part_3() {
    look_at_pages(2).await;
}

/// Pages that show something once after a form, such as a new key, and the page of an unknown path.
#[tokio::test]
async fn answers_to_forms_are_legible_in_light_dark_and_on_a_phone() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let mut tour = Tour::start(service.signed_in_browser().await);
    tour.open("not-found", &service.url_of("/servers/1234567"), "There is nothing here").await;
    let server = &placeholders["server"];
    let forms = [
        (
            "key-shown-once",
            format!("/servers/{server}/keys"),
            "form.card.stack > button",
            "they are not shown again",
        ),
        (
            "dns-link",
            format!("/servers/{server}/domains/example.test"),
            "form[action$='/share'] button",
            "Send this link",
        ),
        (
            "authenticator-app",
            "/account/you".to_owned(),
            "form[action='/account/you/app'] button",
            "Put it in use",
        ),
        (
            "person-link",
            format!("/account/people/{}", placeholders["colleague"]),
            "form[action$='/reset_link'] button",
            "Pass this link on",
        ),
    ];
    for (name, path, button, expected) in forms {
        tour.browser.open(&service.url_of(&path)).await;
        let name_it = "document.querySelectorAll('form.card input[name=name]').forEach((one) => { one.value ||= 'new'; }); return 1";
        tour.browser.run(name_it).await;
        tour.browser.click(button).await;
        tour.browser.until_text(expected).await;
        tour.look(name).await;
    }
    tour.end();
}

/// Pages that look different after a mistake, after a change, or when something has arrived.
#[tokio::test]
async fn rare_states_of_pages_are_legible_in_light_dark_and_on_a_phone() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let cookie = service.sign_in().await;
    let server = format!("/servers/{}", placeholders["server"]);
    mail_reports(&service).await;
    let mut tour = Tour::start(service.signed_in_browser().await);
    // The page that asks for confirmation before a job.
    let browser = &tour.browser;
    browser.open(&service.url_of(&format!("{server}/messages?tab=held"))).await;
    browser.click("input[name=all]").await;
    browser.click("button[value=release]").await;
    browser.until_text("all that match?").await;
    tour.look("messages-ask").await;
    // The page of one request to the inspector.
    service.submit(&format!("{server}/webhooks/inspector"), &cookie, "").await;
    let page = service.get(&format!("{server}/webhooks/inspector"), &cookie).await.text();
    let token = page.split("/inspect/").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let body = json!({ "type": "message.delivered", "text": "hello" }).to_string();
    assert_eq!(service.post(&format!("/inspect/{token}"), &[], &body).await.status, 200);
    tour.open("inspected", &service.url_of(&format!("{server}/webhooks/inspector?request=1")), "Request 1")
        .await;
    // Reports come in a moment after they were accepted.
    let reports = format!("{server}/reports?domain=example.test&days=7");
    eventually(async || {
        let page = service.get(&reports, &cookie).await.text();
        if page.contains("certificate-expired") && page.contains("192.0.2.1") { Ok(()) } else { Err(page) }
    })
    .await;
    tour.open("reports-with-data", &service.url_of(&reports), "Failed both").await;
    // A gate, and the problem that it causes on the overview.
    let gate =
        service.submit(&format!("{server}/queue/suspend"), &cookie, "reason=the+shop+is+being+moved").await;
    assert_eq!(gate.status, 303, "{}", gate.text());
    tour.open("queue-with-gate", &service.url_of(&format!("{server}/queue")), "the shop is being moved")
        .await;
    tour.open("home-with-problems", &service.url_of(&server), "Sending is stopped or slowed").await;
    // A webhook with a new secret, and with the answer to a sample.
    let webhook = service.url_of(&format!("{server}/webhooks/{}", placeholders["webhook"]));
    for (name, button, expected) in [
        ("webhook-secret", "form[action$='/rotate_secret'] button", "Copy the secret now"),
        ("webhook-sample", "form[action$='/test'] button", "The sample"),
    ] {
        let browser = &tour.browser;
        browser.open(&webhook).await;
        browser.run("document.querySelectorAll('[data-confirm]').forEach((one) => { delete one.dataset.confirm; }); return 1").await;
        browser.click(button).await;
        browser.until_text(expected).await;
        tour.look(name).await;
    }
    // A template with mistakes.
    let browser = &tour.browser;
    browser.open(&service.url_of(&format!("{server}/templates/{}", placeholders["template"]))).await;
    browser.fill("textarea[name=html_body]", "<p>Hello {{ name }}</p>\n{% if name %}").await;
    browser.click("button[name=publish]").await;
    browser.until_text("Nothing was saved").await;
    tour.look("template-mistakes").await;
    // The dialog with the keyboard shortcuts, a refused form, and a problem without a form.
    let browser = &tour.browser;
    browser.open(&service.url_of(&format!("{server}/queue"))).await;
    browser.press("?").await;
    browser.until("dialog[open]").await;
    tour.look("keyboard-shortcuts").await;
    let browser = &tour.browser;
    browser.open(&service.url_of(&format!("{server}/queue"))).await;
    browser.fill("form[action$='/queue/suspend'] input[name=reason]", "typed").await;
    browser.fill("form[action$='/queue/suspend'] input[name=hours]", "soon").await;
    browser.click("form[action$='/queue/suspend'] button").await;
    browser.until_text("should be a number").await;
    tour.look("refused-form").await;
    tour.open("wrong-day", &service.url_of(&format!("{server}/events?since=yesterday")), "should be a day")
        .await;
    tour.end();
}

/// Jobs that run and that failed, a suspended server, and maintenance.
#[tokio::test]
async fn jobs_suspensions_and_maintenance_are_legible_in_light_dark_and_on_a_phone() {
    let service = DevService::start_on_postgres();
    let placeholders = pages::create_objects(&service).await;
    let cookie = service.sign_in().await;
    let server = format!("/servers/{}", placeholders["server"]);
    let job = format!("{server}/jobs/{}", placeholders["job"]);
    eventually(async || {
        let page = service.get(&job, &cookie).await.text();
        if page.contains("<h1>Done</h1>") { Ok(()) } else { Err(page) }
    })
    .await;
    let mut tour = Tour::start(service.signed_in_browser().await);
    for (state, expected) in [("running", "Working …"), ("failed", "The job failed")] {
        service.database().set_job_state(&placeholders["job"], state);
        tour.open(&format!("job-{state}"), &service.url_of(&job), expected).await;
        tour.open(&format!("jobs-{state}"), &service.url_of(&format!("{server}/jobs")), "not done").await;
    }
    let reason = "reason=too+many+complaints";
    let suspended = service.submit(&format!("{server}/suspend"), &cookie, reason).await;
    assert_eq!(suspended.status, 303, "{}", suspended.text());
    for (name, path) in [
        ("overview-suspended", server.clone()),
        ("queue-suspended", format!("{server}/queue")),
        ("settings-suspended", format!("{server}/settings")),
        ("servers-suspended", "/servers".to_owned()),
    ] {
        tour.open(name, &service.url_of(&path), "too many complaints").await;
    }
    assert_eq!(service.submit("/operator/maintenance", &cookie, "on=1").await.status, 303);
    tour.open("operator-maintenance", &service.url_of("/operator"), "Maintenance mode is on").await;
    tour.open("overview-maintenance", &service.url_of(&server), "too many complaints").await;
    tour.end();
}

#[tokio::test]
async fn pages_without_a_session_are_legible_in_light_dark_and_on_a_phone() {
    let fresh = FreshService::start("");
    let mut tour = Tour::start(Browser::start().await);
    tour.open("set-up", &fresh.set_up_link, "You become the owner").await;
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    for (name, route, query, expected) in OPEN_PAGES {
        tour.open(name, &service.url_of(&pages::path_of(&placeholders, route, query)), expected).await;
    }
    tour.open("used-link", &service.url_of("/invitation?token=x"), "link").await;
    // The second step of signing in.
    let browser = &tour.browser;
    use_authenticator_app(&service, browser).await;
    browser.click(".person summary").await;
    browser.click("form[action='/sign_out'] button").await;
    sign_in_colleague(&service, browser).await;
    browser.until_text("Enter the code of your app").await;
    tour.look("second-factor").await;
    let browser = &tour.browser;
    browser.fill("input[name=code]", "000000").await;
    browser.click("form button").await;
    browser.until(".problem").await;
    tour.look("second-factor-wrong").await;
    tour.end();
}

async fn sign_in_colleague(service: &DevService, browser: &Browser) {
    browser.open(&service.url_of("/sign_in")).await;
    browser.fill("input[name=email]", "colleague@example.com").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form[action='/sign_in'] button").await;
}

/// Signs in, and adds an app, whose code the browser computes (RFC 6238).
async fn use_authenticator_app(service: &DevService, browser: &Browser) {
    sign_in_colleague(service, browser).await;
    browser.until("nav.side").await;
    browser.open(&service.url_of("/account/you")).await;
    browser.click("form[action='/account/you/app'] button").await;
    browser.until("svg.qr").await;
    let code = "const done = arguments[arguments.length - 1];
        const secret = document.querySelector(\"form[action$='/enable'] .secret\").textContent.replace(/[^A-Z2-7]/g, '');
        const bits = [...secret].map(c => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
        const bytes = Uint8Array.from(bits.match(/.{8}/g).map(byte => parseInt(byte, 2)));
        const counter = new DataView(new ArrayBuffer(8));
        counter.setBigUint64(0, BigInt(Math.floor(Date.now() / 30000)));
        crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-1' }, false, ['sign'])
          .then(key => crypto.subtle.sign('HMAC', key, counter.buffer))
          .then(mac => {
            const view = new DataView(mac);
            const at = view.getUint8(19) & 15;
            done(String((view.getUint32(at) & 0x7fffffff) % 1000000).padStart(6, '0'));
          });";
    let code = browser.run_async(code).await;
    browser.fill("input[name=code]", code.as_str().unwrap()).await;
    browser.click("form[action$='/enable'] > button").await;
    browser.until_text("Keep these recovery codes").await;
}

/// Script that returns the texts that reach beyond the edge of their SVG picture.
const CUT_TEXTS: &str = "return [...document.querySelectorAll('svg')].flatMap(svg => {
    const whole = svg.viewBox.baseVal;
    const isCut = text => {
        const box = text.getBBox();
        return box.width > 0 && (box.x < whole.x || box.x + box.width > whole.x + whole.width
            || box.y < whole.y || box.y + box.height > whole.y + whole.height);
    };
    return [...svg.querySelectorAll('text')].filter(isCut).map(text => text.textContent);
})";

/// Looks at pages in light, in dark and on a phone, and collects what is wrong with them.
struct Tour {
    browser: Browser,
    axe: String,
    faults: Vec<String>,
}

impl Tour {
    fn start(browser: Browser) -> Self {
        Self { browser, axe: read_axe_script(), faults: Vec::new() }
    }

    async fn open(&mut self, name: &str, url: &str, expected: &str) {
        self.browser.open(url).await;
        self.browser.until("h1").await;
        let text = self.browser.page_text().await;
        if !text.contains(expected) {
            self.faults.push(format!("{name} does not say {expected:?}: {text}"));
        }
        self.look(name).await;
    }

    /// Checks the page that is open.
    async fn look(&mut self, name: &str) {
        let browser = &self.browser;
        for (mode, is_dark, width) in
            [("light", false, 1280), ("dark", true, 1280), ("phone", false, PHONE_WIDTH)]
        {
            browser.set_dark(is_dark).await;
            browser.set_size(width, 844).await;
            browser.screenshot(&pictures().join(format!("{name}-{mode}.png"))).await;
            let mut found = find_faults(browser, &self.axe).await;
            if !found.is_empty() {
                // A row that came in by itself, or a change of colours, may have been half drawn.
                found = find_faults(browser, &self.axe).await;
            }
            for fault in found {
                self.faults.push(format!("{name} {mode}: {fault}"));
            }
            let is_wide =
                "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
            if browser.run(is_wide).await != false {
                self.faults.push(format!("{name} {mode} has to be scrolled sideways"));
            }
            let cut = browser.run(CUT_TEXTS).await;
            if cut != json!([]) {
                self.faults.push(format!("{name} {mode} has texts beyond the edge of their picture: {cut}"));
            }
        }
        browser.set_dark(false).await;
        browser.set_size(1280, 844).await;
        // Expected on the console: the answers to a form with a mistake and to a page that does not exist.
        let is_answer = |line: &String| line.contains("404 (Not Found)") || line.contains("status of 422");
        let log = browser.console().await;
        self.faults
            .extend(log.into_iter().filter(|line| !is_answer(line)).map(|line| format!("{name}: {line}")));
    }

    fn end(self) {
        assert!(self.faults.is_empty(), "{}", self.faults.join("\n"));
    }
}

#[tokio::test]
async fn pages_update_themselves_and_keyboard_shortcuts_open_them() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    browser.press("gm").await;
    browser.until_text("No messages yet").await;
    service.send(json!({ "subject": "It came by itself" })).await;
    browser.until_text("It came by itself").await;
    browser.press("/").await;
    assert_eq!(browser.run("return document.activeElement.name").await, "q");
}

#[tokio::test]
async fn a_hidden_page_closes_its_event_stream() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.until_text("No messages yet").await;
    let hide = "window.ended = 0; const close = EventSource.prototype.close; \
                EventSource.prototype.close = function () { window.ended += 1; close.call(this); }; \
                Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true }); \
                document.dispatchEvent(new Event('visibilitychange')); return window.ended";
    assert_eq!(browser.run(hide).await, 1);
    service.send(json!({ "subject": "It came meanwhile" })).await;
    let show = "delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange')); \
                return document.visibilityState";
    assert_eq!(browser.run(show).await, "visible");
    browser.until_text("It came meanwhile").await;
}

#[tokio::test]
async fn one_person_has_at_most_twenty_event_streams() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let address = service.url.strip_prefix("http://").unwrap();
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

/// The script of axe-core, from npm.
fn read_axe_script() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("node-for-tests").join("node_modules");
    let file = folder.join("axe-core").join("axe.min.js");
    std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("no {}: {error}. `cargo xtask test` installs it", file.display()))
}

/// Serious faults on the page: rule, and the first element.
async fn find_faults(browser: &Browser, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe}; const done = arguments[arguments.length - 1];
         axe.run(document, {{ iframes: false }}).then(found => done(found.violations), error => done([{{ id: String(error), \
         impact: 'critical', nodes: [] }}]));"
    );
    let found = browser.run_async(&script).await;
    let serious = |fault: &&Value| matches!(fault["impact"].as_str(), Some("serious" | "critical"));
    let found = found.as_array().expect("axe lists faults");
    found
        .iter()
        .filter(serious)
        .map(|fault| {
            let node = &fault["nodes"][0];
            format!("{}: {} ({})", fault["id"], node["html"], node["any"][0]["message"])
        })
        .collect()
}

#[tokio::test]
async fn a_template_is_written_corrected_published_and_sent() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/templates/new"))).await;
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
    // The line number of the mistake is marked, and a link selects that line.
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
    // The form with a mistake was answered with 422.
    let log: Vec<String> =
        browser.console().await.into_iter().filter(|line| !line.contains("status of 422")).collect();
    assert_eq!(log, [""; 0]);
}

#[tokio::test]
async fn a_template_has_a_layout_and_languages() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let new = service.url_of(&format!("/servers/{server}/templates/new"));
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
    let preview = service.get(&path, &service.sign_in().await).await.text();
    assert!(preview.contains("Shop Ltd") && preview.contains("Hallo Ann"), "{preview}");
    assert_eq!(browser.attribute("option[value=frame]", "selected").await.as_deref(), Some("true"));
}
