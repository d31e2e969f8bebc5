//! Pages for operators and for accounts: queue and gates, pools, reports, the operator's page, and problems on the overview.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::{Database, SmtpClient, TestCertificate, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::roles::{call, join};
use crate::site::{SecondServer, Site, pictures, server_of};

#[tokio::test]
async fn sending_is_stopped_and_resumed_on_sqlite() {
    stop_and_resume(Site::start()).await;
}

#[tokio::test]
async fn sending_is_stopped_and_resumed_on_postgres() {
    stop_and_resume(Site::start_on_postgres()).await;
}

async fn stop_and_resume(site: Site) {
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let queue = site.url_of(&format!("/servers/{server}/queue"));
    browser.open(&queue).await;
    browser.until_text("Nothing waits").await;
    browser.fill("input[name=reason]", "the shop is being moved").await;
    browser.fill("input[name=per_minute]", "many").await;
    browser.click("form[action$='/queue/suspend'] button").await;
    browser.until_text("should be a number").await;
    browser.open(&queue).await;
    browser.fill("input[name=reason]", "the shop is being moved").await;
    browser.click("form[action$='/queue/suspend'] button").await;
    browser.until_text("All mail of this server").await;
    let id = site.send(json!({ "subject": "It waits" })).await;
    browser.until_text("ann@example.net").await;
    browser.until_text("It waits because").await;
    assert!(browser.text("#queue tbody tr:last-child").await.contains("the shop is being moved"));
    let message = site.get(&format!("/servers/{server}/messages/{id}"), &site.cookie().await).await.text();
    assert!(message.contains("id=\"waits\">It waits because"), "its page says so too: {message}");
    browser.screenshot(&pictures().join("queue-stopped.png")).await;
    // The overview says so too, and leads there.
    browser.open(&site.url_of(&format!("/servers/{server}"))).await;
    browser.until_text("Sending is stopped or slowed by a gate: the shop is being moved").await;
    browser.screenshot(&pictures().join("overview-problems.png")).await;
    browser.click(".troubles a").await;
    browser.click("form[action$='/queue/resume'] button").await;
    browser.until_text("Lifted").await;
    site.until(id, "Sent").await;
    browser.until_text("Nothing waits").await;
    // Both changes are in the audit log, with the reason.
    browser.open(&site.url_of("/account/audit")).await;
    browser.until_text("queue/suspend").await;
    assert!(browser.page_text().await.contains("queue/resume"));
}

#[tokio::test]
async fn the_operators_page_updates_itself_and_leads_to_the_queue_of_a_server() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    browser.open(&site.url_of("/operator")).await;
    browser.until_text("Nothing is stopped or slowed").await;
    let cookie = site.cookie().await;
    let gate = site.submit("/operator/suspend", &cookie, "scope=everything&reason=moving").await;
    assert_eq!(gate.status, 303, "{}", gate.text());
    site.send(json!({ "to": ["ann@waiting.example"] })).await;
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
async fn waiting_mail_of_all_servers_is_found_retried_and_cancelled_on_sqlite() {
    waiting_mail_of_all_servers(Site::start()).await;
}

#[tokio::test]
async fn waiting_mail_of_all_servers_is_found_retried_and_cancelled_on_postgres() {
    waiting_mail_of_all_servers(Site::start_on_postgres()).await;
}

