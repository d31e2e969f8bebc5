//! messages/message and messages/deliveries.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Value, json};

use crate::service::{DELIVERIES, MESSAGE, SEND_MESSAGE, Service, message_to};

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_message_has_the_requested_expansions() {
    let service = Service::start().await;
    let mut send = message_to("a@example.net");
    send["html_body"] = json!("<p>Gr\u{fc}\u{df}e</p>");
    send["tag"] = json!("order");
    send["metadata"] = json!({"order": "12"});
    send["headers"] = json!({"X-List": ["one", "two"]});
    send["attachments"] = json!([{"name": "a.txt", "content_type": "text/plain", "data": "YWJj"}]);
    let sent = service.call(SEND_MESSAGE, &send).await;
    let message = &sent["data"]["messages"]["a@example.net"];

    let bare = service.call(MESSAGE, &json!({"id": message["id"]})).await;
    assert_eq!(&bare["data"], message);
    assert_eq!(keys(&bare["data"]), ["id", "token"]);

    let all = service.call(MESSAGE, &json!({"id": message["id"], "_expansions": true})).await["data"].take();
    let names = "id token status details inspection plain_body html_body attachments headers raw_message activity_entries";
    assert_eq!(keys(&all).join(" "), names);
    assert_eq!(all["status"]["status"], "Pending");
    assert_eq!(keys(&all["status"]).join(" "), "status last_delivery_attempt held hold_expiry next_attempt");
    assert!(all["status"]["next_attempt"].is_f64());
    let details = &all["details"];
    let names = "rcpt_to mail_from subject message_id timestamp direction size bounce bounce_for_id tag received_with_ssl test metadata";
    assert_eq!(keys(details).join(" "), names);
    assert_eq!(details["metadata"], json!({"order": "12"}));
    assert_eq!(
        (&details["tag"], &details["direction"], &details["test"]),
        (&json!("order"), &json!("outgoing"), &json!(false))
    );
    let not_inspected = json!({"inspected": false, "spam": false, "spam_score": 0.0, "threat": false, "threat_details": null});
    assert_eq!(all["inspection"], not_inspected);
    assert_eq!(all["plain_body"], "Hello there");
    assert_eq!(all["html_body"], "<p>Gr\u{fc}\u{df}e</p>");
    let attachment = json!([{
        "filename": "a.txt", "content_type": "text/plain", "data": "YWJj", "size": 3,
        "hash": "a9993e364706816aba3e25717850c26c9cd0d89d",
    }]);
    assert_eq!(all["attachments"], attachment);
    assert_eq!(all["headers"]["x-list"], json!(["one", "two"]));
    let raw = String::from_utf8(STANDARD.decode(all["raw_message"].as_str().unwrap()).unwrap()).unwrap();
    assert!(raw.contains("X-List: two\r\n"));
    assert_eq!(details["size"], json!(raw.len().to_string()));
    // The headers that each delivery adds are shown.
    let received = all["headers"]["received"][0].as_str().unwrap();
    assert!(received.starts_with("by ") && received.contains("(Postroad) with HTTP id "), "{received}");
    let folded = format!("Received: {}\r\n", received.replace(";\t", ";\r\n\t"));
    assert!(raw.starts_with(&folded), "{raw}");
    assert_eq!(all["activity_entries"], json!({"loads": [], "clicks": []}));

    let some = service
        .call(MESSAGE, &json!({"id": message["id"], "_expansions": ["html_body", "foo", "status"]}))
        .await;
    assert_eq!(keys(&some["data"]), ["id", "token", "status", "html_body"]);
    assert_eq!(some["flags"], json!({"warnings": ["Unknown expansion `foo` was ignored"]}));
}

#[tokio::test]
async fn the_html_body_of_a_message_without_html_is_null() {
    let service = Service::start().await;
    let sent = service.call(SEND_MESSAGE, &message_to("a@example.net")).await;
    let id = &sent["data"]["messages"]["a@example.net"]["id"];
    let found = service.call(MESSAGE, &json!({"id": id, "_expansions": ["html_body"]})).await;
    assert_eq!(keys(&found["data"]), ["id", "token", "html_body"]);
    assert_eq!(found["data"]["html_body"], Value::Null);
}

#[tokio::test]
async fn deliveries_are_empty_before_the_first_attempt_and_record_test_mode() {
    let service = Service::start().await;
    let sent = service.call(SEND_MESSAGE, &message_to("a@example.net")).await;
    let id = &sent["data"]["messages"]["a@example.net"]["id"];
    assert_eq!(service.call(DELIVERIES, &json!({"id": id})).await["data"], json!([]));

    let text = message_to("b@example.net").to_string();
    let test = service.request(Method::POST, SEND_MESSAGE, &[("X-Test-Mode", "true")], &text).await.json();
    let id = &test["data"]["messages"]["b@example.net"]["id"];
    let deliveries = service.call(DELIVERIES, &json!({"id": id})).await["data"].take();
    let one = &deliveries.as_array().unwrap()[0];
    let names = "id status details output sent_with_ssl log_id time timestamp mx remote_ip source_ip tls tls_policy dkim code \
                 enhanced_code bounce_class next_attempt_at possible_duplicate";
    assert_eq!(keys(one).join(" "), names);
    assert_eq!(
        (&one["status"], &one["details"]),
        (&json!("Sent"), &json!("Test mode: validated, not delivered"))
    );
    assert!(one["timestamp"].is_f64() && one["time"].is_null());
}

#[tokio::test]
async fn unknown_ids_are_echoed_as_sent() {
    let service = Service::start().await;
    for path in [MESSAGE, DELIVERIES] {
        for id in ["0", "-1", "77", "123456789012345678901234567890"] {
            let reply = service.request(Method::POST, path, &[], &format!(r#"{{"id": {id}}}"#)).await;
            let data = format!(
                r#""data":{{"code":"MessageNotFound","message":"No message found matching provided ID","id":{id}}}}}"#
            );
            assert!(reply.text().ends_with(&data), "{}", reply.text());
            assert!(reply.text().starts_with(r#"{"status":"error","#), "{}", reply.text());
        }
        for id in ["1.5", "\"1\"", "null", "{}"] {
            let reply = service.request(Method::POST, path, &[], &format!(r#"{{"id": {id}}}"#)).await;
            assert_eq!(reply.json()["status"], "parameter-error", "{}", reply.text());
        }
    }
}
