//! Send calls, keys, and the headers of every answer.

use hyper::Method;
use postroad_model::Scope;
use serde_json::json;

use crate::service::{DELIVERIES, MESSAGE, SEND_MESSAGE, SEND_RAW, Service, message_to};

#[tokio::test]
async fn an_accepted_send_names_its_messages_in_recipient_order() {
    let service = Service::start().await;
    let mut send = message_to("z@example.net");
    send["cc"] = json!("Ann <a@example.net>, z@example.net");
    let reply = service.client.post_json(SEND_MESSAGE, Some(&service.key), &send).await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let text = reply.text();
    let positions = [
        "{\"status\":\"success\",\"time\":",
        ",\"flags\":{},\"data\":{\"message_id\":",
        "z@example.net",
        "a@example.net",
    ]
    .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}")));
    assert!(positions.is_sorted(), "{text}");
    let envelope = reply.json();
    let messages = envelope["data"]["messages"].as_object().unwrap();
    assert_eq!(messages.len(), 2);
    assert!(
        messages
            .values()
            .all(|one| one["id"].as_i64().unwrap() > 0 && one["token"].as_str().unwrap().len() == 16)
    );
    assert!(envelope["data"]["message_id"].as_str().unwrap().ends_with("@rp.mail.example.test"));
}

#[tokio::test]
async fn a_raw_message_is_accepted() {
    let service = Service::start().await;
    // From: shop@example.test, Subject: Hi, body Hi
    let data = "RnJvbTogc2hvcEBleGFtcGxlLnRlc3QNClN1YmplY3Q6IEhpDQoNCkhpDQo=";
    let send = json!({"mail_from": "shop@example.test", "rcpt_to": ["a@example.net"], "data": data});
    let envelope = service.call(SEND_RAW, &send).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert!(envelope["data"]["messages"]["a@example.net"]["id"].is_i64());

    let envelope = service.call(SEND_RAW, &json!({"mail_from": "", "rcpt_to": 7})).await;
    assert_eq!(envelope["status"], "parameter-error");
    let pointers: Vec<_> =
        envelope["data"]["errors"].as_array().unwrap().iter().map(|e| &e["pointer"]).collect();
    assert_eq!(pointers, ["/rcpt_to", "/mail_from", "/data"]);
    let empty = json!({"mail_from": "shop@example.test", "rcpt_to": [], "data": data});
    assert_eq!(service.call(SEND_RAW, &empty).await["data"]["code"], "NoRecipients");
}

#[tokio::test]
async fn keys_are_checked_before_the_body() {
    let service = Service::start().await;
    let nonsense = bytes::Bytes::from_static(b"{nonsense");
    let refused_with = async |headers: &[(&str, &str)]| {
        let reply =
            service.client.request(Method::POST, SEND_MESSAGE, headers, nonsense.clone()).await.unwrap();
        assert_eq!(reply.status, 200);
        let envelope = reply.json();
        assert_eq!(envelope["status"], "error");
        envelope["data"].clone()
    };
    let missing = json!({
        "code": "InvalidServerAPIKey",
        "message": "The API token was not provided: set the header X-Server-API-Key",
        "token": null,
    });
    assert_eq!(refused_with(&[]).await, missing);
    assert_eq!(refused_with(&[("x-server-api-key", " ")]).await, missing);
    let invalid = |token: &str| {
        let message = "The API token provided in X-Server-API-Key was not valid.";
        json!({"code": "InvalidServerAPIKey", "message": message, "token": token})
    };
    assert_eq!(refused_with(&[("x-server-api-key", "nope")]).await, invalid("nope"));
    assert_eq!(refused_with(&[("x-server-api-key", "n\u{f6}pe")]).await, invalid("n\u{f6}pe"));

    let read_key = service.create_key(Scope::Read).await;
    let denied = refused_with(&[("x-server-api-key", &read_key)]).await;
    assert_eq!(denied["code"], "AccessDenied");
    assert_eq!(denied["message"], "The API key has the scope `read`; this call needs `send` or `full`");
    let send_key = service.create_key(Scope::Send).await;
    for path in [MESSAGE, DELIVERIES] {
        let reply = service.client.post_json(path, Some(&send_key), &json!({"id": 1})).await.unwrap();
        assert_eq!(reply.json()["data"]["code"], "AccessDenied");
    }

    service.app.suspend_server("dev", Some("spam".into())).await.unwrap();
    let suspended = json!({"code": "ServerSuspended", "message": "The mail server has been suspended"});
    assert_eq!(refused_with(&[("x-server-api-key", &service.key)]).await, suspended);
}