async fn waiting_mail_of_all_servers(site: Site) {
    let browser = site.browser().await;
    let own = server_of(&browser).await;
    let other = SecondServer::create_live(&site).await;
    browser.open(&site.url_of("/operator/queue")).await;
    browser.until_text("Nothing waits on any server").await;
    let cookie = site.cookie().await;
    let gate = site.submit("/operator/suspend", &cookie, "scope=everything&reason=moving").await;
    assert_eq!(gate.status, 303, "{}", gate.text());
    let first = site.send(json!({ "to": ["ann@one.example"] })).await;
    let second = other.send(&site, json!({ "to": ["bob@two.example"] })).await;
    // The page updates itself, without a reload.
    browser.until_text("ann@one.example").await;
    browser.until_text("bob@two.example").await;
    let row = browser.text("#queue tbody tr:last-child").await;
    for part in ["staging", "moving", "Queued"] {
        assert!(row.contains(part), "{part}: {row}");
    }
    browser.screenshot(&pictures().join("operator-queue.png")).await;
    // Only one domain, by the link on the operator's first page.
    browser.open(&site.url_of("/operator")).await;
    browser.click("a[href='/operator/queue?domain=two.example']").await;
    browser.until_text("bob@two.example").await;
    assert!(!browser.page_text().await.contains("ann@one.example"));
    browser.open(&site.url_of("/operator/queue?domain=three.example")).await;
    browser.until_text("Nothing waits for three.example").await;
    browser.open(&site.url_of("/operator/queue?domain=no+domain")).await;
    browser.until_text("This is not a domain").await;
    browser.open(&site.url_of(&format!("/servers/{own}/queue?domain=two.example"))).await;
    browser.until_text("Nothing waits for two.example").await;
    browser.open(&site.url_of(&format!("/servers/{}/queue?domain=two.example", other.id))).await;
    browser.until_text("bob@two.example").await;
    // A message is found by its names, whichever server has it.
    let key = (&other.key, json!({ "id": second, "_expansions": ["status", "details"] }));
    let message = call(&site, "x-server-api-key", key.0, "messages/message", &key.1).await;
    let message_id = message["details"]["message_id"].as_str().unwrap().to_owned();
    for name in [second.to_string(), message["token"].as_str().unwrap().to_owned(), format!("<{message_id}>")]
    {
        browser.open(&site.url_of("/operator/queue")).await;
        browser.fill("input[name=message]", &name).await;
        browser.click("form[role=search] button").await;
        browser.until("#waits").await;
        assert!(browser.url().await.ends_with(&format!("/servers/{}/messages/{second}", other.id)), "{name}");
    }
    browser.open(&site.url_of("/operator/queue?message=nothing-has-this-name")).await;
    browser.until_text("No message of any server has this id").await;
    // One is cancelled, the other tried again; both changes are in the audit log.
    browser.open(&site.url_of("/operator/queue")).await;
    browser.click(&format!("input[value='{}/{second}']", other.id)).await;
    browser.click("button[value=cancel_queued]").await;
    browser.until_text("Done. The results are in the list").await;
    assert!(!browser.page_text().await.contains("bob@two.example"));
    browser.click(&format!("input[value='{own}/{first}']")).await;
    browser.click("button[value=retry]").await;
    browser.until_text("Done. The results are in the list").await;
    assert_eq!(browser.console().await, [""; 0]);
    browser.click("button[value=retry]").await;
    browser.until_text("No message is ticked").await;
    let cancelled = call(&site, "x-server-api-key", key.0, "messages/message", &key.1).await;
    assert_eq!(cancelled["status"]["status"], "Cancelled");
    let audit = site.get("/operator/audit", &cookie).await.text();
    for operation in ["messages/cancel", "messages/retry"] {
        assert!(audit.contains(operation), "{operation}: {audit}");
    }
    let lifted = site.submit("/operator/resume", &cookie, "scope=everything").await;
    assert_eq!(lifted.status, 303);
    site.until(first, "Sent").await;
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
    let site = Site::start_with(None, &[("POSTROAD_DELIVERY_PROVIDERS_FILE", file)]);
    let browser = site.browser().await;
    browser.open(&site.url_of("/operator")).await;
    browser.click("details[data-key=limits] summary").await;
    let text = browser.text("#limits").await;
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).map(ToOwned::to_owned);
    assert!(text.contains("google.com, googlemail.com 7 "), "{text}");
    assert!(text.contains("own.example 10 9 "), "{text}");
    assert!(row("all others").is_some(), "{text}");
    browser.screenshot(&pictures().join("operator-limits.png")).await;
}

