//! Variants of a request: methods, paths, form encoding, JSON as PHP writes it, invalid JSON.

use hyper::Method;
use serde_json::{Value, json};

use crate::service::{DELIVERIES, MESSAGE, SEND_MESSAGE, SEND_RAW, Service, message_to};

const MESSAGE_NOT_FOUND: &str = "MessageNotFound";

#[tokio::test]
async fn the_endpoints_of_postal_accept_four_methods_and_all_others_only_post() {
    let service = Service::start().await;
    for path in [MESSAGE, DELIVERIES] {
        for method in [Method::POST, Method::GET, Method::PUT, Method::PATCH] {
            let reply = service.request(method.clone(), path, &[], r#"{"id": 7}"#).await;
            assert_eq!(reply.json()["data"]["code"], MESSAGE_NOT_FOUND, "{method}");
        }
    }
    for path in [SEND_MESSAGE, SEND_RAW, MESSAGE, DELIVERIES] {
        for method in [Method::DELETE, Method::HEAD, Method::OPTIONS] {
            let reply = service.request(method.clone(), path, &[], "").await;
            assert_eq!(
                (reply.status, reply.header("allow")),
                (405, Some("POST, GET, PUT, PATCH")),
                "{method}"
            );
            if method != Method::HEAD {
                let message = format!("This endpoint does not take {method}; use POST");
                assert_eq!(reply.json()["data"], json!({"code": "MethodNotAllowed", "message": message}));
            }
        }
    }
    let document: Value = serde_json::from_str(postroad_api::OPENAPI_JSON).unwrap();
    let all = document["paths"].as_object().unwrap().keys();
    let others: Vec<_> =
        all.filter(|path| ![SEND_MESSAGE, SEND_RAW, MESSAGE, DELIVERIES].contains(&path.as_str())).collect();
    assert!(others.len() > 20);
    for path in others {
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            let reply = service.request(method.clone(), path, &[], "{}").await;
            assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method} {path}");
            let envelope = reply.json();
            assert_eq!((&envelope["status"], &envelope["flags"]), (&json!("error"), &json!({})));
            assert_eq!(envelope["data"]["code"], "MethodNotAllowed");
        }
    }
}

