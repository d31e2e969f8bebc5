//! From nothing to a delivered message and a received webhook, as somebody does it on the first day.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use postroad_testkit::http::Method;
use postroad_testkit::smtp_peer::Script;
use postroad_testkit::{Browser, DnsServer, PYTHON_VARIABLE, SmtpPeer, WebhookCatcher};
use serde_json::json;

use crate::service::{DevService, FreshService, pictures, server_of};

/// Time limit of a whole first run, including the start of the browser.
const FIRST_RUN_TIME_MAX: Duration = Duration::from_mins(1);
const DOMAIN: &str = "shop.test";

/// The world around a new installation: a name server, one mail host that takes all mail, and a receiver of webhooks.
struct Outside {
    dns: DnsServer,
    mail_host: SmtpPeer,
    webhooks: WebhookCatcher,
}

impl Outside {
    fn start() -> Self {
        let (dns, mail_host, webhooks) =
            (DnsServer::start(), SmtpPeer::start(Script::new()), WebhookCatcher::start());
        dns.a("mail.example.com", Ipv4Addr::LOCALHOST);
        dns.mx("example.net", 10, "mx.example.net").a("mx.example.net", Ipv4Addr::LOCALHOST);
        Self { dns, mail_host, webhooks }
    }

    /// Configuration of a service that uses only these servers.
    fn configuration(&self) -> String {
        format!(
            "[dns]\nnameservers = [\"{}\"]\n[delivery]\nsmtp_port = {}\nallow_private_destinations = true\n\
             [webhooks]\nallow = [\"127.0.0.0/8\"]\n",
            self.dns.address(),
            self.mail_host.address().port()
        )
    }
}

#[tokio::test]
async fn from_an_empty_folder_to_a_received_webhook_within_a_minute() {
    let outside = Outside::start();
    let begun = Instant::now();
    let fresh = FreshService::start(&outside.configuration());
    let browser = Browser::start().await;
    set_up(&fresh, &browser).await;
    let server = create_server(&browser).await;
    let key = create_key(&browser).await;

    // Nothing can be sent yet, and the answer says why.
    let refused = send(&fresh, &key).await;
    assert_eq!(refused["data"]["code"], "UnauthenticatedFromAddress", "{refused}");
    browser.until_text("Waiting for your first message").await;

    // The key's page stays open while the domain is set up in another tab.
    let key_page = browser.new_tab().await;
    let overview = fresh.url_of(&format!("/servers/{server}"));
    assert_eq!(steps_done(&browser, &overview).await, 1, "the key is ticked");
    verify_domain(&fresh, &browser, server, &outside.dns).await;
    assert_eq!(steps_done(&browser, &overview).await, 2, "and the domain");

    let accepted = send(&fresh, &key).await;
    assert_eq!(accepted["status"], "success", "{accepted}");
    // Nobody loads a page again: the checklist ticks itself, and the panel becomes the timeline.
    browser.until(".checklist li:nth-child(3).done").await;
    assert_eq!(browser.count(".checklist .done").await, 3);
    browser.go_to_tab(&key_page).await;
    browser.until_text("It arrived here").await;
    browser.until_text("Delivered").await;
    browser.screenshot(&pictures().join("first-run-arrived.png")).await;
    let received = outside.mail_host.messages();
    assert_eq!(received.len(), 1, "the mail host has it");
    let bytes = String::from_utf8_lossy(&received[0].bytes).into_owned();
    assert!(bytes.contains("Subject: First one") && bytes.contains(&format!("d={DOMAIN}")), "{bytes}");

    add_webhook(&fresh, &browser, server, &outside.webhooks).await;
    send(&fresh, &key).await;
    outside.webhooks.wait_until("/events", Duration::from_secs(20), |all| {
        let is_ours = |event: &serde_json::Value| {
            event["type"] == "message.delivered" && event["data"]["message"]["subject"] == "First one"
        };
        all.iter().any(|received| is_ours(&received.json()))
    });
    // The webhook's page shows the attempts without being reloaded.
    browser.until_text("message.delivered").await;
    browser.until(".badge.good").await;

    browser.open(&overview).await;
    browser.until_text("Last 24 hours").await;
    assert!(!browser.has(".checklist").await, "every step is done");
    let took = begun.elapsed();
    assert_eq!(browser.console().await, [""; 0]);
    eprintln!("the first run took {took:.1?}");
    assert!(took < FIRST_RUN_TIME_MAX, "the first run took {took:?}");
}

async fn set_up(fresh: &FreshService, browser: &Browser) {
    browser.open(&fresh.set_up_link).await;
    browser.fill("input[name=account]", "Shop Ltd").await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form button").await;
    browser.until_text("Create the first one").await;
}

async fn create_server(browser: &Browser) -> i64 {
    browser.fill("input[name=name]", "shop").await;
    browser.click("main form button").await;
    browser.until("input[name=once]").await;
    server_of(browser).await
}

