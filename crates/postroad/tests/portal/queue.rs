//! Queues of one server and of all servers: gates, reasons why messages wait, and retried or cancelled messages.

use postroad_testkit::eventually;
use serde_json::json;

use crate::roles::{call, join};
use crate::service::{DevService, SecondServer, pictures, server_of};

#[tokio::test]
async fn sending_is_stopped_and_resumed_on_sqlite() {
    sending_is_stopped_and_resumed(DevService::start()).await;
}

#[tokio::test]
async fn sending_is_stopped_and_resumed_on_postgres() {
    sending_is_stopped_and_resumed(DevService::start_on_postgres()).await;
}

async fn sending_is_stopped_and_resumed(service: DevService) {
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let queue = service.url_of(&format!("/servers/{server}/queue"));
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
    let id = service.send(json!({ "subject": "It waits" })).await;
    browser.until_text("ann@example.net").await;
    browser.until_text("It waits because").await;
    assert!(browser.text("#queue tbody tr:last-child").await.contains("the shop is being moved"));
    let message =
        service.get(&format!("/servers/{server}/messages/{id}"), &service.sign_in().await).await.text();
    assert!(message.contains("id=\"waits\">It waits because"), "its page says so too: {message}");
    browser.screenshot(&pictures().join("queue-stopped.png")).await;
    // The overview of the server says so too, and links to the queue.
    browser.open(&service.url_of(&format!("/servers/{server}"))).await;
    browser.until_text("Sending is stopped or slowed by a gate: the shop is being moved").await;
    browser.screenshot(&pictures().join("overview-problems.png")).await;
    browser.click(".troubles a").await;
    browser.click("form[action$='/queue/resume'] button").await;
    browser.until_text("Lifted").await;
    service.until_status(id, "Sent").await;
    browser.until_text("Nothing waits").await;
    // Both changes are in the audit log.
    browser.open(&service.url_of("/account/audit")).await;
    browser.until_text("queue/suspend").await;
    assert!(browser.page_text().await.contains("queue/resume"));
}

#[tokio::test]
async fn waiting_mail_of_all_servers_is_found_retried_and_cancelled_on_sqlite() {
    waiting_mail_of_all_servers_is_found_retried_and_cancelled(DevService::start()).await;
}

#[tokio::test]
async fn waiting_mail_of_all_servers_is_found_retried_and_cancelled_on_postgres() {
    waiting_mail_of_all_servers_is_found_retried_and_cancelled(DevService::start_on_postgres()).await;
}