#[tokio::test]
async fn a_trailing_slash_in_the_path_is_ignored() {
    let service = Service::start().await;
    for path in [format!("{MESSAGE}/"), format!("{MESSAGE}//")] {
        let reply = service.request(Method::POST, &path, &[], r#"{"id": 7}"#).await;
        assert_eq!((reply.status, &reply.json()["data"]["code"]), (200, &json!(MESSAGE_NOT_FOUND)), "{path}");
    }
    let query = format!("{MESSAGE}/?params=%7B%22id%22%3A7%7D");
    assert_eq!(service.request(Method::GET, &query, &[], "").await.json()["data"]["code"], MESSAGE_NOT_FOUND);
}

#[tokio::test]
async fn json_as_php_writes_it_is_understood() {
    let service = Service::start().await;
    let mut send = message_to("a@example.net");
    for (field, value) in [("headers", json!([])), ("metadata", json!([]))] {
        send[field] = value;
    }
    for (bounce, is_bounce) in [
        (json!(0), false),
        (json!(1), true),
        (json!("true"), true),
        (json!("false"), false),
        (json!(true), true),
    ] {
        send["bounce"] = bounce.clone();
        let sent = service.call(SEND_MESSAGE, &send).await;
        assert_eq!(sent["status"], "success", "{sent}");
        let id = &sent["data"]["messages"]["a@example.net"]["id"];
        let found = service.call(MESSAGE, &json!({"id": id, "_expansions": ["details"]})).await;
        let details = &found["data"]["details"];
        assert_eq!((&details["bounce"], &details["metadata"]), (&json!(is_bounce), &json!({})), "{bounce}");
    }
    for odd in [json!(2), json!("yes"), json!("1"), json!([])] {
        send["bounce"] = odd.clone();
        let refused = service.call(SEND_MESSAGE, &send).await;
        assert_eq!(refused["data"]["errors"][0]["pointer"], "/bounce", "{odd}: {refused}");
    }
    let raw = json!({
        "mail_from": "", "rcpt_to": ["a@example.net"], "bounce": 1, "data": "RnJvbTogYUBleGFtcGxlLnRlc3QNCg0KeA==",
    });
    assert_eq!(service.call(SEND_RAW, &raw).await["status"], "success");
}

#[tokio::test]
async fn the_json_is_read_from_the_field_params() {
    let service = Service::start().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let multipart = ("content-type", "multipart/form-data; boundary=xx");
    let parts = "--xx\r\nContent-Disposition: form-data; name=\"params\"\r\n\r\n{\"id\": 7}\r\n--xx--\r\n";
    for (header, body) in [(form, "params=%7B%22id%22%3A7%7D"), (form, r#"{"id": 7}"#), (multipart, parts)] {
        let reply = service.request(Method::POST, MESSAGE, &[header], body).await;
        assert_eq!(reply.json()["data"]["code"], MESSAGE_NOT_FOUND, "{body}: {}", reply.text());
    }
    let query = format!("{MESSAGE}?params=%7B%22id%22%3A7%7D");
    assert_eq!(service.request(Method::GET, &query, &[], "").await.json()["data"]["code"], MESSAGE_NOT_FOUND);
    let reply = service.request(Method::POST, MESSAGE, &[form], "id=7").await.json();
    assert_eq!(reply["data"]["message"], "A form must carry the request as JSON text in the field `params`");
}

#[tokio::test]
async fn invalid_json_is_a_parameter_error() {
    let service = Service::start().await;
    let message = async |body: &str| {
        let envelope = service.request(Method::POST, MESSAGE, &[], body).await.json();
        assert_eq!(envelope["status"], "parameter-error", "{body}");
        envelope["data"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message("").await, "`id` parameter is required but is missing");
    assert_eq!(message("[1]").await, "The request body must be a JSON object");
    let broken = "{\"id\":\n1,}";
    assert_eq!(
        message(broken).await,
        "The request body is not valid JSON: trailing comma at line 2 column 3"
    );
    let deep = format!("{{\"id\": {}", "[".repeat(100_000));
    assert!(message(&deep).await.contains("recursion limit"));
    let mut bytes = b"{\"id\": \"".to_vec();
    bytes.extend(b"\xff\"}");
    let headers = [("x-server-api-key", service.key.as_str())];
    let reply = service.client.request(Method::POST, MESSAGE, &headers, bytes.into()).await.unwrap();
    assert_eq!(reply.json()["status"], "parameter-error");
}

#[tokio::test]
async fn unknown_endpoints_are_not_found() {
    let service = Service::start().await;
    for path in ["/api", "/api/", "/api/v1/send", "/api/v1/send/nothing/", "/api/v2/send/message", "/api/%00"]
    {
        let reply = service.client.post_json(path, None, &json!({})).await.unwrap();
        let envelope = reply.json();
        assert_eq!((reply.status, &envelope["data"]["code"]), (404, &json!("UnknownEndpoint")), "{path}");
        assert_eq!((&envelope["status"], &envelope["flags"]), (&json!("error"), &json!({})));
        assert!(reply.header("x-request-id").is_some());
    }
    let reply = service.client.get("/favicon.ico").await.unwrap();
    assert_eq!(reply.status, 404);
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test]
async fn a_safe_request_id_of_the_client_is_echoed() {
    let service = Service::start().await;
    let id = |reply: postroad_testkit::Reply| reply.header("x-request-id").unwrap().to_owned();
    let given = service.request(Method::POST, MESSAGE, &[("x-request-id", "order-12.a_b")], "{}").await;
    assert_eq!(id(given), "order-12.a_b");
    let odd = id(service.request(Method::POST, MESSAGE, &[("x-request-id", "a b")], "{}").await);
    assert_eq!(odd.len(), 36, "{odd}");
}

#[tokio::test]
async fn the_openapi_document_is_served_without_a_key() {
    let service = Service::start().await;
    let reply = service.client.get("/api/v1/openapi.json").await.unwrap();
    let document: Value = reply.json();
    assert_eq!((reply.status, &document["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(reply.text(), postroad_api::OPENAPI_JSON);
    let posted = service.client.post_json("/api/v1/openapi.json", None, &json!({})).await.unwrap();
    assert_eq!((posted.status, &posted.json()["data"]["code"]), (405, &json!("MethodNotAllowed")));
}

#[tokio::test]
async fn a_value_with_escapes_arrives_unescaped() {
    let service = Service::start().await;
    let mut send = message_to("a@example.net");
    send["subject"] = json!("a \"quoted\" \u{1f600} subject");
    let sent = service.call(SEND_MESSAGE, &send).await;
    let id = &sent["data"]["messages"]["a@example.net"]["id"];
    let found = service.call(MESSAGE, &json!({"id": id, "_expansions": ["details"]})).await;
    assert_eq!(found["data"]["details"]["subject"], send["subject"]);
}