#[tokio::test]
async fn servers_are_listed_with_their_figures_and_problems() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let held = SecondServer::create_development(&site).await;
    let id = site.send(json!({})).await;
    site.until(id, "Sent").await;
    held.send(&site, json!({})).await;
    let gate = format!("/servers/{server}/queue/suspend");
    assert_eq!(site.submit(&gate, &site.cookie().await, "reason=moving").await.status, 303);
    site.send(json!({ "to": ["ann@waiting.example"] })).await;
    browser.open(&site.url_of("/servers")).await;
    let figures = async |server: i64| {
        let row = format!("tbody tr:has(a[href='/servers/{server}'])");
        let text = async |label: &str| browser.text(&format!("{row} td[data-label='{label}']")).await;
        [text("Accepted").await, text("Held").await, text("Waiting").await, text("Problems").await]
    };
    eventually(async || {
        browser.reload().await;
        let found = figures(server).await;
        if found == ["2", "0", "1", "1 to look at"] { Ok(()) } else { Err(found.join(" / ")) }
    })
    .await;
    assert_eq!(figures(held.id).await, ["1", "1", "0", "none"]);
    browser.screenshot(&pictures().join("servers-figures.png")).await;
    browser.set_size(390, 844).await;
    browser.screenshot(&pictures().join("servers-figures-phone.png")).await;
    browser.click(&format!("a[href='/servers/{server}#troubles']")).await;
    browser.until_text("Sending is stopped or slowed by a gate: moving").await;
}

#[tokio::test]
async fn a_stopped_pool_is_a_problem_of_its_servers() {
    let site = Site::start();
    let id = site.send(json!({})).await;
    site.until(id, "Sent").await;
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    assert!(site.get(&server, &cookie).await.text().contains("No problems"));
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
            call(&site, "x-operator-api-key", &site.ready("operator_api_key"), "ip_pools/create", &pool)
                .await;
        }
        let form = format!("scope={scope}&reason=on+a+list");
        let set = site.submit("/operator/suspend", &cookie, &form).await;
        assert_eq!(set.status, 303, "{}", set.text());
        let home = site.get(&server, &cookie).await.text();
        assert!(home.contains(text) && !home.contains("No problems"), "{home}");
        site.submit("/operator/resume", &cookie, &format!("scope={scope}")).await;
    }
}

#[tokio::test]
async fn operator_stops_mail_to_a_domain_and_sees_the_installation() {
    let site = Site::start();
    let browser = site.browser().await;
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    site.send(json!({ "subject": "Later", "send_at": tomorrow })).await;
    browser.open(&site.url_of("/operator")).await;
    browser.until_text("Nothing is stopped or slowed").await;
    let page = browser.page_text().await;
    assert!(page.contains("Waiting mail by server") && page.contains("First one due"), "{page}");
    browser.click("details summary:has(+ form)").await;
    browser.fill("input[name=scope]", "planet:mars").await;
    browser.fill("form[action='/operator/suspend'] input[name=reason]", "they asked for a pause").await;
    browser.click("form[action='/operator/suspend'] button").await;
    browser.until_text("should be everything, pool:NAME").await;
    browser.open(&site.url_of("/operator")).await;
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
    browser.open(&site.url_of("/operator/doctor")).await;
    browser.until_text("It takes writes").await;
    let zone = site.get("/operator/doctor/zone", &site.cookie().await).await;
    assert!(zone.headers["content-disposition"].to_str().unwrap().contains(".zone"));
    assert!(zone.text().contains("._domainkey."), "{}", zone.text());
    browser.open(&site.url_of("/operator/accounts")).await;
    browser.fill("form.stack input[name=name]", "Second customer").await;
    browser.click("form.stack button").await;
    browser.until_text("Nobody has joined yet").await;
    // The account's ceilings, its deletion and its restoration.
    browser.open(&site.url_of("/operator/accounts")).await;
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
async fn the_pool_of_a_server_is_preselected_however_many_pools_there_are() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let id: i64 = server.rsplit_once('/').unwrap().1.parse().unwrap();
    let key = site.ready("operator_api_key");
    let by_operator =
        async |path: &str, body: Value| call(&site, "x-operator-api-key", &key, path, &body).await;
    let mut last = Value::Null;
    // One more than the page lists.
    for number in 0..101 {
        last = by_operator("ip_pools/create", json!({ "name": format!("pool{number}") })).await["id"].clone();
    }
    let settings = format!("{server}/settings");
    let page = site.get(&settings, &cookie).await.text();
    assert!(!page.contains(&format!("<option value=\"{last}\"")), "it is not among the first 100");
    by_operator("servers/update", json!({ "id": id, "ip_pool": last })).await;
    let page = site.get(&settings, &cookie).await.text();
    assert!(page.contains(&format!("<option value=\"{last}\" selected>pool100<")), "{page}");
}

