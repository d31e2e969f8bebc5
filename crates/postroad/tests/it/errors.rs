//! Every row of the error tables (docs/http-api.md) with its exact text, and the order of checks.

use serde_json::{Value, json};

use crate::world::{
    DELIVERIES, MESSAGE, RAW, SEND, World, both_engines, checked_envelope, good, good_but, good_without,
};

fn assert_error(answer: &Value, code: &str, message: &str) {
    assert_eq!(answer["status"], "error", "{answer}");
    assert_eq!(answer["data"], json!({"code": code, "message": message}), "{answer}");
}

/// Asserts a `parameter-error` with exactly these `(pointer, message)`.
pub(crate) fn assert_invalid(answer: &Value, problems: &[(&str, &str)]) {
    assert_eq!(answer["status"], "parameter-error", "{answer}");
    let errors: Vec<Value> =
        problems.iter().map(|(pointer, message)| json!({"pointer": pointer, "message": message})).collect();
    assert_eq!(
        answer["data"],
        json!({"code": "ValidationError", "message": problems[0].1, "errors": errors}),
        "{answer}"
    );
}

fn addresses(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("r{n}@example.com")).collect()
}

const NO_RECIPIENTS: (&str, &str) =
    ("NoRecipients", "There are no recipients defined to receive this message");
const NO_CONTENT: (&str, &str) = ("NoContent", "There is no content defined for this e-mail");
const FROM_MISSING: (&str, &str) = ("FromAddressMissing", "The From address is missing and is required");
const UNAUTHENTICATED: (&str, &str) =
    ("UnauthenticatedFromAddress", "The From address is not authorised to send mail from this server");

both_engines!(
    headers_that_look_like_the_sender_are_checked_like_from,
    each_code_of_send_message_has_its_text,
    each_code_of_authentication_has_its_shape,
    the_first_of_several_error_codes_is_answered,
    wrong_types_are_all_listed,
    other_invalid_values_are_validation_errors,
    malformed_requests_are_parameter_errors,
    unknown_paths_are_404_envelopes_and_other_methods_405,
    refused_requests_store_nothing
);

async fn headers_that_look_like_the_sender_are_checked_like_from(world: World) {
    let refused = [
        json!({"from": "=?utf-8?q?ceo=40bank.example?= <shop@example.test>"}),
        json!({"from": "Zoë ceo＠bank.example <shop@example.test>"}),
        json!({"sender": "=?utf-8?b?Y2VvQGJhbmsuZXhhbXBsZQ==?= <robot@example.test>"}),
        json!({"headers": {"Resent-From": "ceo@bank.example"}}),
        json!({"headers": {"resent-sender": ["shop@example.test", "Zoë <ceo@bank.example>"]}}),
        json!({"headers": {"Resent-From": "shop@example.test <x@example.test>"}}),
    ];
    for change in refused {
        let answer = world.call(SEND, &good_but(change.clone())).await;
        assert_eq!(answer["data"]["code"], UNAUTHENTICATED.0, "{change}: {answer}");
    }
    let accepted = [
        json!({"from": "=?utf-8?q?Zo=C3=AB?= <shop@example.test>"}),
        json!({"from": "\"ann@example.com via Shop\" <shop@example.test>"}),
        json!({"headers": {"Resent-From": "Zoë <shop@example.test>"}}),
    ];
    for change in accepted {
        let answer = world.call(SEND, &good_but(change.clone())).await;
        assert_eq!(answer["status"], "success", "{change}: {answer}");
    }
}

