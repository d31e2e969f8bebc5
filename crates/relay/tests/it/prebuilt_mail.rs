//! Checks and changes of headers and lines in pre-built messages.

use crate::service::{FROM, Service, message_text};

const TO: [&str; 1] = ["ann@example.com"];

#[tokio::test]
async fn a_mail_loop_is_refused() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let refusal =
        "550 5.4.6 The message is in a mail loop: it has passed too many servers, or this service too often";
    let foreign = "Received: from a.example by b.example with SMTP; Sun, 15 Nov 2026 03:00:00 +0000\r\n";
    let own = "Received: by mail.example.test (Postroad) with ESMTPSA id aB3dE5fG7hI9jK1l;\r\n\tSun, 15 Nov 2026 03:00:00 +0000\r\n";
    assert_eq!(client.deliver(FROM, &TO, &message_text(&foreign.repeat(50))).await, refusal);
    assert_eq!(client.deliver(FROM, &TO, &message_text(&own.repeat(5))).await, refusal);
    for fine in [foreign.repeat(49), own.repeat(4)] {
        assert!(client.deliver(FROM, &TO, &message_text(&fine)).await.starts_with("250 "));
    }
    assert_eq!(service.take_stored().await.len(), 2);
}

#[tokio::test]
async fn non_ascii_headers_are_encoded_on_acceptance() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let reply = client.deliver(FROM, &TO, &message_text("X-Note: Grüße\r\n")).await;
    assert!(reply.starts_with("250 "), "{reply}");
    let stored = service.take_only_stored().await;
    assert!(stored.text.contains("X-Note: =?utf-8?B?R3LDvMOfZQ==?=\r\n"), "{}", stored.text);
    client.say(&format!("MAIL FROM:<{FROM}>")).await;
    client.say("RCPT TO:<ann@example.com>").await;
    client.say("DATA").await;
    client
        .send(&[b"Subject: J\xfcrgen\r\nFrom: J\xfcrgen <", FROM.as_bytes(), b">\r\n\r\nx\r\n.\r\n"].concat())
        .await;
    assert!(client.reply().await.starts_with("250 "));
    let stored = service.take_only_stored().await;
    assert_eq!(stored.message.send.subject, "Jürgen");
    assert!(stored.text.contains("From: =?utf-8?Q?J=C3=BCrgen?= <shop@example.test>\r\n"), "{}", stored.text);
}

#[tokio::test]
async fn lines_over_998_bytes_are_refused() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let refusal = "550 5.6.0 Line 5 of the message is longer than 998 bytes; send long lines as quoted-printable or base64";
    let message = |length: usize| format!("{}\r\n{}\r\n", message_text(""), "x".repeat(length));
    assert_eq!(client.deliver(FROM, &TO, &message(999)).await, refusal);
    assert!(client.deliver(FROM, &TO, &message(998)).await.starts_with("250 "));
}

#[tokio::test]
async fn headers_that_look_like_the_sender_are_checked_like_from() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let refusal = "550 5.7.1 The From address is not authorised to send mail from this server";
    for message in [
        format!("Resent-From: ceo@bank.example\r\nFrom: {FROM}\r\n\r\nx"),
        format!("Resent-Sender: ceo@bank.example\r\nFrom: {FROM}\r\n\r\nx"),
        format!("From: =?utf-8?q?ceo=40bank.example?= <{FROM}>\r\n\r\nx"),
        format!("From: {FROM}\r\nSender: =?utf-8?b?Y2VvQGJhbmsuZXhhbXBsZQ==?= <{FROM}>\r\n\r\nx"),
    ] {
        assert_eq!(client.deliver(FROM, &TO, &message).await, refusal, "{message}");
    }
    let fine = format!("Resent-From: {FROM}\r\nFrom: =?utf-8?q?shop=40example.test?= <{FROM}>\r\n\r\nx");
    assert!(client.deliver(FROM, &TO, &fine).await.starts_with("250 "));
}
