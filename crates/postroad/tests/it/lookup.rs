//! The endpoints `messages/message` and `messages/deliveries`: every expansion, every kind of id.

use std::time::Duration;

use postroad_model::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::errors::assert_invalid;
use crate::world::{DELIVERIES, MESSAGE, World, both_engines, good, good_but};

const EXPANSIONS: [&str; 9] = [
    "status",
    "details",
    "inspection",
    "plain_body",
    "html_body",
    "attachments",
    "headers",
    "raw_message",
    "activity_entries",
];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

both_engines!(
    exactly_the_requested_expansions_are_returned,
    a_message_reads_back_as_it_was_sent,
    the_headers_parameter_replaces_absent_parameters,
    several_reply_to_addresses_and_display_names_are_kept,
    a_message_never_attempted_has_no_deliveries,
    scheduled_and_held_messages_show_their_status,
    wrong_and_unknown_ids_are_refused,
    a_foreign_id_gets_the_answer_of_an_unknown_one
);

async fn exactly_the_requested_expansions_are_returned(world: World) {
    let id = world.accepted_id(&good()).await;
    // Its status must not change between the calls that are compared below.
    world.until_status(id, "Sent").await;
    let ask =
        async |expansions: Value| world.call(MESSAGE, &json!({"id": id, "_expansions": expansions})).await;
    for none in [json!([]), json!(false), json!(null), json!("status"), json!(1), json!({})] {
        let answer = ask(none).await;
        assert_eq!(keys(&answer["data"]), ["id", "token"]);
        assert_eq!(answer["data"]["id"], id);
    }
    let all = ask(json!(true)).await;
    assert_eq!(keys(&all["data"]), [&["id", "token"], &EXPANSIONS[..]].concat());
    for name in EXPANSIONS {
        let one = ask(json!([name])).await;
        assert_eq!(keys(&one["data"]), ["id", "token", name]);
        assert_eq!(one["data"][name], all["data"][name], "{name}");
        assert_eq!(one["flags"], json!({}));
    }
    let unknown = ask(json!(["status", "colour", 5])).await;
    assert_eq!(keys(&unknown["data"]), ["id", "token", "status"]);
    let warnings = unknown["flags"]["warnings"].to_string();
    assert!(warnings.contains("colour") && warnings.contains("Integer"), "{warnings}");
}

