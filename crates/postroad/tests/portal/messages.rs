//! Messages: search and saved searches, CSV export, one message with its preview, and actions on several.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::Method;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{CatcherAnswer, SmtpPeer, WebhookCatcher, eventually, eventually_within};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::roles::call;
use crate::service::{DevService, SecondServer, pictures, server_of};

#[tokio::test]
async fn search_results_are_downloaded_as_csv() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let start = service.get("/", &cookie).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    service.send(json!({ "subject": "=HYPERLINK(\"http://evil.example\")", "tag": "receipt" })).await;
    service.send(json!({ "subject": "say \"hi\", please", "tag": "receipt" })).await;
    service.send(json!({ "subject": "another", "tag": "code" })).await;
    let reply = service.get(&format!("{server}/messages/export?q=tag%3Areceipt"), &cookie).await;
    assert_eq!(reply.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(reply.headers["content-disposition"], "attachment; filename=\"messages.csv\"");
    let text = reply.text();
    let lines: Vec<&str> = text.trim_end().split("\r\n").collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("id,accepted_at,status,to,"), "{text}");
    assert!(lines[1].contains(",\"say \"\"hi\"\", please\","), "the newest first: {text}");
    assert!(lines[2].contains(",\"'=HYPERLINK("), "no formula: {text}");
    assert_eq!(service.get(&format!("{server}/messages/export?q=colour%3Ared"), &cookie).await.status, 422);
    let held = service.get(&format!("{server}/messages/export?tab=held"), &cookie).await.text();
    assert_eq!(held.trim_end().lines().count(), 1, "{held}");
}

#[tokio::test]
async fn an_export_cut_off_by_a_shutdown_does_not_look_complete() {
    let service = DevService::start();
    // More rows than the buffers of a connection hold, so that the file is still being sent when the service stops.
    let list = |who: &str| (0..50).map(|at| format!("{who}{at}@example.net")).collect::<Vec<_>>();
    let message = json!({ "to": list("to"), "cc": list("cc"), "bcc": list("bcc") });
    let batch = json!({
        "defaults": { "from": "shop@example.test", "subject": "x".repeat(900), "plain_body": "Thank you." },
        "messages": vec![message; 20],
    });
    let key = service.ready("api_key");
    let headers =
        [("x-server-api-key", key.as_str()), ("x-test-mode", "true"), ("content-type", "application/json")];
    for _ in 0..4 {
        let sent = service
            .client
            .request(Method::POST, "/api/v1/send/batch", &headers, batch.to_string().into())
            .await;
        assert_eq!(sent.unwrap().json()["data"]["accepted"], 20);
    }
    let cookie = service.sign_in().await;
    let path = format!("{}/messages/export", service.server_path(&cookie).await);
    let address = service.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 2_000];
    stream.read_exact(&mut answer).await.unwrap();
    service.terminate();
    // The service closes its listeners when it stops.
    eventually(async || if TcpStream::connect(address).await.is_err() { Ok(()) } else { Err("it listens") })
        .await;
    // The connection may end with an error.
    drop(stream.read_to_end(&mut answer).await);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("transfer-encoding: chunked"), "{answer}");
    let rows = answer.matches("@example.net").count();
    assert!((100..12_000).contains(&rows), "{rows} rows");
    assert!(!answer.ends_with("0\r\n\r\n"), "no last chunk: the file is incomplete");
}

#[tokio::test]
async fn searches_are_suggested_and_saved_on_sqlite() {
    searches_are_suggested_and_saved(DevService::start()).await;
}

#[tokio::test]
async fn searches_are_suggested_and_saved_on_postgres() {
    searches_are_suggested_and_saved(DevService::start_on_postgres()).await;
}