async fn waiting_mail_of_all_servers_is_found_retried_and_cancelled(service: DevService) {
    let browser = service.signed_in_browser().await;
    let own = server_of(&browser).await;
    let other = SecondServer::create_live(&service).await;
    browser.open(&service.url_of("/operator/queue")).await;
    browser.until_text("Nothing waits on any server").await;
    let cookie = service.sign_in().await;
    let gate = service.submit("/operator/suspend", &cookie, "scope=everything&reason=moving").await;
    assert_eq!(gate.status, 303, "{}", gate.text());
    let first = service.send(json!({ "to": ["ann@one.example"] })).await;
    let second = other.send(&service, json!({ "to": ["bob@two.example"] })).await;
    // The page updates itself, without a reload.
    browser.until_text("ann@one.example").await;
    browser.until_text("bob@two.example").await;
    let row = browser.text("#queue tbody tr:last-child").await;
    for part in ["staging", "moving", "Queued"] {
        assert!(row.contains(part), "{part}: {row}");
    }
    browser.screenshot(&pictures().join("operator-queue.png")).await;
    // Only one domain, by the link on the operator's first page.
    browser.open(&service.url_of("/operator")).await;
    browser.click("a[href='/operator/queue?domain=two.example']").await;
    browser.until_text("bob@two.example").await;
    assert!(!browser.page_text().await.contains("ann@one.example"));
    browser.open(&service.url_of("/operator/queue?domain=three.example")).await;
    browser.until_text("Nothing waits for three.example").await;
    browser.open(&service.url_of("/operator/queue?domain=no+domain")).await;
    browser.until_text("This is not a domain").await;
    browser.open(&service.url_of(&format!("/servers/{own}/queue?domain=two.example"))).await;
    browser.until_text("Nothing waits for two.example").await;
    browser.open(&service.url_of(&format!("/servers/{}/queue?domain=two.example", other.id))).await;
    browser.until_text("bob@two.example").await;
    // A message of any server is found by its id, its token and its Message-ID.
    let wanted = json!({ "id": second, "_expansions": ["status", "details"] });
    let message = call(&service, "x-server-api-key", &other.key, "messages/message", &wanted).await;
    let message_id = message["details"]["message_id"].as_str().unwrap().to_owned();
    for name in [second.to_string(), message["token"].as_str().unwrap().to_owned(), format!("<{message_id}>")]
    {
        browser.open(&service.url_of("/operator/queue")).await;
        browser.fill("input[name=message]", &name).await;
        browser.click("form[role=search] button").await;
        browser.until("#waits").await;
        assert!(browser.url().await.ends_with(&format!("/servers/{}/messages/{second}", other.id)), "{name}");
    }
    browser.open(&service.url_of("/operator/queue?message=nothing-has-this-name")).await;
    browser.until_text("No message of any server has this id").await;
    // One is cancelled, the other tried again; both changes are in the audit log.
    browser.open(&service.url_of("/operator/queue")).await;
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
    // The cancelled message no longer waits, so a retry that includes it is partial.
    let form = format!("act=retry&id={own}/{first}&id={}/{second}", other.id);
    let partial = service.submit("/operator/queue", &cookie, &form).await;
    let location = partial.header("location").unwrap_or_default().to_owned();
    browser.open(&service.url_of(&location)).await;
    browser.until_text("some were being sent or no longer waiting").await;
    let cancelled = call(&service, "x-server-api-key", &other.key, "messages/message", &wanted).await;
    assert_eq!(cancelled["status"]["status"], "Cancelled");
    let audit = service.get("/operator/audit", &cookie).await.text();
    for operation in ["messages/cancel", "messages/retry"] {
        assert!(audit.contains(operation), "{operation}: {audit}");
    }
    let lifted = service.submit("/operator/resume", &cookie, "scope=everything").await;
    assert_eq!(lifted.status, 303);
    service.until_status(first, "Sent").await;
}

#[tokio::test]
async fn a_waiting_message_says_who_stopped_it_on_sqlite() {
    a_waiting_message_says_who_stopped_it(DevService::start()).await;
}

#[tokio::test]
async fn a_waiting_message_says_who_stopped_it_on_postgres() {
    a_waiting_message_says_who_stopped_it(DevService::start_on_postgres()).await;
}

async fn a_waiting_message_says_who_stopped_it(service: DevService) {
    let operator = service.sign_in().await;
    let (_, admin) = join(&service, "anna", "admin").await;
    let server = service.server_path(&operator).await;
    let stoppers =
        [(&admin, "an administrator of the account", "account"), (&operator, "the operator", "operator")];
    for (cookie, who, by) in stoppers {
        let gate = service.submit(&format!("{server}/queue/suspend"), cookie, "reason=moving+house").await;
        assert_eq!(gate.status, 303, "{}", gate.text());
        let id = service.send(json!({ "subject": "It waits" })).await;
        let page = eventually(async || {
            let page = service.get(&format!("{server}/messages/{id}"), &admin).await.text();
            if page.contains("moving house") { Ok(page) } else { Err(page) }
        })
        .await;
        let wanted = format!("all mail of the server is stopped by {who}: moving house");
        assert!(page.contains(&wanted) && !page.contains("server:"), "{page}");
        let queue = service.get(&format!("{server}/queue"), &admin).await.text();
        assert!(queue.contains(&wanted) && queue.contains(&format!("set by {who}")), "{queue}");
        assert_eq!(service.queue_stats()["gates"][0]["by"], by);
        assert_eq!(service.submit(&format!("{server}/queue/resume"), &operator, "").await.status, 303);
        service.until_status(id, "Sent").await;
    }
}
