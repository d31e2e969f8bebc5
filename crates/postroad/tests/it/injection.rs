//! Line breaks and control characters in every string field: refused or harmless, never a new header.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::world::{RAW, SEND, World, both_engines, good_but};

/// Makes a field whose value contains the attack.
type Field = fn(&str) -> Value;

const FIELDS: [(&str, Field); 24] = [
    ("to", |evil| json!({"to": [format!("a@example.com{evil}")]})),
    ("to name", |evil| json!({"to": [format!("Ann{evil} <a@example.com>")]})),
    ("cc", |evil| json!({"cc": [format!("{evil}c@example.com")]})),
    ("bcc", |evil| json!({"bcc": format!("c@example.com{evil}, d@example.com")})),
    ("from", |evil| json!({"from": format!("a{evil}@example.test")})),
    ("from name", |evil| json!({"from": format!("Shop{evil} <a@example.test>")})),
    ("sender", |evil| json!({"sender": format!("\"S{evil}\" <a@example.test>")})),
    ("reply_to", |evil| json!({"reply_to": format!("a@example.com{evil}")})),
    ("subject", |evil| json!({"subject": format!("Hello{evil}")})),
    ("tag", |evil| json!({"tag": format!("tag{evil}")})),
    ("header value", |evil| json!({"headers": {"X-A": format!("b{evil}")}})),
    ("header name", |evil| json!({"headers": {format!("X-A{evil}"): "b"}})),
    ("header list", |evil| json!({"headers": {"X-A": ["b", format!("c{evil}")]}})),
    ("message id", |evil| json!({"headers": {"Message-ID": format!("<a{evil}@example.test>")}})),
    ("date", |evil| json!({"headers": {"Date": format!("Mon, 2 Nov 2026 10:00:00 +0000{evil}")}})),
    ("file name", |evil| json!({"attachments": [{"name": format!("a{evil}.txt"), "data": "aGk="}]})),
    (
        "content type",
        |evil| json!({"attachments": [{"name": "a", "content_type": format!("text/plain{evil}"), "data": "aGk="}]}),
    ),
    (
        "content id",
        |evil| json!({"attachments": [{"name": "a", "content_id": format!("a{evil}"), "data": "aGk="}], "html_body": "x"}),
    ),
    ("mailto", |evil| json!({"list_unsubscribe": {"mailto": format!("u@example.com{evil}")}})),
    ("metadata key", |evil| json!({"metadata": {format!("k{evil}"): "v"}})),
    ("idempotency key", |evil| json!({"idempotency_key": format!("k{evil}")})),
    ("send at", |evil| json!({"send_at": format!("2026-11-15T09:30:00Z{evil}")})),
    ("ip pool", |evil| json!({"ip_pool": format!("pool{evil}")})),
    ("list unsubscribe", |evil| json!({"list_unsubscribe": {"url": format!("https://example.com/{evil}")}})),
];

const EVIL: [&str; 6] =
    ["\r\nX-Evil: 1", "\nX-Evil: 1", "\rX-Evil: 1", "\0X-Evil: 1", "\r\n X-Evil: 1", "\r\n\r\nX-Evil: 1"];

both_engines!(
    no_field_can_add_a_header,
    encoded_words_cannot_smuggle_a_line_break,
    line_breaks_in_bodies_and_metadata_are_accepted_and_add_no_header,
    envelope_addresses_of_a_raw_message_have_no_line_breaks
);

async fn no_field_can_add_a_header(world: World) {
    for (name, field) in FIELDS {
        for evil in EVIL {
            let answer = world.call(SEND, &good_but(field(evil))).await;
            assert_eq!(answer["status"], "parameter-error", "{name} with {evil:?}: {answer}");
            assert_eq!(answer["data"]["code"], "ValidationError");
        }
    }
}

async fn encoded_words_cannot_smuggle_a_line_break(world: World) {
    let evil = "=?utf-8?Q?a=0D=0AX-Evil:_1?=";
    let body = good_but(json!({
        "subject": evil, "from": format!("{evil} <a@example.test>"), "to": [format!("{evil} <a@example.com>")],
        "headers": {"X-A": evil},
    }));
    let answer = world.call(SEND, &body).await;
    if answer["status"] == "success" {
        let id = answer["data"]["messages"]["a@example.com"]["id"].as_i64().unwrap();
        let message = world.expanded(id).await;
        assert!(!message["headers"].as_object().unwrap().contains_key("x-evil"), "{message}");
    } else {
        assert_eq!(answer["status"], "parameter-error");
    }
}

async fn line_breaks_in_bodies_and_metadata_are_accepted_and_add_no_header(world: World) {
    for evil in EVIL.iter().filter(|evil| !evil.contains('\0')) {
        let body = good_but(json!({
            "plain_body": format!("text{evil}"), "html_body": format!("<p>{evil}"), "metadata": {"note": evil},
        }));
        let message = world.expanded(world.accepted_id(&body).await).await;
        assert!(!message["headers"].as_object().unwrap().contains_key("x-evil"));
        assert_eq!(message["details"]["metadata"]["note"], *evil);
    }
}

async fn envelope_addresses_of_a_raw_message_have_no_line_breaks(world: World) {
    let data = base64::engine::general_purpose::STANDARD.encode("From: a@example.test\r\n\r\nhi");
    for evil in EVIL {
        let sender =
            json!({"mail_from": format!("a@example.test{evil}"), "rcpt_to": ["b@example.com"], "data": data});
        let recipient =
            json!({"mail_from": "a@example.test", "rcpt_to": [format!("b@example.com{evil}")], "data": data});
        for body in [sender, recipient] {
            let answer = world.call(RAW, &body).await;
            assert_eq!(answer["status"], "parameter-error", "{body}: {answer}");
        }
    }
}