/// Returns the key, which is shown once and in every snippet.
async fn create_key(browser: &Browser) -> String {
    browser.click("form.stack > button").await;
    browser.until_text("they are not shown again").await;
    let key = browser.text("dl.summary div:first-child .secret").await;
    assert!(browser.page_text().await.contains("Waiting for your first message"), "the panel waits");
    let snippets = browser
        .run("return [...document.querySelectorAll('.snippets details')].map(one => one.textContent)")
        .await;
    for language in ["curl", "Python", "Node", "PHP", "Ruby", "Go", "Rust"] {
        let has_key = |text: &&serde_json::Value| {
            let text = text.as_str().unwrap();
            text.starts_with(language) && text.contains(&key)
        };
        assert!(snippets.as_array().unwrap().iter().any(|text| has_key(&text)), "{language}: {snippets}");
    }
    browser.screenshot(&pictures().join("first-key.png")).await;
    key
}

/// Runs the snippets as a person who copies them would, except those in PHP, Ruby, Go and Rust: these languages are not
/// installed for tests.
#[tokio::test]
async fn snippets_of_a_new_key_send_a_first_message() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/keys"))).await;
    browser.fill("form.card.stack input[name=name]", "snippets").await;
    browser.click("form.card.stack > button").await;
    browser.until_text("they are not shown again").await;
    let codes = "return Object.fromEntries([...document.querySelectorAll('.snippets details')]
        .map(one => [one.querySelector('summary').textContent, one.querySelector('pre').firstChild.textContent]))";
    let codes = browser.run(codes).await;
    let person = codes["curl"].as_str().unwrap().split("[\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(person, "dev@example.test", "the person who is signed in");
    let python = std::env::var(PYTHON_VARIABLE).expect("run with `cargo xtask test`");
    for (name, program, options) in [
        ("curl", "bash", vec!["-c"]),
        ("Python", python.as_str(), vec!["-c"]),
        ("Node", "node", vec!["--input-type=module", "-e"]),
        ("SMTP (swaks)", "bash", vec!["-c"]),
    ] {
        let code = codes[name].as_str().unwrap();
        assert!(code.contains(person), "{name}: {code}");
        let output = Command::new(program).args(options).arg(code).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {text}{error}\nof {code}");
        assert!(text.contains("success") || text.contains("queued as"), "{name}: {text}{error}\nof {code}");
        let arrived = format!("/dev/messages/wait?to={person}&subject=First+message&timeout=20");
        let reply = service.client.get(&arrived).await.unwrap();
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let cleared = service.client.request(Method::DELETE, "/dev/messages", &[], Vec::new().into()).await;
        assert!(cleared.unwrap().status < 300, "{name}");
    }
}

async fn send(fresh: &FreshService, key: &str) -> serde_json::Value {
    let message = json!({
        "to": ["ann@example.net"], "from": format!("hello@{DOMAIN}"), "subject": "First one", "plain_body": "It works.",
    });
    fresh.client.post_json("/api/v1/send/message", Some(key), &message).await.unwrap().json()
}

async fn steps_done(browser: &Browser, overview: &str) -> usize {
    browser.open(overview).await;
    browser.until(".checklist").await;
    assert_eq!(browser.count(".checklist li").await, 4);
    browser.count(".checklist .done").await
}

/// Adds the domain, publishes the records of its zone file, and has them checked.
async fn verify_domain(fresh: &FreshService, browser: &Browser, server: i64, dns: &DnsServer) {
    let domains = fresh.url_of(&format!("/servers/{server}/domains"));
    browser.open(&domains).await;
    browser.fill("input[name=name]", DOMAIN).await;
    browser.click("form.stack > button").await;
    browser.until_text("Not verified").await;
    browser.until_text("_domainkey.shop.test").await;
    browser.screenshot(&pictures().join("first-domain.png")).await;
    share_records(fresh, browser).await;
    let download = format!(
        "const done = arguments[arguments.length - 1]; \
         fetch('/servers/{server}/domains/{DOMAIN}/zone').then(answer => answer.text()).then(done);"
    );
    let zone = browser.run_async(&download).await;
    dns.zone(zone.as_str().unwrap());
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;
}

/// Creates the link by which the person who edits the DNS sees the records without signing in.
async fn share_records(fresh: &FreshService, browser: &Browser) {
    browser.click("form[action$='/share'] button").await;
    browser.until_text("Send this link to whoever edits the DNS").await;
    let link = browser.text("section.card .secret").await;
    let path = format!("/dns/{}", link.split_once("/dns/").unwrap().1);
    let shared = fresh.client.get(&path).await.unwrap();
    assert_eq!(shared.status, 200, "{}", shared.text());
    assert!(shared.text().contains(&format!("DNS records of {DOMAIN}")), "{}", shared.text());
}

async fn add_webhook(fresh: &FreshService, browser: &Browser, server: i64, receiver: &WebhookCatcher) {
    browser.open(&fresh.url_of(&format!("/servers/{server}/webhooks"))).await;
    browser.fill("input[name=url]", &receiver.url("/events")).await;
    browser.click("form.stack > button").await;
    browser.until_text("Copy the secret now").await;
    assert!(browser.text(".secret").await.starts_with("whsec_"));
}

