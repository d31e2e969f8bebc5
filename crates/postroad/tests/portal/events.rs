//! Events of a server, newest first.

use std::collections::BTreeSet;

use serde_json::json;

use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn events_are_listed_and_filtered_on_sqlite() {
    events_are_listed_and_filtered(DevService::start()).await;
}

#[tokio::test]
async fn events_are_listed_and_filtered_on_postgres() {
    events_are_listed_and_filtered(DevService::start_on_postgres()).await;
}

async fn events_are_listed_and_filtered(service: DevService) {
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.press("gf").await;
    browser.until_text("Nothing happened yet").await;
    // A new event appears without a reload.
    let id = service.send(json!({ "subject": "It happened" })).await;
    service.until_status(id, "Sent").await;
    browser.until("#events .badge.good").await;
    let text = browser.text("#events").await;
    assert!(text.contains("ann@example.net") && text.contains("It happened"), "{text}");
    let at = |kind: &str| text.find(kind).unwrap_or_else(|| panic!("no {kind}: {text}"));
    assert!(at("message.delivered") < at("message.accepted"), "the newest is on top: {text}");
    browser.screenshot(&pictures().join("events-filled.png")).await;
    let cookie = service.sign_in().await;
    // The page of the message shows its number of attempts and its time to delivery.
    let message = service.get(&format!("/servers/{server}/messages/{id}?view=events"), &cookie).await.text();
    assert!(
        message.contains("<dt>Attempts</dt><dd>1</dd>") && message.contains("Delivered after"),
        "{message}"
    );
    let has = async |query: &str| {
        let page = service.get(&format!("/servers/{server}/events?{query}"), &cookie).await.text();
        ["accepted", "delivered"].map(|kind| page.contains(&format!("\">message.{kind}</span>")))
    };
    assert_eq!(has("kind=message.accepted").await, [true, false]);
    assert_eq!(has("kind=message.accepted&kind=message.delivered").await, [true, true]);
    assert_eq!(has("kind=message.bounced").await, [false, false]);
    assert_eq!(has("since=2026-01-01").await, [true, true]);
    assert_eq!(has("until=2026-01-01").await, [false, false]);
    // More events than a page lists.
    for _ in 0..26 {
        let id = service.send(json!({ "to": ["bob@example.net"] })).await;
        service.until_status(id, "Sent").await;
    }
    let all = service.get(&format!("/servers/{server}/events?kind=message.accepted"), &cookie).await.text();
    assert_eq!(event_ids(&all).len(), 27, "all on one page: {all}");
    assert!(all.contains("It happened") && !all.contains("?before="), "{all}");
    let id = service.send(json!({ "to": ["last@example.net"] })).await;
    service.until_status(id, "Sent").await;
    let first = service.get(&format!("/servers/{server}/events"), &cookie).await.text();
    assert!(first.contains("last@example.net") && !first.contains("It happened"), "{first}");
    let (_, link) = first.split_once("<a href=\"?before=").unwrap();
    let second = format!("/servers/{server}/events?before={}", link.split('"').next().unwrap());
    let second = service.get(&second, &cookie).await.text();
    assert!(second.contains("It happened") && !second.contains("last@example.net"), "{second}");
    assert!(!second.contains("rel=\"next\""), "the last page: {second}");
    // Two events of each of the 28 messages; no event is on both pages or on none.
    let (first, second) = (event_ids(&first), event_ids(&second));
    assert_eq!((first.len() + second.len(), first.union(&second).count()), (56, 56), "{first:?} {second:?}");
    assert!(first.first() > second.last(), "the newest are on the first page: {first:?} {second:?}");
}

/// Ids of the events on a page.
fn event_ids(page: &str) -> BTreeSet<i64> {
    page.split("<br><small>").skip(1).filter_map(|rest| rest.split('<').next()?.parse().ok()).collect()
}