#[tokio::test]
async fn operator_makes_a_pool_and_warms_an_address_up() {
    let site = Site::start();
    let browser = site.browser().await;
    browser.open(&site.url_of("/account/pools")).await;
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
    // The form is open, with what was typed.
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

#[tokio::test]
async fn reports_of_receivers_are_shown_by_source() {
    let site = Site::start();
    site.send(json!({})).await;
    mail_reports(&site).await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let page = site.url_of(&format!("/servers/{server}/reports?domain=example.test&days=7"));
    browser.open(&page).await;
    // Reports are processed shortly after they are accepted.
    browser.reload_until_text("192.0.2.1").await;
    browser.reload_until_text("certificate-expired").await;
    let text = browser.page_text().await;
    assert!(text.contains("83.33 %") && text.contains("100.00 %"), "{text}");
    assert!(text.contains("The certificate of the MX host has expired"), "{text}");
    browser.screenshot(&pictures().join("reports-filled.png")).await;
    // The operator sees what came to the bounce listener.
    browser.open(&site.url_of("/operator/doctor")).await;
    browser.until_text("Since it started, this node took 2 mails, refused 0").await;
}

/// Mails a DMARC report and a TLS report about `example.test`, which has sent a message.
pub(crate) async fn mail_reports(site: &Site) {
    let host = return_path_host(site).await;
    mail_report(site, &format!("dmarc-reports@{host}"), dmarc_report().as_bytes()).await;
    mail_report(site, &format!("tls-reports@{host}"), tls_report().as_bytes()).await;
}

async fn return_path_host(site: &Site) -> String {
    eventually(async || {
        let caught = site.client.get("/dev/messages").await.unwrap().json();
        let path = caught["messages"][0]["mail_from"].as_str();
        let host = path.map(|path| path.split_once('@').unwrap().1.to_owned());
        host.ok_or_else(|| format!("no message was caught: {caught}"))
    })
    .await
}

fn dmarc_report() -> String {
    let now = SystemClock.now().as_secs();
    let row = |address: &str, count: u32, verdict: &str| {
        format!(
            "<record><row><source_ip>{address}</source_ip><count>{count}</count><policy_evaluated>\
             <disposition>none</disposition><dkim>{verdict}</dkim><spf>fail</spf></policy_evaluated></row></record>"
        )
    };
    format!(
        "<feedback><report_metadata><org_name>isp.example</org_name><report_id>1</report_id><date_range>\
         <begin>{}</begin><end>{}</end></date_range></report_metadata>\
         <policy_published><domain>example.test</domain><p>none</p></policy_published>{}{}</feedback>",
        now - 90_000,
        now - 3_600,
        row("192.0.2.1", 10, "pass"),
        row("198.51.100.7", 2, "fail"),
    )
}

fn tls_report() -> String {
    let now = SystemClock.now();
    let day = Duration::from_hours(24);
    json!({
        "organization-name": "isp.example",
        "date-range": { "start-datetime": now.minus(day).to_rfc3339(), "end-datetime": now.to_rfc3339() },
        "report-id": "7",
        "policies": [{
            "policy": { "policy-type": "sts", "policy-domain": "example.test" },
            "summary": { "total-successful-session-count": 100, "total-failure-session-count": 4 },
            "failure-details": [{ "result-type": "certificate-expired", "failed-session-count": 4 }],
        }],
    })
    .to_string()
}

/// Mails a report to the installation, gzipped as receivers send it.
async fn mail_report(site: &Site, to: &str, file: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(file).unwrap();
    let packed = BASE64_STANDARD.encode(encoder.finish().unwrap());
    let lines: Vec<&str> =
        packed.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let message = format!(
        "From: reports@isp.example\r\nSubject: Report\r\nContent-Type: application/gzip; name=report.gz\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{}\r\n.",
        lines.join("\r\n")
    );
    let mut client = SmtpClient::connect(site.bounce_address()).await;
    for line in ["MAIL FROM:<>", &format!("RCPT TO:<{to}>"), "DATA", &message] {
        let reply = client.say(line).await;
        assert!(reply.starts_with('2') || reply.starts_with('3'), "{line}: {reply}");
    }
}

#[tokio::test]
async fn usage_of_the_account_is_shown_with_its_ceilings() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let operator = site.ready("operator_api_key");
    let headers = [("x-operator-api-key", operator.as_str()), ("content-type", "application/json")];
    let ceilings = json!({ "id": 1, "ceilings": { "servers": 1, "domains": 10, "daily_limit": 1000, "send_rate": "10/s" } });
    let call = site.client.request(
        postroad_testkit::http::Method::POST,
        "/api/v1/accounts/update",
        &headers,
        ceilings.to_string().into(),
    );
    let answer = call.await.unwrap().json();
    assert_eq!(answer["status"], "success", "{answer}");
    let browser = site.browser().await;
    browser.open(&site.url_of("/account")).await;
    browser.until_text("Messages today").await;
    let text = browser.text("table.rows").await;
    assert!(text.contains("Servers Reached") && text.contains("no limit"), "{text}");
    assert!(browser.page_text().await.contains("Send rate of all servers together"));
    assert_eq!(browser.attribute("meter[aria-label^='Domains']", "max").await.as_deref(), Some("10"));
    browser.fill("input[name=name]", "Shop Ltd").await;
    browser.click("main form button").await;
    browser.until_text("Saved").await;
    assert_eq!(browser.text("h1").await, "Shop Ltd");
    assert!(site.get("/account/audit", &cookie).await.text().contains("account/update"));
}