async fn a_message_reads_back_as_it_was_sent(world: World) {
    let body = good_but(json!({
        "to": ["Ann <ann@example.com>"], "cc": ["cc@example.com"],
        "from": "Grüße <shop@example.test>", "sender": "Robot <robot@example.test>",
        "reply_to": "help@example.com", "subject": "Ünïcode ✓ subject", "tag": "order",
        "plain_body": "Plain ✓\nsecond line", "html_body": "<p>HTML ✓</p>",
        "attachments": [
            {"name": "größe.txt", "content_type": "text/plain", "data": "aGVs\nbG8="},
            {"name": "logo.png", "content_type": "image/png", "data": "iVBORw0KGgo=", "content_id": "logo"},
        ],
        "headers": {"X-Number": 5, "X-List": ["a", "b"], "X-Words": "straße", "Subject": "ignored"},
        "metadata": {"order": "17"},
    }));
    let data = world.accepted(&body).await;
    let id = data["messages"]["ann@example.com"]["id"].as_i64().unwrap();
    let message = world.expanded(id).await;
    assert_eq!(message["token"], data["messages"]["ann@example.com"]["token"]);
    assert_eq!(
        message["plain_body"].as_str().unwrap().replace("\r\n", "\n").trim_end(),
        "Plain ✓\nsecond line"
    );
    assert_eq!(message["html_body"].as_str().unwrap().trim_end(), "<p>HTML ✓</p>");
    let details = &message["details"];
    assert_eq!(
        keys(details),
        [
            "rcpt_to",
            "mail_from",
            "subject",
            "message_id",
            "timestamp",
            "direction",
            "size",
            "bounce",
            "bounce_for_id",
            "tag",
            "received_with_ssl",
            "test",
            "metadata"
        ]
    );
    assert_eq!(details["rcpt_to"], "ann@example.com");
    assert_eq!(details["mail_from"], "shop@example.test");
    assert_eq!(details["subject"], "Ünïcode ✓ subject");
    assert_eq!(details["message_id"], data["message_id"]);
    assert!(details["timestamp"].as_f64().unwrap() > 1.7e9);
    assert_eq!(details["direction"], "outgoing");
    let raw = message["raw_message"].as_str().unwrap();
    let raw = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, raw).unwrap();
    assert_eq!(details["size"], raw.len().to_string());
    assert_eq!(details["bounce"], false);
    assert_eq!(details["bounce_for_id"], 0);
    assert_eq!(details["tag"], "order");
    assert_eq!(details["received_with_ssl"], false);
    assert_eq!(details["test"], false);
    assert_eq!(details["metadata"], json!({"order": "17"}));
    let status = &message["status"];
    assert_eq!((&status["held"], &status["hold_expiry"]), (&json!(false), &json!(null)));
    // The message may have been delivered to the inbox by now.
    let is_pending = status["status"] == "Pending";
    assert!(is_pending || status["status"] == "Sent", "{status}");
    assert_eq!(status["last_delivery_attempt"].is_null(), is_pending, "{status}");
    assert_eq!(status["next_attempt"].is_f64(), is_pending, "{status}");
    assert_eq!(
        message["inspection"],
        json!({"inspected": false, "spam": false, "spam_score": 0.0, "threat": false, "threat_details": null})
    );
    assert_eq!(message["activity_entries"], json!({"loads": [], "clicks": []}));
    assert_eq!(
        message["attachments"][1],
        json!({"filename": "größe.txt", "content_type": "text/plain", "data": "aGVsbG8=", "size": 5,
                   "hash": "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"})
    );
    // Attachments are in the order of the MIME parts: the inline picture follows the HTML, before the files.
    assert_eq!(message["attachments"][0]["filename"], "logo.png");
    let headers = &message["headers"];
    assert_eq!(headers["from"], json!(["Grüße <shop@example.test>"]));
    assert_eq!(headers["sender"], json!(["Robot <robot@example.test>"]));
    assert_eq!(headers["reply-to"], json!(["help@example.com"]));
    assert_eq!(headers["subject"], json!(["Ünïcode ✓ subject"]));
    assert_eq!(headers["x-number"], json!(["5"]));
    assert_eq!(headers["x-list"], json!(["a", "b"]));
    assert_eq!(headers["x-words"], json!(["straße"]));
    assert_eq!(headers["cc"], json!(["cc@example.com"]));
}

async fn the_headers_parameter_replaces_absent_parameters(world: World) {
    let body = good_but(json!({"headers": {
        "Message-ID": "<own@example.test>", "Date": "Mon, 2 Nov 2026 10:00:00 +0100", "Reply-To": "r@example.com",
    }}));
    let data = world.accepted(&body).await;
    assert_eq!(data["message_id"], "own@example.test");
    let message = world.expanded(data["messages"]["someone@example.com"]["id"].as_i64().unwrap()).await;
    assert_eq!(message["headers"]["message-id"], json!(["<own@example.test>"]));
    assert_eq!(message["headers"]["date"], json!(["Mon, 2 Nov 2026 10:00:00 +0100"]));
    assert_eq!(message["headers"]["reply-to"], json!(["r@example.com"]));
}

async fn several_reply_to_addresses_and_display_names_are_kept(world: World) {
    let body = good_but(json!({
        "reply_to": "r1@example.com, \"R, two\" <r2@example.com>", "to": "Doe <doe@example.com>, \"A, B\" <ab@example.com>",
        "list_unsubscribe": {"url": "https://example.com/u", "mailto": "u@example.com", "one_click": true},
        "headers": {"List-Unsubscribe": "<https://other.example/>", "X-Postal-Tag": "legacy"},
    }));
    let data = world.accepted(&body).await;
    let message = world.expanded(data["messages"]["doe@example.com"]["id"].as_i64().unwrap()).await;
    let headers = &message["headers"];
    assert_eq!(headers["reply-to"], json!(["r1@example.com, \"R, two\" <r2@example.com>"]));
    assert_eq!(headers["to"], json!(["Doe <doe@example.com>, \"A, B\" <ab@example.com>"]));
    assert_eq!(headers["list-unsubscribe"], json!(["<https://example.com/u>, <mailto:u@example.com>"]));
    assert_eq!(headers["list-unsubscribe-post"], json!(["List-Unsubscribe=One-Click"]));
    assert!(!headers.as_object().unwrap().contains_key("x-postal-tag"));
    assert_eq!(message["details"]["tag"], "legacy");
}