async fn each_code_of_send_message_has_its_text(world: World) {
    let too_many =
        |list: &str| format!("The maximum number of {list} addresses has been reached (maximum 50)");
    let cases = [
        (good_but(json!({"to": []})), NO_RECIPIENTS.0, NO_RECIPIENTS.1.to_owned()),
        (good_without("to"), NO_RECIPIENTS.0, NO_RECIPIENTS.1.to_owned()),
        (good_but(json!({"to": null, "cc": "", "bcc": []})), NO_RECIPIENTS.0, NO_RECIPIENTS.1.to_owned()),
        (good_but(json!({"to": addresses(51)})), "TooManyToAddresses", too_many("To")),
        (good_but(json!({"cc": addresses(51)})), "TooManyCCAddresses", too_many("CC")),
        (good_but(json!({"bcc": addresses(51).join(",")})), "TooManyBCCAddresses", too_many("BCC")),
        (good_without("plain_body"), NO_CONTENT.0, NO_CONTENT.1.to_owned()),
        (good_but(json!({"plain_body": " \n", "html_body": ""})), NO_CONTENT.0, NO_CONTENT.1.to_owned()),
        (good_without("from"), FROM_MISSING.0, FROM_MISSING.1.to_owned()),
        (good_but(json!({"from": "  "})), FROM_MISSING.0, FROM_MISSING.1.to_owned()),
        (good_but(json!({"from": "a@other.test"})), UNAUTHENTICATED.0, UNAUTHENTICATED.1.to_owned()),
        (good_but(json!({"from": "a@sub.example.test"})), UNAUTHENTICATED.0, UNAUTHENTICATED.1.to_owned()),
        (good_but(json!({"from": "nonsense"})), UNAUTHENTICATED.0, UNAUTHENTICATED.1.to_owned()),
        (good_but(json!({"sender": "a@other.test"})), UNAUTHENTICATED.0, UNAUTHENTICATED.1.to_owned()),
        (
            good_but(json!({"attachments": [{"data": "aGk="}]})),
            "AttachmentMissingName",
            "An attachment is missing a name".to_owned(),
        ),
        (
            good_but(json!({"attachments": [{"name": "a", "data": "aGk="}, {"name": "b"}]})),
            "AttachmentMissingData",
            "An attachment is missing data".to_owned(),
        ),
        (
            good_but(json!({"attachments": [{"name": "", "data": null}]})),
            "AttachmentMissingName",
            "An attachment is missing a name".to_owned(),
        ),
    ];
    for (body, code, message) in cases {
        assert_error(&world.call(SEND, &body).await, code, &message);
    }
}

async fn each_code_of_authentication_has_its_shape(world: World) {
    let ask = async |key: Option<&str>, path: &str| {
        let reply = world.client.post_json(path, key, &json!({"id": 1})).await.expect("an answer");
        crate::world::envelope(&reply)
    };
    for path in [SEND, RAW, MESSAGE, DELIVERIES] {
        for blank in [None, Some(""), Some("  ")] {
            let answer = ask(blank, path).await;
            assert_eq!(answer["status"], "error");
            assert_eq!(answer["data"]["code"], "InvalidServerAPIKey");
            assert_eq!(answer["data"]["token"], Value::Null);
            assert!(answer["data"]["message"].as_str().is_some_and(|text| text.contains("X-Server-API-Key")));
        }
        let answer = ask(Some("wrong-key"), path).await;
        assert_eq!(answer["status"], "error");
        let message = "The API token provided in X-Server-API-Key was not valid.";
        assert_eq!(
            answer["data"],
            json!({"code": "InvalidServerAPIKey", "message": message, "token": "wrong-key"})
        );
    }
    // The key is checked before the body is parsed.
    let reply = world
        .client
        .request("POST".parse().unwrap(), SEND, &[("X-Server-API-Key", "wrong-key")], "{not json".into())
        .await
        .unwrap();
    assert_eq!(reply.json()["data"]["code"], "InvalidServerAPIKey");
}

async fn the_first_of_several_error_codes_is_answered(world: World) {
    // Everything is wrong at once; each step mends one thing and uncovers the next.
    let mut body = json!({
        "to": addresses(51), "cc": addresses(51), "bcc": addresses(51), "from": "", "subject": 5, "headers": {"Bcc": "x"},
        "attachments": [{"name": "", "data": ""}], "send_at": "never",
    });
    let answer = world.call(SEND, &body).await;
    assert_invalid(&answer, &[("/subject", "`subject` should be a `String` but is a `Integer`")]);
    body.as_object_mut().unwrap().remove("subject");
    let mut steps = [
        ("TooManyToAddresses", "to", json!(["not an address"])),
        ("TooManyCCAddresses", "cc", json!([])),
        ("TooManyBCCAddresses", "bcc", json!([])),
        ("NoContent", "plain_body", json!("text")),
        ("FromAddressMissing", "from", json!("a@other.test")),
        ("UnauthenticatedFromAddress", "from", json!("a@example.test")),
        ("AttachmentMissingName", "attachments", json!([{"name": "a"}])),
        ("AttachmentMissingData", "attachments", json!([{"name": "a", "data": "%%%"}])),
    ]
    .into_iter();
    for (code, field, mended) in &mut steps {
        let answer = world.call(SEND, &body).await;
        assert_eq!(answer["data"]["code"], code, "{answer}");
        assert_eq!(answer["status"], "error", "{answer}");
        body[field] = mended;
    }
    let answer = world.call(SEND, &body).await;
    assert_eq!(answer["status"], "parameter-error");
    let pointers: Vec<&str> =
        answer["data"]["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/subject", "/to/0", "/headers/Bcc", "/send_at", "/attachments/0/data"]);
    // `NoRecipients` comes before `NoContent` and `UnauthenticatedFromAddress`.
    let none = world.call(SEND, &json!({"to": [], "from": "a@other.test"})).await;
    assert_eq!(none["data"]["code"], "NoRecipients");
}