#[tokio::test]
async fn a_list_of_addresses_is_suppressed_and_wrong_lines_are_named() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let page = site.url_of(&format!("/servers/{server}/suppressions"));
    browser.open(&page).await;
    browser.click("main > details summary").await;
    browser.fill("textarea[name=csv]", "ann@example.net\nno address\nbob@example.net").await;
    browser.click("form[action$='/import'] button").await;
    browser.until_text("1 line not taken").await;
    let text = browser.page_text().await;
    assert!(
        text.contains("Line 2:") && text.contains("ann@example.net") && text.contains("bob@example.net"),
        "{text}"
    );
    // The form is still open.
    browser.fill("textarea[name=csv]", "address,reason\neve@example.net,complaint").await;
    browser.click("form[action$='/import'] button").await;
    browser.until_text("every line was accepted").await;
    browser.until_text("eve@example.net").await;
}

#[tokio::test]
async fn nodes_are_listed_and_certificates_that_end_soon_are_problems_on_sqlite() {
    nodes_and_certificates(None).await;
}

#[tokio::test]
async fn nodes_are_listed_and_certificates_that_end_soon_are_problems_on_postgres() {
    nodes_and_certificates(Some(Database::create())).await;
}

async fn nodes_and_certificates(database: Option<Database>) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let in_days = |days: u64| SystemClock.now().plus(Duration::from_hours(24 * days));
    let write = |pair: &TestCertificate, has_key: bool| {
        std::fs::write(path("cert.pem"), &pair.certificate_pem).unwrap();
        if has_key {
            std::fs::write(path("key.pem"), &pair.key_pem).unwrap();
        }
    };
    write(&TestCertificate::good_until(&["localhost"], in_days(5)), true);
    let files = [("POSTROAD_TLS_CERTIFICATE", path("cert.pem")), ("POSTROAD_TLS_KEY", path("key.pem"))];
    let envs: Vec<(&str, &str)> = files.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let site = Site::start_with(database, &envs);
    let id = site.send(json!({})).await;
    site.until(id, "Sent").await;
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    // The overview says what to do, and leads to the nodes.
    browser.open(&site.url_of(&format!("/servers/{server}"))).await;
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
    browser.open(&site.url_of("/operator/doctor")).await;
    browser.until_text("The TLS certificate of").await;
    browser.open(&site.url_of("/operator")).await;
    browser.until(".problem time").await;
    // A renewal without the new key fails; then the key is written too.
    let good = TestCertificate::good_until(&["localhost"], in_days(80));
    write(&good, false);
    site.hang_up();
    browser.open(&site.url_of("/operator/nodes")).await;
    browser.reload_until_text("cannot be loaded again").await;
    assert!(browser.page_text().await.contains("does not belong to the certificate"));
    write(&good, true);
    site.hang_up();
    browser.reload_until_text("Good").await;
    let home = site.get(&format!("/servers/{server}"), &site.cookie().await).await.text();
    assert!(!home.contains("TLS certificate") && home.contains("No problems"), "{home}");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn a_waiting_message_says_who_stopped_it_on_sqlite() {
    a_waiting_message_says_who_stopped_it(Site::start()).await;
}