/// The service is at a loopback address, and its configuration allows webhooks to public addresses only.
#[tokio::test]
async fn webhooks_reach_an_inspector_but_nothing_else_of_the_service() {
    let fresh = FreshService::start("");
    let browser = Browser::start().await;
    set_up(&fresh, &browser).await;
    let server = create_server(&browser).await;
    let inspector = fresh.url_of(&format!("/servers/{server}/webhooks/inspector"));
    browser.open(&inspector).await;
    browser.click(".empty button").await;
    browser.until_text("Waiting for a request").await;
    let address = browser.text("main .secret").await;
    assert!(address.starts_with(&format!("{}/inspect/", fresh.url)), "{address}");
    browser.click("form[action$='/webhooks'] button").await;
    browser.until_text("Copy the secret now").await;
    browser.click("form[action$='/test'] button").await;
    browser.until_text("The sample").await;
    browser.open(&inspector).await;
    browser.until_text("message.delivered").await;
    browser.screenshot(&pictures().join("inspector-serve.png")).await;

    // Now webhooks have a connection to the service open. They cannot use it for another page, nor reach another port.
    let other = WebhookCatcher::start();
    let token = address.rsplit('/').next().unwrap();
    for url in [
        fresh.url_of("/sign_in"),
        fresh.url_of("/inspect/"),
        fresh.url_of(&format!("/inspect/{token}/more")),
        fresh.url_of("/api/v1/openapi.json"),
        other.url(&format!("/inspect/{token}")),
    ] {
        browser.open(&fresh.url_of(&format!("/servers/{server}/webhooks"))).await;
        browser.fill("form.stack input[name=url]", &url).await;
        browser.click("form.stack > button").await;
        browser.until_text("Copy the secret now").await;
        browser.click("form[action$='/test'] button").await;
        browser.until_text("is not one of the public internet").await;
    }
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn first_run_of_dev_on_sqlite() {
    first_run(DevService::start()).await;
}

#[tokio::test]
async fn first_run_of_dev_on_postgres() {
    first_run(DevService::start_on_postgres()).await;
}

/// The first run with `postroad dev`, which signs in by a link and catches the mail that it would send.
async fn first_run(service: DevService) {
    let begun = Instant::now();
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/servers")).await;
    let server = create_server(&browser).await;
    let key = create_key(&browser).await;
    let smtp =
        "return [...document.querySelectorAll('.snippets details')].map(one => one.textContent).join()";
    let smtp = browser.run(smtp).await.as_str().unwrap().to_owned();
    let port = service.starttls_port();
    assert!(smtp.contains("SMTP (swaks)") && smtp.contains(&port.to_string()), "{port}: {smtp}");

    browser.open(&service.url_of(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", DOMAIN).await;
    browser.click("form.stack > button").await;
    browser.until_text("_domainkey.shop.test").await;
    assert_eq!(service.post(&format!("/dev/dns/{DOMAIN}"), &[], "").await.status, 200);
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;

    browser.open(&service.url_of(&format!("/servers/{server}/first_message"))).await;
    browser.until_text("Waiting for your first message").await;
    let message = json!({
        "to": ["ann@example.net"], "from": format!("hello@{DOMAIN}"), "subject": "First one", "plain_body": "It works.",
    });
    let id = service.send_with(&key, &message).await[0];
    // The panel turns into the timeline without a reload.
    browser.until_text("First one").await;
    browser.until_text("Delivered").await;
    browser.screenshot(&pictures().join("first-message.png")).await;
    browser.click("#arrival a").await;
    browser.until_text(&id.to_string()).await;

    let catcher = WebhookCatcher::start();
    browser.open(&service.url_of(&format!("/servers/{server}/webhooks"))).await;
    browser.fill("input[name=url]", &catcher.url("/events")).await;
    browser.click("form.stack > button").await;
    browser.until_text("Copy the secret now").await;
    browser.click("form[action$='/test'] button").await;
    browser.until_text("The sample").await;
    assert_eq!(catcher.wait_for("/events", 1)[0].json()["type"], "message.delivered");
    service.send_with(&key, &message).await;
    catcher.wait_until("/events", Duration::from_secs(20), |all| {
        all.iter().any(|received| received.json()["data"]["message"]["subject"] == "First one")
    });
    browser.open(&browser.url().await.replace("/test", "")).await;
    browser.until_text("message.accepted").await;

    // Without a receiver, the inspector shows what is posted.
    browser.open(&service.url_of(&format!("/servers/{server}/webhooks/inspector"))).await;
    browser.click(".empty button").await;
    browser.until_text("Waiting for a request").await;
    browser.click("form[action$='/webhooks'] button").await;
    browser.until_text("Copy the secret now").await;
    service.send_with(&key, &message).await;
    browser.open(&service.url_of(&format!("/servers/{server}/webhooks/inspector"))).await;
    browser.until_text("message.").await;

    browser.open(&service.url_of(&format!("/servers/{server}"))).await;
    browser.until_text("Last 24 hours").await;
    assert!(!browser.has(".checklist").await, "every step is done");
    assert_eq!(browser.console().await, [""; 0]);
    assert!(begun.elapsed() < FIRST_RUN_TIME_MAX, "{:?}", begun.elapsed());
}