async fn wrong_types_are_all_listed(world: World) {
    let body = json!({
        "to": 5, "cc": ["a@example.com", 7], "bcc": {"a": 1}, "from": ["a"], "subject": true, "html_body": 1.5,
        "attachments": ["x", {"name": 1}], "headers": {"X-A": {"b": 1}}, "bounce": "yes",
        "metadata": {"k": 1}, "track": {"opens": "x"},
    });
    let answer = world.call(SEND, &body).await;
    assert_eq!(answer["status"], "parameter-error", "{answer}");
    let mut found: Vec<(String, String)> = answer["data"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["pointer"].as_str().unwrap().to_owned(), e["message"].as_str().unwrap().to_owned()))
        .collect();
    found.sort();
    let mut expected = [
        ("/to", "`to` should be a `Array` but is a `Integer`"),
        ("/cc/1", "`cc/1` should be a `String` but is a `Integer`"),
        ("/bcc", "`bcc` should be a `Array` but is a `Object`"),
        ("/from", "`from` should be a `String` but is a `Array`"),
        ("/subject", "`subject` should be a `String` but is a `Boolean`"),
        ("/html_body", "`html_body` should be a `String` but is a `Float`"),
        ("/attachments/0", "`attachments/0` should be a `Object` but is a `String`"),
        ("/attachments/1/name", "`attachments/1/name` should be a `String` but is a `Integer`"),
        ("/headers/X-A", "`headers/X-A` should be a `String` but is a `Object`"),
        ("/bounce", "`bounce` should be a `Boolean` but is a `String`"),
        ("/metadata/k", "`metadata/k` should be a `String` but is a `Integer`"),
        ("/track/opens", "`track/opens` should be a `Boolean` but is a `String`"),
    ]
    .map(|(pointer, message)| (pointer.to_owned(), message.to_owned()));
    expected.sort();
    assert_eq!(found, expected);
}

