//! Pages that update themselves, while somebody reads and works in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{CatcherAnswer, SmtpPeer, WebhookCatcher, eventually, eventually_within};
use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, pictures, server_of};

/// Starts a mail host that refuses all recipients temporarily until the test sets the returned flag.
fn start_delaying_host() -> (SmtpPeer, Arc<AtomicBool>) {
    let takes_mail = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&takes_mail);
    let script = Script::new().when(move |context| {
        let is_refused = context.stage == Stage::RcptTo && !flag.load(Ordering::SeqCst);
        is_refused.then(|| Answer::reply("452 4.2.2 Mailbox full"))
    });
    (SmtpPeer::start(script), takes_mail)
}

#[tokio::test]
async fn an_open_detail_stays_open_when_the_page_updates_itself() {
    let (peer, takes_mail) = start_delaying_host();
    let service =
        DevService::start_with(None, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())]);
    let id = service.send(json!({})).await;
    service.until_status(id, "SoftFail").await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&service.url_of(&message)).await;
    for kind in ["why", "smtp"] {
        browser.click(&format!("details[data-key^={kind}] summary")).await;
    }
    takes_mail.store(true, Ordering::SeqCst);
    let cookie = service.sign_in().await;
    assert_eq!(service.submit(&format!("{message}/act"), &cookie, "act=retry").await.status, 303);
    browser.until(".head .badge.good").await;
    browser.until_text("Delivered").await;
    for kind in ["why", "smtp"] {
        assert!(browser.has(&format!("details[data-key^={kind}][open]")).await, "{kind}");
    }
    browser.screenshot(&pictures().join("live-detail.png")).await;
    assert_eq!(browser.console().await, [""; 0]);
}

/// Typed text stays; changes that happened meanwhile appear when the field loses the focus.
#[tokio::test]
async fn an_update_waits_while_somebody_types() {
    let service = DevService::start();
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    let id = service.send(json!({ "send_at": tomorrow })).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&service.url_of(&message)).await;
    browser.click("details[data-key=reschedule] summary").await;
    browser.run("document.querySelector('[data-moment]').focus(); return 1").await;
    let cookie = service.sign_in().await;
    assert_eq!(service.submit(&format!("{message}/act"), &cookie, "act=cancel").await.status, 303);
    service.until_status(id, "Cancelled").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(browser.has("details[data-key=reschedule][open]").await, "the form is still there");
    browser.run("document.activeElement.blur(); return 1").await;
    browser.until_text("Cancelled").await;
    assert!(!browser.has("details[data-key=reschedule]").await);
}

#[tokio::test]
async fn verification_of_a_domain_appears_by_itself_while_a_copy_button_has_the_focus() {
    let service = DevService::start();
    let key = service.ready("account_api_key");
    let domain = json!({ "name": "common.example" });
    call(&service, "x-account-api-key", &key, "domains/create", &domain).await;
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of("/account/domains/common.example")).await;
    browser.until("button.copy").await;
    browser.click("button.copy").await;
    assert!(!browser.has("section .badge.good").await);
    assert_eq!(service.post("/dev/dns/common.example", &[], "").await.status, 200);
    eventually(async || {
        let checked = call(&service, "x-account-api-key", &key, "domains/verify", &domain).await;
        if checked["verified"] == true { Ok(()) } else { Err(checked) }
    })
    .await;
    // Nobody clicks, and pages of the account have no event stream.
    eventually_within(Duration::from_secs(25), async || {
        let is_shown = browser.has("section .badge.good").await;
        if is_shown { Ok(()) } else { Err(format!("no verification on: {}", browser.page_text().await)) }
    })
    .await;
    assert!(browser.has("button.copy:focus").await, "the focus stays where it was");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn an_update_of_the_page_does_not_load_the_pictures_of_a_preview_again() {
    let remote = WebhookCatcher::start();
    let picture = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 20]].concat();
    let headers = vec![("content-type".to_owned(), "image/png".to_owned())];
    remote.answer("/p.png", CatcherAnswer::Full(200, headers, picture));
    let (peer, takes_mail) = start_delaying_host();
    let service =
        DevService::start_with(None, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())]);
    let html = format!("<p>Hello</p><img src=\"{}\">", remote.url("/p.png"));
    let id = service.send(json!({ "html_body": html })).await;
    service.until_status(id, "SoftFail").await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let message = format!("/servers/{server}/messages/{id}");
    browser.open(&service.url_of(&format!("{message}?view=preview&images=1"))).await;
    remote.wait_for("/p.png", 1);
    takes_mail.store(true, Ordering::SeqCst);
    let cookie = service.sign_in().await;
    assert_eq!(service.submit(&format!("{message}/act"), &cookie, "act=retry").await.status, 303);
    browser.until(".head .badge.good").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(remote.received_at("/p.png").len(), 1, "once for one view");
}