async fn searches_are_suggested_and_saved(service: DevService) {
    service.send(json!({ "tag": "receipt" })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.until("input[role=combobox]").await;
    browser.fill("input[name=q]", "st").await;
    browser.until("#suggestions li").await;
    assert!(browser.text("#suggestions").await.contains("status:"));
    // WebDriver's codes of keys: \u{e015} is the down arrow, \u{e007} Enter, \u{e00c} Escape.
    browser.press("\u{e015}\u{e007}").await;
    assert_eq!(browser.run("return document.querySelector('[name=q]').value").await, "status:");
    browser.until_text("status:Held").await;
    browser.fill("input[name=q]", "ta").await;
    browser.press("\u{e015}\u{e007}").await;
    browser.until_text("tag:receipt").await;
    browser.screenshot(&pictures().join("messages-suggestions.png")).await;
    browser.press("\u{e015}\u{e007}\u{e00c}\u{e007}").await;
    browser.until_text("Keep this search").await;
    browser.click(".filters > form button").await;
    browser.until(".filters .chip a[aria-current]").await;
    assert!(!browser.page_text().await.contains("Keep this search"), "it is kept already");
    // The search is kept for the person: another browser shows it too.
    let other = service.signed_in_browser().await;
    other.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    other.until(".filters .chip").await;
    assert_eq!(other.text(".filters .chip a").await, "tag:receipt");
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.click(".filters .chip a").await;
    browser.until("input[name=q][value='tag:receipt']").await;
    browser.click(".filters .chip button").await;
    browser.until_text("Keep this search").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn messages_of_a_tag_are_listed_and_the_search_is_saved_under_a_name_on_sqlite() {
    messages_of_a_tag_are_listed_and_the_search_is_saved_under_a_name(DevService::start()).await;
}

#[tokio::test]
async fn messages_of_a_tag_are_listed_and_the_search_is_saved_under_a_name_on_postgres() {
    messages_of_a_tag_are_listed_and_the_search_is_saved_under_a_name(DevService::start_on_postgres()).await;
}

async fn messages_of_a_tag_are_listed_and_the_search_is_saved_under_a_name(service: DevService) {
    let tag = "a \"b\\ tag:c";
    service.send(json!({ "subject": "Tagged so", "tag": tag })).await;
    service.send(json!({ "subject": "Tagged otherwise", "tag": "c" })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.until_text("Tagged otherwise").await;
    browser.fill("input[name=tag]", tag).await;
    browser.click("form.search button").await;
    browser.until_text("Keep this search").await;
    let page = browser.page_text().await;
    assert!(page.contains("Tagged so") && !page.contains("Tagged otherwise"), "{page}");
    browser.fill(".filters input[name=name]", "Mail of <b>shop</b>").await;
    browser.click(".filters > form button").await;
    browser.until(".filters .chip a[aria-current]").await;
    assert_eq!(browser.text(".filters .chip a").await, "Mail of <b>shop</b>");
    browser.screenshot(&pictures().join("messages-tag.png")).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.click(".filters .chip a").await;
    browser.until("a[aria-current]").await;
    browser.until_text("Tagged so").await;
    assert!(!browser.page_text().await.contains("Tagged otherwise"));
    // The tag in a row leads to the same list, and “Erase all that match” erases only messages of that list.
    browser.click("a.tag").await;
    browser.until_text("Erase all that match").await;
    browser.click("details.below summary").await;
    browser.click("button[value=erase]").await;
    browser.until_text("Erase 1 message").await;
}

#[tokio::test]
async fn a_message_is_found_by_its_id_token_and_message_id_on_sqlite() {
    a_message_is_found_by_its_id_token_and_message_id(DevService::start()).await;
}

#[tokio::test]
async fn a_message_is_found_by_its_id_token_and_message_id_on_postgres() {
    a_message_is_found_by_its_id_token_and_message_id(DevService::start_on_postgres()).await;
}

async fn a_message_is_found_by_its_id_token_and_message_id(service: DevService) {
    let id = service.send(json!({ "subject": "The one" })).await;
    let other = service
        .send(json!({ "subject": format!("About {id}0"), "to": ["a@example.net", "b@example.net"] }))
        .await;
    let key = service.ready("api_key");
    let search = json!({ "q": format!("id:{id}") });
    let answer =
        service.client.post_json("/api/v1/messages/search", Some(&key), &search).await.unwrap().json();
    let found = &answer["data"]["items"];
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{answer}");
    let (token, message_id) = (found[0]["token"].as_str().unwrap(), found[0]["message_id"].as_str().unwrap());
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages"));
    for name in [id.to_string(), format!(" {token} "), format!("<{message_id}>")] {
        browser.open(&list).await;
        browser.fill("input[name=q]", &name).await;
        browser.click("form.search button").await;
        browser.until("h1").await;
        assert_eq!(browser.url().await, format!("{list}/{id}"), "{name}");
    }
    let cookie = service.sign_in().await;
    let rows = async |q: &str| {
        let reply = service.get(&format!("/servers/{server}/messages?q={q}"), &cookie).await;
        (reply.status, reply.text().matches("data-label=\"Subject\"").count())
    };
    // After a search key, an id, token or Message-ID is a condition like any other.
    for name in [format!("token%3A{token}"), format!("message_id%3A{message_id}"), format!("id%3A{id}")] {
        assert_eq!(rows(&name).await, (200, 1), "{name}");
        assert_eq!(rows(&format!("{name}+status%3Aheld")).await, (200, 0), "{name}");
        assert_eq!(rows(&format!("-{name}")).await, (200, 2), "{name}");
    }
    // A number that is not a message's id is searched as text; a Message-ID of two messages lists both.
    assert_eq!(rows(&format!("{id}0")).await, (200, 2));
    let search = json!({ "q": format!("id:{other}") });
    let answer =
        service.client.post_json("/api/v1/messages/search", Some(&key), &search).await.unwrap().json();
    let message_id = answer["data"]["items"][0]["message_id"].as_str().unwrap();
    assert_eq!(rows(&format!("%3C{message_id}%3E")).await, (200, 2));
    assert_eq!(rows("Abcdefghijklmno1").await, (200, 0));
}

/// A PNG image of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63,
    0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae,
    0x42, 0x60, 0x82,
];

#[tokio::test]
async fn pictures_are_loaded_only_when_asked_for_and_by_the_service() {
    let remote = WebhookCatcher::start();
    let picture = |content_type: &str, bytes: &[u8]| {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        CatcherAnswer::Full(200, headers, bytes.to_vec())
    };
    remote.answer("/good.png", picture("image/png", PNG));
    remote.answer("/page", picture("text/html", b"<script>1</script>"));
    remote.answer("/moved.png", CatcherAnswer::redirect("http://127.0.0.1:1/"));
    let image = |path: &str| format!("<img src=\"{}\">", remote.url(path));
    let html = format!(
        "<h1>Hello</h1>{}{}{}<img src=\"http://10.0.0.1/inside.png\"><img src=\"file:///etc/passwd\">",
        image("/good.png"),
        image("/page"),
        image("/moved.png")
    );
    let service = DevService::start();
    let id = service.send(json!({ "html_body": html })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&service.url_of(&format!("{message}?view=preview"))).await;
    browser.until("iframe.preview").await;
    assert_eq!(remote.connections(), 0, "nothing is loaded unasked");
    let cookie = service.sign_in().await;
    let preview = service.get(&format!("{message}/preview?images=1"), &cookie).await;
    let text = preview.text();
    assert_eq!(text.matches("data:image/png;base64,").count(), 1, "{text}");
    assert!(text.contains(&remote.url("/page")) && text.contains("http://10.0.0.1/inside.png"), "{text}");
    let policy = preview.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox; default-src 'none'; img-src data:"), "{policy}");
    let seen = remote.received();
    assert!(seen.iter().all(|request| request.header("cookie").is_none()), "{seen:?}");
    browser.click(".toggles a[href*='images=1']").await;
    browser.until_text("Pictures were loaded by the service").await;
    browser.click(".toggles a[href*='dark=1']").await;
    browser.until(".toggles a[href*='dark=1'][aria-current]").await;
    browser.screenshot(&pictures().join("preview-dark.png")).await;
    browser.click(".toggles a[href*='phone=1']").await;
    browser.until("iframe.preview.narrow").await;
    let dark = service.get(&format!("{message}/preview?dark=1"), &cookie).await.text();
    assert!(dark.contains("invert(1)"), "{dark}");
}

#[tokio::test]
async fn events_of_a_message_are_shown_with_their_webhook_attempts() {
    let receiver = WebhookCatcher::start();
    receiver.answer("/hook", CatcherAnswer::Status(500));
    let service = DevService::start();
    let key = service.ready("api_key");
    let hook = json!({ "url": receiver.url("/hook"), "events": "all" });
    service.client.post_json("/api/v1/webhooks/create", Some(&key), &hook).await.unwrap();
    let id = service.send(json!({ "to": ["missing@sim.postroad.test"] })).await;
    service.until_status(id, "HardFail").await;
    receiver.wait_for("/hook", 2);
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = service.url_of(&format!("/servers/{server}/messages/{id}"));
    browser.open(&message).await;
    browser.click(".tabs a[href='?view=events']").await;
    // The attempts appear by themselves once they are stored.
    browser.until(".event:nth-of-type(2) .rows .badge.bad").await;
    let text = browser.page_text().await;
    for part in ["message.accepted", "message.bounced", "bad_mailbox", "/hook", "500"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(browser.count(".event").await, 2, "{text}");
    browser.click(".event .rows a").await;
    browser.until_text("Attempts").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn authentication_of_a_message_is_explained() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let start = service.get("/", &cookie).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    let id = service.send(json!({})).await;
    let page = service.get(&format!("{server}/messages/{id}?view=headers"), &cookie).await.text();
    for part in [
        "Signed for d=example.test with the selector pr-",
        "The return-path record of example.test aligns it.",
        "aligned method is enough.",
        "<code>message-id</code>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// The page keeps showing the key that signed, even after another key has replaced it.
#[tokio::test]
async fn a_delivered_message_names_the_key_that_signed_it() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let id = service.send(json!({})).await;
    service.until_status(id, "Sent").await;
    let message = format!("{server}/messages/{id}");
    let timeline = service.get(&message, &cookie).await.text();
    let signed_with =
        timeline.split("<dt>Signed with</dt><dd>").nth(1).expect("a fact").split('<').next().unwrap();
    let (old, _) = signed_with.split_once("._domainkey.example.test").expect("a key of the domain");
    let explained = async || service.get(&format!("{message}?view=headers"), &cookie).await.text();
    let text = format!("This message was signed for d=example.test with the selector {old}.");
    assert!(explained().await.contains(&text), "{}", explained().await);
    assert_eq!(
        service.submit(&format!("{server}/domains/example.test/rotate_dkim"), &cookie, "").await.status,
        303
    );
    assert_eq!(service.post("/dev/dns/example.test", &[], "").await.status, 200);
    let key = service.ready("api_key");
    eventually(async || {
        call(&service, "x-server-api-key", &key, "domains/verify", &json!({ "name": "example.test" })).await;
        let page = explained().await;
        if page.contains("Mail of example.test is signed with the selector") { Ok(()) } else { Err(page) }
    })
    .await;
    assert!(explained().await.contains(&text), "{}", explained().await);
    let newer = service.send(json!({})).await;
    service.until_status(newer, "Sent").await;
    let page = service.get(&format!("{server}/messages/{newer}"), &cookie).await.text();
    assert!(page.contains("<dt>Signed with</dt>") && !page.contains(&format!("{old}._domainkey")), "{page}");
}

#[tokio::test]
async fn messages_are_filtered_by_the_domain_of_the_sender() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages"));
    service.send(json!({ "subject": "From the first" })).await;
    browser.open(&list).await;
    browser.until_text("From the first").await;
    assert!(!browser.has("select[name=domain]").await, "one domain is nothing to choose from");
    browser.open(&service.url_of(&format!("/servers/{server}/domains"))).await;
    browser.fill("input[name=name]", "second.test").await;
    browser.click("form.stack > button").await;
    browser.until_text("_domainkey.second.test").await;
    assert_eq!(service.post("/dev/dns/second.test", &[], "").await.status, 200);
    browser.click("form[action$='/verify'] button").await;
    browser.until(".state .badge.good").await;
    service.send(json!({ "subject": "From the second", "from": "shop@second.test" })).await;
    browser.open(&list).await;
    browser.until_text("From the second").await;
    browser.run("document.querySelector('[name=domain]').value = 'second.test'; return 1").await;
    browser.click(".search button").await;
    browser.until("option[value=''] ~ option[selected]").await;
    let text = browser.page_text().await;
    assert!(text.contains("From the second") && !text.contains("From the first"), "{text}");
    let export = browser.attribute("a[href*='/export']", "href").await.unwrap();
    let csv = service.get(&export, &service.sign_in().await).await.text();
    assert!(csv.contains("From the second") && !csv.contains("From the first"), "{csv}");
}

#[tokio::test]
async fn timeline_and_summary_show_the_same_message_size_and_the_advice_links_to_suppressions() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let id = service.send(json!({ "to": ["missing@sim.postroad.test"] })).await;
    service.until_status(id, "HardFail").await;
    let page = service.get(&format!("{server}/messages/{id}"), &cookie).await.text();
    let (_, rest) = page.split_once("<dt>Size</dt><dd>").unwrap();
    let size: String = rest.chars().take_while(char::is_ascii_digit).collect();
    assert!(page.contains(&format!(": {size} bytes")), "{size}: {page}");
    assert!(page.contains(&format!("<a href=\"{server}/suppressions\">Suppressions</a>")), "{page}");
}

#[tokio::test]
async fn ticked_delayed_messages_are_retried_and_ticked_scheduled_messages_are_sent_now() {
    let peer = SmtpPeer::start(Script::new().on(Stage::RcptTo, Answer::reply("452 4.2.2 Mailbox full")));
    let service =
        DevService::start_with(None, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())]);
    let delayed = service.send(json!({ "subject": "Slow one" })).await;
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let scheduled = service.send(json!({ "subject": "Later one", "send_at": tomorrow })).await;
    service.until_status(delayed, "SoftFail").await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages"));
    browser.open(&format!("{list}?status=SoftFail")).await;
    browser.click("input[name=id]").await;
    browser.click("button[value=retry]").await;
    // The message's regular retry may be under way at this moment; then the text is "Done, but not for all".
    browser.until_text("Done").await;
    assert!(browser.url().await.contains("status=SoftFail"), "the list stays as it was");
    let (key, wanted) = (service.ready("api_key"), json!({ "id": delayed }));
    eventually_within(Duration::from_secs(20), async || {
        let answer =
            service.client.post_json("/api/v1/messages/deliveries", Some(&key), &wanted).await.unwrap();
        let is_tried_again = answer.json()["data"].as_array().unwrap().len() > 1;
        if is_tried_again { Ok(()) } else { Err(format!("no second attempt: {}", answer.text())) }
    })
    .await;
    browser.open(&format!("{list}?tab=scheduled")).await;
    browser.click("input[name=id]").await;
    browser.click("button[value=send_now]").await;
    browser.until_text("Done. The results are in the list.").await;
    service.until_status(scheduled, "SoftFail").await;
    // The delayed message's page says why it is delayed, and which rule classified the reply.
    browser.open(&format!("{list}/{delayed}")).await;
    browser.click(".timeline details summary").await;
    browser.until_text("The reply was taken as").await;
    assert!(browser.page_text().await.contains("by the rule"), "{}", browser.page_text().await);
}

