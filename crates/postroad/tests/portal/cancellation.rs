//! Cancels queued and delayed messages: one on its page, or the ticked ones of a list. A message that is being sent is
//! not cancelled.

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{Database, SmtpPeer, eventually};
use serde_json::json;

use crate::service::{DevService, pictures, server_of};

fn start_with_smarthost(peer: &SmtpPeer, database: Option<Database>) -> DevService {
    DevService::start_with(database, &[("POSTROAD_DELIVERY_SMARTHOST", &peer.address().to_string())])
}

#[tokio::test]
async fn delayed_messages_are_cancelled_on_sqlite() {
    delayed_messages_are_cancelled(None).await;
}

#[tokio::test]
async fn delayed_messages_are_cancelled_on_postgres() {
    delayed_messages_are_cancelled(Some(Database::create())).await;
}

async fn delayed_messages_are_cancelled(database: Option<Database>) {
    let peer = SmtpPeer::start(Script::new().on(Stage::RcptTo, Answer::reply("452 4.2.2 Mailbox full")));
    let service = start_with_smarthost(&peer, database);
    let mut delayed = Vec::new();
    for number in 0..4 {
        let id = service.send(json!({ "subject": format!("Slow {number}") })).await;
        service.until_status(id, "SoftFail").await;
        delayed.push(id);
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/messages"));
    browser.open(&format!("{list}/{}", delayed[0])).await;
    browser.screenshot(&pictures().join("message-delayed.png")).await;
    browser.click("button[value=cancel_queued]").await;
    browser.accept_confirmation().await;
    browser.until_text("Cancelled: it will not be sent.").await;
    service.until_status(delayed[0], "Cancelled").await;
    assert!(!browser.has("button[value=cancel_queued]").await, "it does not wait any more");

    browser.open(&format!("{list}?status=SoftFail")).await;
    browser.until_text("Slow 3").await;
    for id in &delayed[1..3] {
        browser.click(&format!("input[name=id][value='{id}']")).await;
    }
    browser.screenshot(&pictures().join("messages-delayed.png")).await;
    browser.click("button[value=cancel_queued]").await;
    browser.until_text("Done").await;
    service.until_status(delayed[1], "Cancelled").await;
    service.until_status(delayed[2], "Cancelled").await;
    service.until_status(delayed[3], "SoftFail").await;

    // A second cancellation is refused, and so is cancelling a whole search.
    let cookie = service.sign_in().await;
    let messages = format!("/servers/{server}/messages");
    let again = service.submit(&format!("{messages}/{}/act", delayed[0]), &cookie, "act=cancel_queued").await;
    assert_eq!(again.status, 422);
    assert!(again.text().contains("The message is not waiting for an attempt."), "{}", again.text());
    let unknown = service.submit(&format!("{messages}/1/act"), &cookie, "act=cancel_queued").await;
    assert_eq!(unknown.status, 404);
    let all = format!("status=SoftFail&act=cancel_queued&all=1&id={}", delayed[3]);
    assert_eq!(service.submit(&format!("{messages}/bulk"), &cookie, &all).await.status, 422);
    service.until_status(delayed[3], "SoftFail").await;

    let log = service.get("/account/audit", &cookie).await.text();
    assert_eq!(log.matches("messages/cancel<").count(), 3, "one entry for each cancelled message: {log}");
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn a_message_that_is_being_sent_is_not_cancelled_on_sqlite() {
    a_message_that_is_being_sent_is_not_cancelled(None).await;
}

#[tokio::test]
async fn a_message_that_is_being_sent_is_not_cancelled_on_postgres() {
    a_message_that_is_being_sent_is_not_cancelled(Some(Database::create())).await;
}

async fn a_message_that_is_being_sent_is_not_cancelled(database: Option<Database>) {
    // The receiving server has the whole message, and does not reply.
    let peer = SmtpPeer::start(Script::new().on(Stage::Message, Answer::stall()));
    let service = start_with_smarthost(&peer, database);
    let id = service.send(json!({ "subject": "On its way" })).await;
    eventually(async || match peer.messages().len() {
        1 => Ok(()),
        count => Err(count),
    })
    .await;
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let late = service.submit(&format!("{server}/messages/{id}/act"), &cookie, "act=cancel_queued").await;
    assert_eq!(late.status, 422);
    assert!(late.text().contains("is being sent at this moment: it was not cancelled"), "{}", late.text());
    let ticked = format!("status=Pending&act=cancel_queued&id={id}");
    let ticked = service.submit(&format!("{server}/messages/bulk"), &cookie, &ticked).await;
    let list = ticked.headers["location"].to_str().unwrap().to_owned();
    let list = service.get(&list, &cookie).await.text();
    assert!(list.contains("some were being sent at that moment"), "{list}");
    service.until_status(id, "Pending").await;
}