#[tokio::test]
async fn a_waiting_message_says_who_stopped_it_on_postgres() {
    a_waiting_message_says_who_stopped_it(Site::start_on_postgres()).await;
}

async fn a_waiting_message_says_who_stopped_it(site: Site) {
    let operator = site.cookie().await;
    let (_, admin) = join(&site, "anna", "admin").await;
    let server = site.server_path(&operator).await;
    let stoppers =
        [(&admin, "an administrator of the account", "account"), (&operator, "the operator", "operator")];
    for (cookie, who, by) in stoppers {
        let gate = site.submit(&format!("{server}/queue/suspend"), cookie, "reason=moving+house").await;
        assert_eq!(gate.status, 303, "{}", gate.text());
        let id = site.send(json!({ "subject": "It waits" })).await;
        let page = eventually(async || {
            let page = site.get(&format!("{server}/messages/{id}"), &admin).await.text();
            if page.contains("moving house") { Ok(page) } else { Err(page) }
        })
        .await;
        let wanted = format!("all mail of the server is stopped by {who}: moving house");
        assert!(page.contains(&wanted) && !page.contains("server:"), "{page}");
        let queue = site.get(&format!("{server}/queue"), &admin).await.text();
        assert!(queue.contains(&wanted) && queue.contains(&format!("set by {who}")), "{queue}");
        assert_eq!(site.queue_stats()["gates"][0]["by"], by);
        assert_eq!(site.submit(&format!("{server}/queue/resume"), &operator, "").await.status, 303);
        site.until(id, "Sent").await;
    }
}

#[tokio::test]
async fn the_account_page_shows_the_messages_of_the_month_by_server() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let account_key = site.ready("account_api_key");
    let by_account =
        async |path: &str, body| call(&site, "x-account-api-key", &account_key, path, &body).await;
    for _ in 0..2 {
        let id = site.send(json!({})).await;
        site.until(id, "Sent").await;
    }
    let quiet = by_account("servers/create", json!({ "name": "Quiet" })).await["id"].as_i64().unwrap();
    let (_, reader) = join(&site, "reader", "read-only").await;
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
        let page = site.get("/account", &reader).await;
        assert_eq!(page.status, 200);
        let found = row(&page.text(), &name);
        if found == Some(vec!["2".into(), "2".into()]) { Ok(()) } else { Err(page.text()) }
    })
    .await;
    let page = site.get("/account", &cookie).await.text();
    assert_eq!(row(&page, "Quiet"), Some(vec!["0".into(), "0".into()]), "{page}");
    assert!(page.contains("All servers") && page.contains("<strong>2</strong>"), "{page}");
    // If a new name is refused, the page still shows its table.
    let refused = site.submit("/account", &cookie, "name=").await;
    assert!(refused.status == 422 && refused.text().contains("Messages this month"), "{}", refused.text());

    by_account("servers/delete", json!({ "id": quiet })).await;
    assert_eq!(row(&site.get("/account", &cookie).await.text(), "Quiet"), None, "it is deleted");
    for number in 0..22 {
        by_account("servers/create", json!({ "name": format!("More {number}") })).await;
    }
    let page = site.get("/account", &cookie).await.text();
    assert!(page.contains("The first 20 servers") && page.contains("These servers together"), "{page}");
    let rows = page.matches("/analytics\">").count();
    assert_eq!(rows, 20, "{page}");
    let browser = site.browser().await;
    browser.open(&site.url_of("/account")).await;
    browser.until_text("Messages this month").await;
    browser.screenshot(&pictures().join("account.png")).await;
}