#[tokio::test]
async fn problems_and_warnings_are_reported_together() {
    let service = Service::start().await;
    let envelope =
        service.call(SEND_MESSAGE, &json!({"to": [1, "a@example.net"], "bounce": 5, "form": "x"})).await;
    assert_eq!(envelope["status"], "parameter-error");
    assert_eq!(
        envelope["data"],
        json!({
            "code": "ValidationError",
            "message": "`to/0` should be a `String` but is a `Integer`",
            "errors": [
                {"pointer": "/to/0", "message": "`to/0` should be a `String` but is a `Integer`"},
                {"pointer": "/bounce", "message": "`bounce` should be a `Boolean` but is a `Integer`"},
            ],
        })
    );
    let warnings = json!({"warnings": ["Unknown field `form` was ignored"]});
    assert_eq!(envelope["flags"], warnings);

    let mut send = message_to("a@example.net");
    send["form"] = json!("x");
    assert_eq!(service.call(SEND_MESSAGE, &send).await["flags"], warnings);
    send.as_object_mut().unwrap().remove("from");
    let refused = service.call(SEND_MESSAGE, &send).await;
    assert_eq!((&refused["data"]["code"], &refused["flags"]), (&json!("FromAddressMissing"), &warnings));
}

#[tokio::test]
async fn empty_strings_in_address_lists_are_problems_and_empty_lists_mean_no_recipients() {
    let service = Service::start().await;
    for (list, pointers) in [
        (json!([""]), vec!["/to/0"]),
        (json!(["a@example.net", " "]), vec!["/to/1"]),
        (json!(["", null, "\t"]), vec!["/to/0", "/to/2"]),
    ] {
        let mut send = message_to("a@example.net");
        send["to"] = list.clone();
        let refused = service.call(SEND_MESSAGE, &send).await;
        assert_eq!(
            (&refused["status"], &refused["data"]["code"]),
            (&json!("parameter-error"), &json!("ValidationError"))
        );
        let errors = refused["data"]["errors"].as_array().unwrap();
        let named: Vec<_> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
        assert_eq!(named, pointers, "{list}");
        for other in ["cc", "bcc"] {
            let mut send = message_to("a@example.net");
            send[other] = json!([""]);
            let refused = service.call(SEND_MESSAGE, &send).await;
            assert_eq!(refused["data"]["errors"][0]["pointer"], format!("/{other}/0"), "{refused}");
        }
    }
    for blank in [json!(""), json!(" , "), json!([]), json!([null])] {
        let mut send = message_to("a@example.net");
        send["to"] = blank.clone();
        send["bcc"] = blank.clone();
        assert_eq!(service.call(SEND_MESSAGE, &send).await["data"]["code"], "NoRecipients", "{blank}");
        send["cc"] = json!(["a@example.net"]);
        assert_eq!(service.call(SEND_MESSAGE, &send).await["status"], "success", "{blank}");
    }
    let raw = json!({"mail_from": "shop@example.test", "rcpt_to": [""], "data": "RnJvbTogYUB4DQoNCg=="});
    let refused = service.call(SEND_RAW, &raw).await;
    assert_eq!(refused["data"]["errors"][0]["pointer"], "/rcpt_to/0", "{refused}");
}

