//! One-click unsubscribing (RFC 8058): event and suppression; opening the page alone does nothing.

use postroad_model::EventKind;
use postroad_testkit::http::Method;
use serde_json::json;

use super::{FIREFOX, delivered, fetch, look, paths_in, until_activity};
use crate::world::{World, both_engines, good_but};

both_engines!(one_click_suppresses_and_a_look_does_not, an_unsubscribe_url_of_the_sender_is_kept);

async fn one_click_suppresses_and_a_look_does_not(world: World) {
    let mut world = world;
    let body = good_but(json!({"to": ["Ann@example.net"], "list_unsubscribe": {"one_click": true}}));
    let got = delivered(&world, &body).await;
    let text = String::from_utf8_lossy(&got.raw).into_owned();
    assert!(text.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{text}");
    let path = paths_in(&text, "/u/").remove(0);
    assert!(
        text.contains(&format!(
            "List-Unsubscribe: <{}{path}>",
            world.daemon.ready()["url"].as_str().unwrap()
        ))
    );
    for _ in 0..2 {
        let page = look(&world, &path).await;
        assert_eq!(page.status, 200);
        let html = page.text();
        assert!(html.contains("<form method=\"post\">") && !html.contains("<script"), "{html}");
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    }
    assert_eq!(fetch(&world, Method::HEAD, &path, &[FIREFOX]).await.status, 200);
    let still = world.accepted_id(&body).await;
    world.until_status(still, "Sent").await;

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
    assert_eq!(until_activity(&world, got.id, 0, 0).await, json!({"loads": [], "clicks": []}));
    let events = world.events_at_the_end(got.id).await;
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
    let got = delivered(&world, &body).await;
    let text = String::from_utf8_lossy(&got.raw).into_owned();
    assert!(
        text.contains("<https://example.test/leave?u=1>") && text.contains("List-Unsubscribe=One-Click"),
        "{text}"
    );
    assert!(paths_in(&text, "/u/").is_empty());
    assert!(got.html.contains("href='https://example.test/leave?u=1'"), "{}", got.html);
    assert_eq!(got.paths("/c/").len(), 1);
    let problem = world
        .call("/api/v1/send/message", &good_but(json!({"list_unsubscribe": {"one_click": false}})))
        .await;
    assert_eq!(problem["data"]["errors"][0]["pointer"], "/list_unsubscribe", "{problem}");
}
