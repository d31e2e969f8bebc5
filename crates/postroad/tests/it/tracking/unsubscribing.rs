//! One-click unsubscribing (RFC 8058): a POST suppresses the address and emits an event; a GET does neither.

use postroad_model::EventKind;
use postroad_testkit::http::Method;
use serde_json::json;

use super::{FIREFOX, fetch, open_in_browser, paths_in, send_and_receive, until_activity};
use crate::world::{World, both_engines, good_but};

both_engines!(
    a_one_click_post_suppresses_the_address_and_opening_the_page_does_not,
    an_unsubscribe_url_of_the_sender_is_kept
);

async fn a_one_click_post_suppresses_the_address_and_opening_the_page_does_not(world: World) {
    let mut world = world;
    let body = good_but(json!({"to": ["Ann@example.net"], "list_unsubscribe": {"one_click": true}}));
    let mail = send_and_receive(&world, &body).await;
    let text = String::from_utf8_lossy(&mail.raw).into_owned();
    assert!(text.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{text}");
    let path = paths_in(&text, "/u/").remove(0);
    assert!(
        text.contains(&format!(
            "List-Unsubscribe: <{}{path}>",
            world.daemon.ready()["url"].as_str().unwrap()
        ))
    );
    for _ in 0..2 {
        let page = open_in_browser(&world, &path).await;
        assert_eq!(page.status, 200);
        let html = page.text();
        assert!(html.contains("<form method=\"post\">") && !html.contains("<script"), "{html}");
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    }
    assert_eq!(fetch(&world, Method::HEAD, &path, &[FIREFOX]).await.status, 200);
    let unaffected = world.accepted_id(&body).await;
    world.until_status(unaffected, "Sent").await;

    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let post = |path: String, body: &'static str| {
        let client = &world.client;
        async move { client.request(Method::POST, &path, &form, body.into()).await.unwrap() }
    };
    assert_eq!(post(path.clone(), "other=1").await.status, 400);
    let mut changed = path.clone();
    changed.pop();
    assert_eq!(post(changed, "List-Unsubscribe=One-Click").await.status, 404);
    for _ in 0..2 {
        let reply = post(path.clone(), "List-Unsubscribe=One-Click").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let again = good_but(json!({"to": ["ann@EXAMPLE.net"]}));
    let later = world.accepted_id(&again).await;
    let held = world.until_status(later, "Held").await;
    assert!(held[0]["details"].as_str().unwrap().contains("unsubscribe"), "{held:?}");
    // After the suppression was removed, the link works again.
    let removed = world.call("/api/v1/suppressions/remove", &json!({"address": "ann@example.net"})).await;
    assert_eq!(removed["status"], "success", "{removed}");
    let sent = world.accepted_id(&again).await;
    world.until_status(sent, "Sent").await;
    assert_eq!(post(path.clone(), "List-Unsubscribe=One-Click").await.status, 200);
    let held_again = world.accepted_id(&again).await;
    world.until_status(held_again, "Held").await;
    assert_eq!(until_activity(&world, mail.id, 0, 0).await, json!({"loads": [], "clicks": []}));
    let events = world.events_at_the_end(mail.id).await;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Delivered, EventKind::Unsubscribed]);
    let data: serde_json::Value = serde_json::from_str(&events[2].data).unwrap();
    assert_eq!(data["ip_address"], "127.0.0.1");
}

async fn an_unsubscribe_url_of_the_sender_is_kept(world: World) {
    let list =
        json!({"url": "https://example.test/leave?u=1", "mailto": "leave@example.test", "one_click": true});
    let html = "<a href='https://example.test/leave?u=1'>x</a><a href='https://example.test/buy'>y</a>";
    let body = good_but(json!({"to": ["bob@example.net"], "list_unsubscribe": list, "html_body": html,
                                   "track": {"clicks": true}}));
    let mail = send_and_receive(&world, &body).await;
    let text = String::from_utf8_lossy(&mail.raw).into_owned();
    assert!(
        text.contains("<https://example.test/leave?u=1>") && text.contains("List-Unsubscribe=One-Click"),
        "{text}"
    );
    assert!(paths_in(&text, "/u/").is_empty());
    assert!(mail.html.contains("href='https://example.test/leave?u=1'"), "{}", mail.html);
    assert_eq!(mail.paths("/c/").len(), 1);
    let problem = world
        .call("/api/v1/send/message", &good_but(json!({"list_unsubscribe": {"one_click": false}})))
        .await;
    assert_eq!(problem["data"]["errors"][0]["pointer"], "/list_unsubscribe", "{problem}");
}