#[tokio::test]
async fn messages_of_a_search_are_erased_after_confirmation() {
    let service = DevService::start();
    for (tag, subject) in [("old", "Private one"), ("new", "Kept one")] {
        let id = service.send(json!({ "tag": tag, "subject": subject })).await;
        service.until_status(id, "Sent").await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    assert!(!browser.has("button[value=erase]").await, "not without a search");
    browser.open(&service.url_of(&format!("/servers/{server}/messages?q=tag%3Aold"))).await;
    browser.click("main > details summary").await;
    browser.click("button[value=erase]").await;
    browser.until_text("Erase 1 message").await;
    browser.click("form.actions button").await;
    browser.until_text("1 of 1").await;
    let cookie = service.sign_in().await;
    let list = service.get(&format!("/servers/{server}/messages"), &cookie).await.text();
    assert!(!list.contains("Private one") && list.contains("Kept one"), "{list}");
    let all = service.submit(&format!("/servers/{server}/messages/bulk"), &cookie, "act=erase&all=1").await;
    assert_eq!(all.status, 422, "{}", all.text());
}

#[tokio::test]
async fn a_job_on_all_messages_of_a_search_is_started_after_confirmation() {
    let service = DevService::start();
    let development = SecondServer::create_development(&service).await;
    for number in 0..3 {
        development.send(&service, json!({ "subject": format!("Held {number}"), "tag": "news" })).await;
    }
    let browser = service.signed_in_browser().await;
    browser.set_scripts(false).await;
    let list = service.url_of(&format!("/servers/{}/messages?tab=held&q=tag%3Anews", development.id));
    browser.open(&list).await;
    browser.click("input[name=all]").await;
    browser.click("button[value=release]").await;
    browser.until_text("Release 3 messages").await;
    browser.screenshot(&pictures().join("job-question-held.png")).await;
    let cookie = service.sign_in().await;
    let held = service.get(&format!("/servers/{}/messages?tab=held", development.id), &cookie).await.text();
    assert_eq!(held.matches(">Held ").count(), 3, "nothing happened yet: {held}");
    browser.click("form.actions button").await;
    browser.until_text("3 of 3").await;
    let jobs = service.get(&format!("/servers/{}/jobs", development.id), &cookie).await.text();
    assert!(jobs.contains("status:Held tag:news") && jobs.contains("3 of 3"), "{jobs}");
    assert!(!jobs.contains("rel=\"next\""), "one page is enough: {jobs}");
    let form = "tab=held&q=tag%3Anothing&act=cancel_hold&all=1";
    let page =
        service.submit(&format!("/servers/{}/messages/bulk", development.id), &cookie, form).await.text();
    assert!(page.contains("No message matches"), "{page}");
}

#[tokio::test]
async fn scheduled_messages_that_match_a_search_are_cancelled_on_sqlite() {
    scheduled_messages_that_match_a_search_are_cancelled(DevService::start()).await;
}

#[tokio::test]
async fn scheduled_messages_that_match_a_search_are_cancelled_on_postgres() {
    scheduled_messages_that_match_a_search_are_cancelled(DevService::start_on_postgres()).await;
}

async fn scheduled_messages_that_match_a_search_are_cancelled(service: DevService) {
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let mut news = Vec::new();
    // More messages than a page lists.
    for number in 0..60 {
        let subject = format!("News {number}");
        news.push(service.send(json!({ "subject": subject, "tag": "news", "send_at": tomorrow })).await);
    }
    let other = service.send(json!({ "subject": "Reminder", "tag": "reminder", "send_at": tomorrow })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages?tab=scheduled&q=tag%3Anews"))).await;
    browser.until_text("News 59").await;
    // There is no check box for the whole search: of the actions on scheduled messages, only cancelling can change all
    // messages of a search.
    assert!(!browser.has("input[name=all]").await);
    browser.click("button[value=cancel_all]").await;
    browser.until_text("Cancel 60 messages").await;
    browser.screenshot(&pictures().join("job-question.png")).await;
    service.until_status(news[0], "Scheduled").await;
    browser.click("form.actions button").await;
    browser.until_text("60 of 60").await;
    let text = browser.page_text().await;
    assert!(
        text.contains("Cancel scheduled messages") && text.contains("status:Scheduled tag:news"),
        "{text}"
    );
    browser.until_text("Done").await;
    browser.screenshot(&pictures().join("job.png")).await;
    for id in [news[0], news[59]] {
        service.until_status(id, "Cancelled").await;
    }
    service.until_status(other, "Scheduled").await;
    // Ticked messages can be sent now.
    browser.open(&service.url_of(&format!("/servers/{server}/messages?tab=scheduled"))).await;
    browser.until_text("Reminder").await;
    browser.click("input[name=id]").await;
    browser.click("button[value=send_now]").await;
    service.until_status(other, "Sent").await;
    // Both actions are in the audit log.
    let log = service.get("/account/audit", &service.sign_in().await).await.text();
    assert!(log.contains("send/cancel") && log.contains("send/reschedule"), "{log}");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn links_in_a_preview_show_their_target_and_lead_nowhere() {
    let service = DevService::start();
    let link = |target: &str| {
        format!(
            "<a href=\"https://shop.example/order\"{target} style=\"display: block; height: 900px\">Your order</a>"
        )
    };
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let cookie = service.sign_in().await;
    for target in ["", " target=\"_blank\"", " target=\"_top\""] {
        let id = service.send(json!({ "html_body": link(target) })).await;
        service.until_status(id, "Sent").await;
        let path = format!("/servers/{server}/messages/{id}");
        let preview = service.get(&format!("{path}/preview"), &cookie).await.text();
        assert!(
            preview.contains("title=\"https://shop.example/order\"") && !preview.contains("href=\"http"),
            "{preview}"
        );
        browser.open(&service.url_of(&format!("{path}?view=preview"))).await;
        browser.until("iframe.preview").await;
        browser.click("iframe.preview").await;
        // A blocked navigation would be on the console, and replace the mail.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(browser.console().await, [""; 0], "{target}");
        assert!(browser.url().await.ends_with(&format!("{path}?view=preview")));
    }
    browser.screenshot(&pictures().join("preview-link.png")).await;
}

#[tokio::test]
async fn a_check_box_ticks_all_messages_of_the_page() {
    let service = DevService::start();
    let development = SecondServer::create_development(&service).await;
    for number in 0..3 {
        development.send(&service, json!({ "subject": format!("Held {number}") })).await;
    }
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&format!("/servers/{}/messages?tab=held", development.id))).await;
    browser.until_text("Held 2").await;
    let all = "input[aria-label='Tick all on this page']";
    browser.click(all).await;
    assert_eq!(browser.count("input[name=id]:checked").await, 3);
    browser.screenshot(&pictures().join("messages-ticked.png")).await;
    // With one message unticked, the box is neither ticked nor empty.
    browser.click("tbody tr:first-child input[name=id]").await;
    assert_eq!(browser.count("input[name=id]:checked").await, 2);
    assert!(browser.has(&format!("{all}:indeterminate")).await);
    browser.click(all).await;
    assert_eq!(browser.count("input[name=id]:checked").await, 3);
    browser.click("button[value=cancel_hold]").await;
    browser.until_text("Nothing is held").await;
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn the_search_field_suggests_domains_and_templates() {
    let service = DevService::start();
    let key = service.ready("api_key");
    for new in [
        json!({ "name": "Welcome", "alias": "welcome-mail", "subject": "x", "html_body": "<p>Hi</p>" }),
        json!({ "name": "Frame", "alias": "frame", "type": "layout", "html_body": "{{ content }}" }),
    ] {
        call(&service, "x-server-api-key", &key, "templates/create", &new).await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    let suggestions = async |word: &str| {
        browser.fill("input[name=q]", word).await;
        browser.until("#suggestions li").await;
        browser.text("#suggestions").await
    };
    let keys = suggestions("d").await;
    assert!(keys.contains("domain:") && !keys.contains("example.test"), "{keys}");
    assert!(suggestions("domain:").await.contains("domain:example.test"));
    let templates = suggestions("template:").await;
    assert!(templates.contains("template:welcome-mail") && !templates.contains("frame"), "{templates}");
    browser.screenshot(&pictures().join("messages-suggested-template.png")).await;
    browser.press("\u{e015}\u{e007}").await;
    let typed = browser.run("return document.querySelector('[name=q]').value.trim()").await;
    assert_eq!(typed, "template:welcome-mail");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn a_tag_that_ends_with_a_space_leads_to_its_messages() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let list = format!("{}/messages", service.server_path(&cookie).await);
    for tag in ["news ", "news"] {
        service.send(json!({ "tag": tag, "subject": format!("Tagged {}", tag.len()) })).await;
    }
    let page = service.get(&list, &cookie).await.text();
    let links: Vec<String> = page
        .split("href=\"")
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| link.contains("/messages?") && link.contains("news"))
        .map(|link| link.replace("&amp;", "&").replace("&#38;", "&"))
        .collect();
    assert_eq!(links.len(), 2, "{page}");
    for link in links {
        let found = service.get(&link, &cookie).await.text();
        let count = found.matches(">Tagged ").count();
        assert_eq!(count, 1, "{link}: {found}");
    }
}