async fn other_invalid_values_are_validation_errors(world: World) {
    let long = |n: usize| "x".repeat(n);
    let cases = [
        (good_without("subject"), "/subject"),
        (good_but(json!({"subject": long(999)})), "/subject"),
        (good_but(json!({"tag": long(256)})), "/tag"),
        (good_but(json!({"to": ["a@b@c", "ok@example.com"]})), "/to/0"),
        (good_but(json!({"to": "ok@example.com, broken"})), "/to"),
        (good_but(json!({"reply_to": "broken"})), "/reply_to"),
        (good_but(json!({"reply_to": ","})), "/reply_to"),
        (good_but(json!({"to": ["Al <al@example.com>, Bob <bob@example.com>"]})), "/to/0"),
        (good_but(json!({"to": ["lost@example.com, Bob <bob@example.com>"]})), "/to/0"),
        (good_but(json!({"from": "ceo@evil.test, x <hello@example.test>"})), "/from"),
        (good_but(json!({"template": {}})), "/template"),
        (good_but(json!({"from": "a b <a b@example.test>"})), "/from"),
        (good_but(json!({"attachments": [{"name": "a", "data": "***"}]})), "/attachments/0/data"),
        (
            good_but(json!({"attachments": [{"name": "a", "data": "aGk=", "content_type": "x"}]})),
            "/attachments/0/content_type",
        ),
        (good_but(json!({"attachments": vec![json!({"name": "a", "data": "aGk="}); 101]})), "/attachments"),
        (good_but(json!({"headers": {"X A": "b"}})), "/headers/X A"),
        (good_but(json!({"headers": {"X-A": long(8193)}})), "/headers/X-A"),
        (good_but(json!({"metadata": {"a": long(1025)}})), "/metadata/a"),
        (good_but(json!({"send_at": "tomorrow"})), "/send_at"),
        (good_but(json!({"send_at": "2099-01-01T00:00:00Z"})), "/send_at"),
        (good_but(json!({"expires_at": "2001-01-01T00:00:00Z"})), "/expires_at"),
        (good_but(json!({"template": {"alias": "welcome"}})), "/template"),
        (good_but(json!({"ip_pool": "fast"})), "/ip_pool"),
        (
            good_but(json!({"list_unsubscribe": {"url": "http://x.example/u", "one_click": true}})),
            "/list_unsubscribe/one_click",
        ),
        (good_but(json!({"idempotency_key": ""})), "/idempotency_key"),
        (good_but(json!({"idempotency_key": long(257)})), "/idempotency_key"),
    ];
    for (body, pointer) in cases {
        let answer = world.call(SEND, &body).await;
        assert_eq!(answer["status"], "parameter-error", "{pointer}: {answer}");
        assert_eq!(answer["data"]["code"], "ValidationError");
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{answer}");
        assert_eq!(answer["data"]["errors"][0]["message"], answer["data"]["message"]);
    }
    for reserved in [
        "Received",
        "dkim-signature",
        "Return-Path",
        "Bcc",
        "X-Postroad-Tag",
        "Content-Type",
        "Content-Transfer-Encoding",
        "MIME-Version",
    ] {
        let answer = world.call(SEND, &good_but(json!({"headers": {reserved: "x"}}))).await;
        assert_eq!(answer["status"], "parameter-error");
        let message = answer["data"]["message"].as_str().unwrap().to_lowercase();
        assert!(message.contains(&reserved.to_lowercase()), "{message}");
    }
}

async fn malformed_requests_are_parameter_errors(world: World) {
    for body in ["{", "[1]", "\"text\"", "5", "{\"to\": }", "\u{1}", "{\"a\":1}{", &"[".repeat(5_000)] {
        let reply =
            world.request("POST", SEND, &[("Content-Type", "application/json")], body.to_owned()).await;
        let answer = crate::world::envelope(&reply);
        assert_eq!(answer["status"], "parameter-error", "{body:.20}: {answer}");
        assert_eq!(answer["data"]["code"], "ValidationError");
    }
    let reply = world.request("POST", SEND, &[], vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']).await;
    assert_eq!(crate::world::envelope(&reply)["status"], "parameter-error");
}

async fn unknown_paths_are_404_envelopes_and_other_methods_405(world: World) {
    for (method, path) in [("DELETE", SEND), ("GET", "/api/v1/server/get"), ("PUT", "/api/v1/webhooks/list")]
    {
        let reply = world.request(method, path, &[], "").await;
        assert_eq!(reply.status, 405, "{method} {path}");
        assert_eq!(checked_envelope(&reply)["data"]["code"], "MethodNotAllowed");
    }
    for (method, path) in
        [("POST", "/api/v1/send/nothing"), ("GET", "/api/"), ("POST", "/api/v2/send/message")]
    {
        let reply = world.request(method, path, &[], "").await;
        assert_eq!(reply.status, 404, "{method} {path}");
        let answer = checked_envelope(&reply);
        assert_eq!(answer["status"], "error");
        assert_eq!(answer["data"]["code"], "UnknownEndpoint");
    }
}

async fn refused_requests_store_nothing(world: World) {
    let before = world.accepted_id(&good()).await;
    for body in
        [good_but(json!({"from": "a@other.test"})), good_but(json!({"tag": 1})), good_without("subject")]
    {
        assert_ne!(world.call(SEND, &body).await["status"], "success");
    }
    let after = world.accepted_id(&good()).await;
    // Ids between the two are those of events, not of messages.
    assert!(after > before);
    let between: Vec<i64> = (before + 1..after.min(before + 64)).collect();
    for id in between {
        let answer = world.call(MESSAGE, &json!({"id": id})).await;
        assert_eq!(answer["data"]["code"], "MessageNotFound");
    }
}
