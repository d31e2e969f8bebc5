//! Conditions of a search, by field and by query.

use serde_json::{Value, json};

use super::{SEARCH, find_all, find_all_items, query};
use crate::world::{World, both_engines, good_but};

both_engines!(
    messages_are_found_by_every_condition,
    mistakes_in_a_search_are_reported_with_their_position,
    messages_of_another_server_are_not_found
);

async fn messages_are_found_by_every_condition(world: World) {
    let attachment = json!([{"name": "a.txt", "data": "eA=="}]);
    let order = world
        .accepted_id(&good_but(json!({
            "to": ["Ann.Smith@example.com"], "subject": "Order 4711: thanks", "tag": "orders",
            "metadata": {"customer": "17"}, "attachments": attachment,
        })))
        .await;
    let news = world
        .accepted_id(&good_but(json!({
            "to": ["bob@example.org"], "subject": "ÄRGER im Büro", "tag": "news",
        })))
        .await;
    world.admin(&["suppression", "add", "eve@example.com", "--server", "dev"]);
    let held =
        world.accepted_id(&good_but(json!({"to": ["eve@example.com"], "subject": "Held order"}))).await;
    for id in [order, news] {
        world.until_status(id, "Sent").await;
    }
    for (conditions, expected) in [
        (json!({}), vec![held, news, order]),
        (json!({"limit": 1}), vec![held, news, order]),
        (query("order"), vec![held, order]),
        (query("ORDER -held"), vec![order]),
        (query("\"order 4711\""), vec![order]),
        (query("subject:ärger"), vec![news]),
        (query("subject:ÄRG"), vec![news]),
        (query("to:smith@EXAMPLE"), vec![order]),
        (query("to:example.com subject:4711"), vec![order]),
        (query("tag:news"), vec![news]),
        (query("tag:new"), vec![]),
        (query("-tag:news -status:held"), vec![order]),
        (query("status:held"), vec![held]),
        (query("status:sent tag:orders"), vec![order]),
        (query("has:attachment"), vec![order]),
        (query("-has:attachment order"), vec![held]),
        (query("domain:example.test order"), vec![held, order]),
        (query("domain:elsewhere.example"), vec![]),
        (query("metadata:customer=17"), vec![order]),
        (query("metadata:customer=1"), vec![]),
        (query("-metadata:\"customer=17\" order"), vec![held]),
        (query("from:shop@ after:2020-01-01 rg"), vec![news]),
        (query("before:2020-01-01"), vec![]),
        (json!({"status": ["Held", "Bounced"]}), vec![held]),
        (json!({"status": ["Held", "held"]}), vec![held]),
        (json!({"status": "soft_fail"}), vec![]),
        (json!({"tag": "orders", "q": "thanks"}), vec![order]),
        (json!({"to": "bob@"}), vec![news]),
        (json!({"from": "@example.test", "tag": "news"}), vec![news]),
        (json!({"domain": "Example.Test", "tag": "news"}), vec![news]),
        (json!({"metadata": {"customer": "17"}}), vec![order]),
        (json!({"metadata": {"customer": "1"}}), vec![]),
        (
            json!({"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "tag": "news"}),
            vec![news],
        ),
        (json!({"template": "welcome"}), vec![]),
    ] {
        assert_eq!(find_all(&world, &conditions).await, expected, "{conditions}");
    }
    let items = find_all_items(&world, &json!({})).await;
    let reasons: Vec<&Value> = items.iter().map(|item| &item["held_reason"]).collect();
    assert_eq!(reasons, [&json!("suppressed"), &Value::Null, &Value::Null]);
    let details = world.expanded(order).await;
    let item = items[2].as_object().unwrap();
    let names: Vec<&str> = item.keys().map(String::as_str).collect();
    let expected = [
        "id",
        "token",
        "status",
        "rcpt_to",
        "mail_from",
        "subject",
        "message_id",
        "tag",
        "template",
        "timestamp",
        "size",
        "test",
        "held_reason",
    ];
    assert_eq!(names, expected);
    assert_eq!(item["token"], details["token"]);
    assert_eq!(item["rcpt_to"], details["details"]["rcpt_to"]);
    assert_eq!(item["message_id"], details["details"]["message_id"]);
    assert!(item["timestamp"].as_str().unwrap().ends_with('Z'));
}

async fn mistakes_in_a_search_are_reported_with_their_position(world: World) {
    let long = "x".repeat(1_001);
    for (request, pointer, part) in [
        (
            query("to:ann colour:red"),
            "/q",
            "at character 8: unknown key `colour`; known keys are to, from, subject",
        ),
        (query("\"open"), "/q", "at character 1: the quoted text has no end"),
        (query("status:lost"), "/q", "at character 8: unknown status; statuses are Pending"),
        (json!({"status": ["Sent", "lost"]}), "/status/1", "`status/1` should be one of Pending"),
        (json!({"since": "yesterday"}), "/since", "RFC 3339"),
        (json!({"tag": ""}), "/tag", "`tag` is empty"),
        (json!({"metadata": {"a": 1}}), "/metadata/a", "String"),
        (json!({"q": long}), "/q", "longer than 1000"),
        (json!({"to": long}), "/to", "`to` is longer than 1000 characters"),
        (json!({"from": long}), "/from", "`from` is longer"),
        (json!({"tag": long}), "/tag", "`tag` is longer"),
        (json!({"domain": long}), "/domain", "`domain` is longer"),
        (json!({"template": long}), "/template", "`template` is longer"),
        (json!({"metadata": {"a": long}}), "/metadata", "`metadata` is longer"),
        (json!({"cursor": "!"}), "/cursor", "next_cursor"),
        (json!({"limit": 501}), "/limit", "from 1 to 500"),
    ] {
        let answer = world.call(SEARCH, &request).await;
        assert_eq!(answer["status"], "parameter-error", "{request}");
        let error = &answer["data"]["errors"][0];
        assert_eq!(error["pointer"], pointer, "{request}");
        assert!(error["message"].as_str().unwrap().contains(part), "{request}: {error}");
    }
}

async fn messages_of_another_server_are_not_found(world: World) {
    let id = world.accepted_id(&good_but(json!({}))).await;
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "other", "--account", "other"]);
    let made = world.admin(&["key", "create", "--server", "other"]);
    let key = made["api_key"].as_str().unwrap();
    assert_eq!(find_all(&world, &json!({})).await, [id]);
    for conditions in [json!({}), query("a"), json!({"status": ["Sent", "Pending"]})] {
        let answer = world.call_as(key, SEARCH, &conditions).await;
        assert_eq!(answer["data"]["items"], json!([]), "{conditions}");
    }
}
