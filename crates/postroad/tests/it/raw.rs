//! send/raw: required parameters, allowed From addresses, and which bytes of a message are changed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::errors::assert_invalid;
use crate::world::{MESSAGE, RAW, World, both_engines};

fn raw(message: &str) -> Value {
    json!({"mail_from": "bounces@example.test", "rcpt_to": ["a@example.com"], "data": STANDARD.encode(message)})
}

/// Sends the message; returns it as the API shows it, and its stored bytes without the `Received` header.
async fn send_and_read(world: &World, body: &Value) -> (Value, String) {
    let answer = world.call(RAW, body).await;
    assert_eq!(answer["status"], "success", "{answer}");
    let messages = answer["data"]["messages"].as_object().unwrap();
    let id = &messages.values().next().unwrap()["id"];
    let read = world.call(MESSAGE, &json!({"id": id, "_expansions": true})).await["data"].clone();
    let bytes = STANDARD.decode(read["raw_message"].as_str().unwrap()).unwrap();
    (read, without_received(&String::from_utf8(bytes).unwrap()))
}

/// The stored message, without the header that delivery puts on top.
fn without_received(text: &str) -> String {
    let (first, rest) = text.split_once("\r\n\t").expect("a folded header stands on top");
    assert!(first.starts_with("Received: by ") && first.contains("(Postroad) with HTTP id "), "{first}");
    rest.split_once("\r\n").unwrap().1.to_owned()
}

both_engines!(
    missing_parameters_are_reported_in_order,
    every_from_and_sender_must_be_of_a_verified_domain,
    mail_in_a_loop_and_lines_over_998_bytes_are_refused,
    line_ends_are_normalised_and_headers_added_or_removed_but_nothing_else_changes,
    recipients_are_taken_from_rcpt_to_each_once
);

async fn missing_parameters_are_reported_in_order(world: World) {
    let missing = |name: &str| format!("`{name}` parameter is required but is missing");
    let all =
        [("/rcpt_to", missing("rcpt_to")), ("/mail_from", missing("mail_from")), ("/data", missing("data"))];
    let problems: Vec<(&str, &str)> = all.iter().map(|(pointer, text)| (*pointer, text.as_str())).collect();
    assert_invalid(&world.call(RAW, &json!({})).await, &problems);
    assert_invalid(&world.call(RAW, &json!({"rcpt_to": ["a@example.com"]})).await, &problems[1..]);
    let body = json!({"rcpt_to": ["a@example.com"], "mail_from": "a@example.test"});
    assert_invalid(&world.call(RAW, &body).await, &problems[2..]);
    let wrong = json!({"rcpt_to": "a@example.com", "mail_from": "a@example.test", "data": "x"});
    assert_invalid(
        &world.call(RAW, &wrong).await,
        &[("/rcpt_to", "`rcpt_to` should be a `Array` but is a `String`")],
    );
    let mut none = raw("From: a@example.test\r\n\r\nhi");
    none["rcpt_to"] = json!([]);
    let answer = world.call(RAW, &none).await;
    assert_eq!(answer["data"]["code"], "NoRecipients");
    let mut broken = raw("x");
    broken["data"] = json!("***");
    assert_invalid(&world.call(RAW, &broken).await, &[("/data", "`data` is not valid base64")]);
}

