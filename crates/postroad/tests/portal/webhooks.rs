//! Webhooks: search (also of templates), attempts by result and day, replays, samples, and a changed format. Also erasure.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::{CatcherAnswer, WebhookCatcher};
use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, hidden_field, pictures, server_of};

#[tokio::test]
async fn webhooks_and_templates_are_found_by_a_part_of_their_name_on_sqlite() {
    webhooks_and_templates_are_found_by_a_part_of_their_name(DevService::start()).await;
}

#[tokio::test]
async fn webhooks_and_templates_are_found_by_a_part_of_their_name_on_postgres() {
    webhooks_and_templates_are_found_by_a_part_of_their_name(DevService::start_on_postgres()).await;
}

async fn webhooks_and_templates_are_found_by_a_part_of_their_name(service: DevService) {
    let key = service.ready("api_key");
    let call = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    for name in ["orders", "100%_alarms"] {
        let url = format!("https://hooks.example/{}", name.replace('%', "%25"));
        call("webhooks/create", json!({ "url": url })).await;
        let alias = format!("{}-mail", name.replace("100%_", ""));
        call("templates/create", json!({ "name": name, "alias": alias, "subject": "S", "plain_body": "T" }))
            .await;
    }
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let lists = [
        ("webhooks", "ORDERS", "hooks.example/orders", "hooks.example/100"),
        ("templates", "orders", ">orders</a>", ">100%_alarms</a>"),
        ("templates", "alarms-MAIL", ">100%_alarms</a>", ">orders</a>"),
        ("templates", "%25_", ">100%_alarms</a>", ">orders</a>"),
    ];
    for (list, q, found, other) in lists {
        let page = service.get(&format!("{server}/{list}?q={q}"), &cookie).await.text();
        assert!(page.contains(found) && !page.contains(other), "{list} {q}: {page}");
    }
    for list in ["webhooks", "templates"] {
        let page = service.get(&format!("{server}/{list}?q=nothing"), &cookie).await.text();
        assert!(page.contains("matches. <a href="), "{page}");
    }
}

#[tokio::test]
async fn samples_of_an_account_are_posted_a_few_at_a_time() {
    let receiver = WebhookCatcher::start();
    receiver.answer("/hook", CatcherAnswer::Late(Duration::from_millis(500)));
    let service = DevService::start();
    let new = json!({ "url": receiver.url("/hook"), "events": ["message.bounced"] });
    let hook = call(&service, "x-server-api-key", &service.ready("api_key"), "webhooks/create", &new).await;
    let cookie = service.sign_in().await;
    let path = format!("{}/webhooks/{}/test", service.server_path(&cookie).await, hook["id"]);
    let samples = (0..16).map(|_| service.submit(&path, &cookie, "event=message.opened"));
    for shown in futures_util::future::join_all(samples).await {
        assert_eq!(shown.status, 200, "{}", shown.text());
    }
    assert_eq!(receiver.received_at("/hook").len(), 16);
    // A connection is closed a moment after its sample is done.
    let open = receiver.open_connections_max();
    assert!((2..=8).contains(&open), "{open} connections at once");
}

#[tokio::test]
async fn attempts_are_filtered_and_settings_changed_on_sqlite() {
    attempts_are_filtered_and_settings_changed(DevService::start()).await;
}

#[tokio::test]
async fn attempts_are_filtered_and_settings_changed_on_postgres() {
    attempts_are_filtered_and_settings_changed(DevService::start_on_postgres()).await;
}