#[tokio::test]
async fn test_mode_is_reported_and_a_repetition_gets_the_first_answer() {
    let service = Service::start().await;
    let text = message_to("a@example.net").to_string();
    let send = async |headers: &[(&str, &str)], body: &str| {
        service.request(Method::POST, SEND_MESSAGE, headers, body).await.json()
    };
    let test = send(&[("X-Test-Mode", "TRUE"), ("Idempotency-Key", "k1")], &text).await;
    assert_eq!(test["flags"], json!({"test_mode": true}));
    let again = send(&[("X-Test-Mode", "true"), ("Idempotency-Key", "k1")], &text).await;
    assert_eq!(again["flags"], json!({"test_mode": true, "idempotent_replay": true}));
    assert_eq!(again["data"], test["data"]);
    let live = send(&[("Idempotency-Key", "k1")], &text).await;
    assert_eq!(live["data"]["code"], "IdempotencyConflict");

    let other_key = text.replacen('{', r#"{"idempotency_key": "k2","#, 1);
    let both = send(&[("Idempotency-Key", "k1")], &other_key).await;
    assert_eq!(both["data"]["errors"][0]["pointer"], "/idempotency_key", "{both}");
    let bad = send(&[("Idempotency-Key", "")], &text).await;
    assert_eq!(bad["status"], "parameter-error", "{bad}");
}

#[tokio::test]
async fn during_maintenance_calls_and_ready_get_a_503_but_health_does_not() {
    let service = Service::start().await;
    assert_eq!(service.client.get("/ready").await.unwrap().status, 200);
    service.app.set_maintenance(true).await.unwrap();
    let reply = service.client.post_json(SEND_MESSAGE, None, &json!({})).await.unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("60")));
    assert_eq!(reply.json()["data"]["code"], "Maintenance");
    let ready = service.client.get("/ready").await.unwrap();
    assert_eq!((ready.status, ready.json()), (503, json!({"status": "maintenance"})));
    let health = service.client.get("/health").await.unwrap();
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})));
    service.app.set_maintenance(false).await.unwrap();
    assert_eq!(service.call(SEND_MESSAGE, &message_to("a@example.net")).await["status"], "success");
}

#[tokio::test]
async fn a_send_gets_a_503_while_the_store_accepts_nothing() {
    let service = Service::start_on_full_disk().await;
    let send = message_to("a@example.net");
    let reply = service.client.post_json(SEND_MESSAGE, Some(&service.key), &send).await.unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{}", reply.text());
    let envelope = reply.json();
    assert_eq!(
        (&envelope["status"], &envelope["data"]["code"]),
        (&json!("error"), &json!("ServiceUnavailable"))
    );
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test]
async fn headers_that_a_parameter_overrides_are_named_in_the_warnings() {
    let service = Service::start().await;
    let mut send = message_to("a@example.net");
    send["reply_to"] = json!("reply@example.test");
    send["tag"] = json!("order");
    send["list_unsubscribe"] = json!({"mailto": "stop@example.test"});
    send["headers"] = json!({
        "Subject": "other", "FROM": "x@example.test", "To": "b@example.net", "Cc": "c@example.net", "Sender": "d@example.test",
        "Reply-To": "other@example.test", "X-Postal-Tag": "other", "List-Unsubscribe": "<https://example.test/>",
        "Date": "Sun, 15 Nov 2026 12:00:00 +0000", "Message-ID": "<own@example.test>", "X-Other": "kept",
    });
    let sent = service.call(SEND_MESSAGE, &send).await;
    let warnings: Vec<&str> = sent["flags"]["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    let ignored = [
        ("Subject", "subject"),
        ("FROM", "from"),
        ("To", "to"),
        ("Cc", "cc"),
        ("Sender", "sender"),
        ("Reply-To", "reply_to"),
        ("X-Postal-Tag", "tag"),
        ("List-Unsubscribe", "list_unsubscribe"),
    ];
    let expected = ignored.map(|(name, parameter)| {
        format!("The header `{name}` was ignored: the parameter `{parameter}` sets it")
    });
    assert_eq!(warnings, expected);
    assert_eq!(sent["data"]["message_id"], "own@example.test");
    // Without the parameter the header applies, and no warning is given.
    for name in ["reply_to", "tag", "list_unsubscribe"] {
        send.as_object_mut().unwrap().remove(name);
    }
    send["headers"] = json!({"Reply-To": "other@example.test", "X-Postal-Tag": "other", "List-Unsubscribe": "<https://x.test/>"});
    assert_eq!(service.call(SEND_MESSAGE, &send).await["flags"], json!({}));
}