async fn a_message_never_attempted_has_no_deliveries(world: World) {
    // Scheduled, because the first attempt might come before the call.
    let send_at = SystemClock.now().plus(Duration::from_hours(1));
    let id = world.accepted_id(&good_but(json!({"send_at": send_at.to_rfc3339()}))).await;
    assert_eq!(world.deliveries(id).await, json!([]));
}

async fn scheduled_and_held_messages_show_their_status(world: World) {
    let send_at = SystemClock.now().plus(Duration::from_hours(1));
    let later = world.accepted_id(&good_but(json!({"send_at": send_at.to_rfc3339()}))).await;
    let status = world.expanded(later).await["status"].clone();
    assert_eq!(status["status"], "Scheduled");
    assert!((status["next_attempt"].as_f64().unwrap() - send_at.as_epoch_seconds()).abs() < 0.001);
    let (_, holding) = world.new_key(&["--hold"]);
    let answer = world.call_as(&holding, crate::world::SEND, &good()).await;
    let id = answer["data"]["messages"]["someone@example.com"]["id"].as_i64().unwrap();
    let message = world.expanded(id).await;
    assert_eq!(message["status"]["status"], "Held");
    assert_eq!(message["status"]["held"], true);
    let accepted = message["details"]["timestamp"].as_f64().unwrap();
    let expiry = message["status"]["hold_expiry"].as_f64().unwrap();
    assert!((expiry - accepted - 7.0 * 86_400.0).abs() < 1.0);
    let deliveries = world.deliveries(id).await;
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
    assert_eq!(deliveries[0]["status"], "Held");
    world.admin(&["server", "set-mode", "dev", "development"]);
    let id = world.accepted_id(&good()).await;
    assert_eq!(world.expanded(id).await["status"]["status"], "Held");
}

async fn wrong_and_unknown_ids_are_refused(world: World) {
    for path in [MESSAGE, DELIVERIES] {
        for id in [json!(0), json!(-1), json!(1), json!(9_007_199_254_740_993_i64), json!(u64::MAX)] {
            let answer = world.call(path, &json!({ "id": id })).await;
            assert_eq!(answer["status"], "error");
            assert_eq!(
                answer["data"],
                json!({"code": "MessageNotFound", "message": "No message found matching provided ID", "id": id})
            );
        }
        let wrong = [
            (json!("1"), "`id` should be a `Integer` but is a `String`"),
            (json!(1.5), "`id` should be a `Integer` but is a `Float`"),
            (json!({}), "`id` should be a `Integer` but is a `Object`"),
            (json!([1]), "`id` should be a `Integer` but is a `Array`"),
            (json!(true), "`id` should be a `Integer` but is a `Boolean`"),
            (json!(null), "`id` parameter is required but is missing"),
        ];
        for (id, message) in wrong {
            assert_invalid(&world.call(path, &json!({ "id": id })).await, &[("/id", message)]);
        }
        let missing = world.call(path, &json!({})).await;
        assert_invalid(&missing, &[("/id", "`id` parameter is required but is missing")]);
    }
}

async fn a_foreign_id_gets_the_answer_of_an_unknown_one(world: World) {
    let id = world.accepted_id(&good()).await;
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "other", "--account", "other"]);
    let made = world.admin(&["key", "create", "--server", "other"]);
    let foreign = made["api_key"].as_str().unwrap();
    for path in [MESSAGE, DELIVERIES] {
        let known = world.call_as(foreign, path, &json!({ "id": id })).await;
        let mut unknown = world.call_as(foreign, path, &json!({"id": id + 1_000_000})).await;
        assert_eq!(known["data"]["code"], "MessageNotFound");
        assert_eq!(known["data"]["id"], id);
        (unknown["time"], unknown["data"]["id"]) = (known["time"].clone(), known["data"]["id"].clone());
        assert_eq!(known, unknown);
    }
}
