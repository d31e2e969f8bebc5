//! Submission options given as headers; the HTTP API has fields for them.

use postroad_model::Status;

use crate::service::{FROM, Service, message_text};

const TO: [&str; 1] = ["ann@example.com"];

#[tokio::test]
async fn tags_metadata_and_tracking_are_kept_and_their_headers_are_not() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let headers = "X-Postal-Tag: welcome\r\nX-Metadata-Order: 4711\r\nX-Metadata-Who: =?utf-8?q?J=C3=BCrgen?=\r\n\
                   X-Track-Opens: true\r\nX-Track-Clicks: false\r\nX-Mailer: stays\r\nX-Postroad-Whatever: goes\r\n";
    client.deliver(FROM, &TO, &message_text(headers)).await;
    let stored = service.take_only_stored().await;
    let send = &stored.message.send;
    assert_eq!(send.tag.as_deref(), Some("welcome"));
    let metadata: Vec<_> =
        send.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(metadata, [("order", "4711"), ("who", "Jürgen")]);
    let tracking = send.options.tracking.as_ref().unwrap();
    assert_eq!((tracking.opens, tracking.clicks), (true, false));
    let kept: Vec<&str> = stored.text.lines().filter(|line| line.starts_with("X-")).collect();
    assert_eq!(kept, ["X-Mailer: stays"]);
    client.deliver(FROM, &TO, &message_text("X-Postal-Tag: b\r\nX-Postroad-Tag: a\r\n")).await;
    assert_eq!(
        service.take_only_stored().await.message.send.tag.as_deref(),
        Some("a"),
        "X-Postroad-Tag wins"
    );
}

#[tokio::test]
async fn test_mode_by_header_and_by_key_queues_nothing() {
    let service = Service::start().await;
    let mut client = service.client().await;
    for word in ["TRUE", "1", "yes", "On"] {
        let reply = client.deliver(FROM, &TO, &message_text(&format!("X-Test-Mode: {word}\r\n"))).await;
        assert!(reply.starts_with("250 2.0.0 OK queued as "), "{word}: {reply}");
    }
    let made = service.create_key(|key| key.test = true).await;
    let mut client = postroad_testkit::SmtpClient::connect_tls(service.tls).await;
    let auth =
        crate::service::auth_plain(made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
    client.say(&auth).await;
    assert!(client.deliver(FROM, &TO, &message_text("")).await.starts_with("250 "));
    assert!(service.take_stored().await.is_empty());
    let refused = client.deliver(FROM, &TO, "From: a@bank.example\r\n\r\n").await;
    assert!(refused.starts_with("550 5.7.1 "), "test mode skips no check: {refused}");
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let tag = format!("X-Postroad-Tag: {}\r\n", "t".repeat(256));
    for (header, refusal) in [
        (tag.as_str(), "550 5.6.0 The tag is longer than 255 bytes"),
        ("X-Test-Mode: enabled\r\n", "550 5.6.0 The header X-Test-Mode must be true or false"),
        ("X-Test-Mode:\r\n", "550 5.6.0 The header X-Test-Mode must be true or false"),
        ("X-Track-Opens: perhaps\r\n", "550 5.6.0 The header X-Track-Opens must be true or false"),
    ] {
        assert_eq!(client.deliver(FROM, &TO, &message_text(header)).await, refusal);
    }
    assert!(service.take_stored().await.is_empty());
}

#[tokio::test]
async fn a_repetition_with_the_same_idempotency_key_is_answered_and_not_stored() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let keyed = |more: &str| message_text(&format!("X-Idempotency-Key: order 1\r\n{more}"));
    let first = client.deliver(FROM, &TO, &keyed("")).await;
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&first), "{first}");
    assert!(!stored.text.contains("Idempotency"));
    // The Date and Message-ID that Postroad adds differ; the request is the same.
    assert_eq!(service.client().await.deliver(FROM, &TO, &keyed("")).await, first);
    let conflict = "550 5.5.0 The idempotency key was used before for a different request";
    for (to, more) in [(&["bob@example.com"], ""), (&TO, "X-Other: 1\r\n"), (&TO, "X-Postal-Tag: 1\r\n")] {
        assert_eq!(client.deliver(FROM, to, &keyed(more)).await, conflict);
    }
    assert!(service.take_stored().await.is_empty());
    let other = client.deliver(FROM, &TO, &message_text("X-Idempotency-Key: order 2\r\n")).await;
    assert!(service.take_only_stored().await.is_answered_by(&other));
}

#[tokio::test]
async fn messages_of_a_holding_key_are_held() {
    let service = Service::start().await;
    let made = service.create_key(|key| key.hold = true).await;
    let mut client = postroad_testkit::SmtpClient::connect_tls(service.tls).await;
    let auth =
        crate::service::auth_plain(made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
    client.say(&auth).await;
    assert!(client.deliver(FROM, &TO, &message_text("")).await.starts_with("250 "));
    assert!(service.take_stored().await.is_empty(), "held messages are not queued");
    service.client().await.deliver(FROM, &TO, &message_text("")).await;
    assert_eq!(service.take_only_stored().await.message.status, Status::Pending);
}