async fn attempts_are_filtered_and_settings_changed(service: DevService) {
    let receiver = WebhookCatcher::start();
    receiver.answer("/hook", CatcherAnswer::Status(500));
    let key = service.ready("api_key");
    let new = json!({ "url": receiver.url("/hook"), "events": ["message.delivered"] });
    let hook = call(&service, "x-server-api-key", &key, "webhooks/create", &new).await["id"].clone();
    let cookie = service.sign_in().await;
    let path = format!("{}/webhooks/{hook}", service.server_path(&cookie).await);
    // The receiver refuses the first sample and accepts the second.
    service.submit(&format!("{path}/test"), &cookie, "event=message.bounced").await;
    receiver.answer("/hook", CatcherAnswer::Status(200));
    service.submit(&format!("{path}/test"), &cookie, "event=message.opened").await;
    let has = async |query: &str| {
        let page = service.get(&format!("{path}?{query}"), &cookie).await.text();
        ["bounced", "opened"].map(|kind| page.contains(&format!("<td data-label=\"Event\">message.{kind}")))
    };
    assert_eq!(has("").await, [true, true]);
    assert_eq!(has("result=failed").await, [true, false]);
    assert_eq!(has("result=succeeded").await, [false, true]);
    assert_eq!(has("since=2026-01-01").await, [true, true]);
    assert_eq!(has("result=succeeded&until=2026-01-01").await, [false, false]);
    assert_eq!(has("result=succeeded&since=x").await, [false, true]);
    // Events between two times are replayed.
    let id = service.send(json!({})).await;
    service.until_status(id, "Sent").await;
    let posted = receiver.wait_for("/hook", 3).len();
    let minute = |at: postroad_model::Timestamp| at.to_rfc3339()[..16].replace(':', "%3A");
    let now = SystemClock.now();
    let (from, to) = (minute(now.minus(Duration::from_hours(2))), minute(now.plus(Duration::from_mins(2))));
    let form = format!("hours=1&from_utc={from}&to_utc={to}");
    let replayed = service.submit(&format!("{path}/replay"), &cookie, &form).await;
    assert_eq!(replayed.status, 303, "{}", replayed.text());
    receiver.wait_for("/hook", posted + 1);
    let form = format!("hours=1&from_utc={from}");
    assert_eq!(service.submit(&format!("{path}/replay"), &cookie, &form).await.status, 422);
    // One event is replayed, by the id that the page of events shows.
    let events =
        service.get(&format!("{}/events", path.split("/webhooks").next().unwrap()), &cookie).await.text();
    let mut ids = events.split("<br><small>").map(|rest| rest.split('<').next().unwrap());
    let event: i64 = ids.find_map(|id| id.parse().ok()).expect("there are events");
    for (id, status) in [(event.to_string(), 303), (format!("evt_{event}"), 303), ("x".to_owned(), 422)] {
        let replayed = service.submit(&format!("{path}/replay"), &cookie, &format!("event={id}")).await;
        assert_eq!(replayed.status, status, "{id}: {}", replayed.text());
    }
    // The format is changed. The same form, whose version is now old, is refused.
    let page = service.get(&path, &cookie).await.text();
    let version = hidden_field(&page, "version");
    let url = receiver.url("/hook").replace(':', "%3A").replace('/', "%2F");
    let form = format!("url={url}&format=postal&enabled=1&version={version}");
    assert_eq!(service.submit(&path, &cookie, &form).await.status, 303);
    assert!(service.get(&path, &cookie).await.text().contains("format postal"));
    let again = service.submit(&path, &cookie, &form).await;
    assert_eq!(again.status, 422, "{}", again.text());
    assert!(again.text().contains("Another change was made since"), "{}", again.text());
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&format!("{path}?result=failed"))).await;
    browser.until("#attempts .badge.bad").await;
    browser.screenshot(&pictures().join("webhook-attempts.png")).await;
}

#[tokio::test]
async fn a_webhook_is_created_disabled() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let webhooks = format!("{}/webhooks", service.server_path(&cookie).await);
    let form = "url=http%3A%2F%2F127.0.0.1%3A9%2Flater&disabled=1";
    let created = service.submit(&webhooks, &cookie, form).await;
    assert!(created.text().contains("<span class=\"badge off\">Disabled</span>"), "{}", created.text());
}

#[tokio::test]
async fn events_of_a_period_are_replayed_and_personal_data_is_erased() {
    let service = DevService::start();
    let receiver = WebhookCatcher::start();
    let key = service.ready("api_key");
    let hook = json!({ "url": receiver.url("/hook"), "events": ["message.delivered"] });
    service.client.post_json("/api/v1/webhooks/create", Some(&key), &hook).await.unwrap();
    let id = service.send(json!({ "to": ["eve@example.net"], "subject": "Private" })).await;
    service.until_status(id, "Sent").await;
    receiver.wait_for("/hook", 1);
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/webhooks"))).await;
    browser.click("table.rows a").await;
    browser.until_text("Post events again").await;
    browser.click("main > details summary").await;
    browser.click("main > details button").await;
    browser.until_text("The events of that time are posted again").await;
    receiver.wait_for("/hook", 2);
    // The page of a replay that stopped before its end says how many events were posted, and has a button to continue.
    let page = browser.url().await;
    let (page, _) = page.split_once('?').unwrap();
    let micros = |hours: u64| SystemClock.now().minus(Duration::from_hours(hours)).as_micros();
    let rest = format!("replay_since={}&replay_until={}&after=0&replayed=10000", micros(2), micros(0));
    browser.open(&format!("{page}?{rest}")).await;
    browser.until_text("10\u{202f}000 events of that time are posted again").await;
    browser.click("#replay button").await;
    browser.until_text("The events of that time are posted again").await;
    receiver.wait_for("/hook", 3);

    browser.open(&service.url_of(&format!("/servers/{server}/settings"))).await;
    browser.fill("form[action$='/erase'] input[name=address]", "eve@example.net").await;
    browser.click("form[action$='/erase'] button").await;
    browser.accept_confirmation().await;
    browser.until_text("Erase personal data").await;
    browser.until_text("Done").await;
    browser.until_text("is kept, also where it contains the address").await;
    let list = service.get(&format!("/servers/{server}/messages"), &service.sign_in().await).await.text();
    assert!(!list.contains("eve@example.net") && !list.contains("Private"), "{list}");
}