async fn every_from_and_sender_must_be_of_a_verified_domain(world: World) {
    let refused = [
        "To: a@example.com\r\n\r\nno from",
        "From: a@other.test\r\n\r\nhi",
        "From: a@sub.example.test\r\n\r\nhi",
        "From: a@example.test, b@other.test\r\n\r\nhi",
        "From: a@example.test\r\nFrom: b@other.test\r\n\r\nhi",
        "From: a@example.test\r\nSender: b@other.test\r\n\r\nhi",
        "From: a@other.test <b@example.test>\r\n\r\nhi",
        "From: <a@example.test>\r\n ,<b@other.test>\r\n\r\nhi",
        "From: \"a@example.test\" <b@other.test>\r\n\r\nhi",
        "From: =?utf-8?q?ceo=40other.test?= <b@example.test>\r\n\r\nhi",
        "From: a@example.test\r\nResent-From: b@other.test\r\n\r\nhi",
    ];
    for message in refused {
        let answer = world.call(RAW, &raw(message)).await;
        assert_eq!(answer["data"]["code"], "UnauthenticatedFromAddress", "{message:?}: {answer}");
        assert_eq!(answer["status"], "error");
    }
    for (message, header) in [
        ("From: a@example.test\r\nFrom: a@example.test\r\n\r\nhi", "From"),
        ("From: a@example.test\r\nMessage-ID: <a@b>\r\nMessage-ID: <c@d>\r\n\r\nhi", "Message-ID"),
        ("From: a@example.test\r\nSubject: a\r\nsubject: b\r\n\r\nhi", "Subject"),
    ] {
        let text = format!("The message has more than one {header} header");
        assert_invalid(&world.call(RAW, &raw(message)).await, &[("/data", &text)]);
    }
    let long_id = format!("From: a@example.test\r\nMessage-ID: <{}@b>\r\n\r\nhi", "x".repeat(950));
    let text = "The Message-ID header is not a valid message id";
    assert_invalid(&world.call(RAW, &raw(&long_id)).await, &[("/data", text)]);
    let accepted = [
        "From: a@example.test\r\n\r\nhi",
        "from: =?utf-8?q?J=C3=B6rg?=\r\n <a@EXAMPLE.test>\r\nSender: b@example.test\r\n\r\nhi",
        "From: a@example.test, \"B\" <b@example.test>\r\n\r\nhi",
    ];
    for message in accepted {
        let answer = world.call(RAW, &raw(message)).await;
        assert_eq!(answer["status"], "success", "{message:?}: {answer}");
    }
}

async fn mail_in_a_loop_and_lines_over_998_bytes_are_refused(world: World) {
    let hops = "Received: from a by b; x\r\n".repeat(50);
    let answer = world.call(RAW, &raw(&format!("{hops}From: a@example.test\r\n\r\nhi"))).await;
    let text = "The message is in a mail loop: it has passed too many servers, or this service too often";
    assert_invalid(&answer, &[("/data", text)]);
    let answer = world.call(RAW, &raw(&format!("From: a@example.test\r\n\r\n{}", "x".repeat(999)))).await;
    let text =
        "Line 3 of the message is longer than 998 bytes; send long lines as quoted-printable or base64";
    assert_invalid(&answer, &[("/data", text)]);
}

async fn line_ends_are_normalised_and_headers_added_or_removed_but_nothing_else_changes(world: World) {
    let complete = "Message-ID: <own@example.test>\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\nFrom: a@example.test\r\n\
            Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nbody  \r\n.\r\nend";
    let (read, bytes) = send_and_read(&world, &raw(complete)).await;
    assert_eq!(bytes, complete);
    assert_eq!(read["details"]["message_id"], "own@example.test");
    assert_eq!(read["details"]["mail_from"], "bounces@example.test");
    assert_eq!(read["details"]["subject"], "Grüße");

    let incomplete = "From: a@example.test\nBcc: secret@example.com,\n more@example.com\nReturn-Path: <x@example.com>\n\
            X-Postroad-Tag: orders\nX-Keep: yes\n\nline\rline\n";
    let (read, bytes) = send_and_read(&world, &raw(incomplete)).await;
    assert!(bytes.ends_with("From: a@example.test\r\nX-Keep: yes\r\n\r\nline\r\nline\r\n"), "{bytes}");
    assert!(!bytes.contains("secret@") && !bytes.contains("more@") && !bytes.contains("Return-Path"));
    let added: Vec<&str> = bytes.lines().take_while(|line| !line.starts_with("From")).collect();
    assert_eq!(added.len(), 2, "{bytes}");
    assert!(bytes.contains(&format!("Message-ID: <{}>", read["details"]["message_id"].as_str().unwrap())));
    assert_eq!(read["details"]["tag"], "orders");
    let (read, _) = send_and_read(&world, &raw("From: a@example.test\r\nX-Postal-Tag: old\r\n\r\nhi")).await;
    assert_eq!(read["details"]["tag"], "old");
}

async fn recipients_are_taken_from_rcpt_to_each_once(world: World) {
    let mut body = raw("From: a@example.test\r\nTo: other@example.com\r\n\r\nhi");
    body["rcpt_to"] = json!(["b@example.com", "B@example.com", "c@example.com"]);
    body["bounce"] = json!(true);
    body["mail_from"] = json!("");
    let answer = world.call(RAW, &body).await;
    let keys: Vec<&String> = answer["data"]["messages"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["b@example.com", "c@example.com"]);
    let (read, _) = send_and_read(&world, &body).await;
    assert_eq!(read["details"]["bounce"], true);
    body["bounce"] = json!(false);
    assert_eq!(
        world.call(RAW, &body).await["status"],
        "parameter-error",
        "only a bounce may have an empty sender"
    );
}
