//! Accepted messages and their stored form.

use postroad_model::Protocol;

use crate::service::{FROM, Service, message_text};

#[tokio::test]
async fn a_message_is_kept_for_each_recipient_of_the_envelope() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let headers = "To: somebody@else.example\r\nBcc: hidden@example.org\r\nReturn-Path: <x@example.org>\r\n";
    let to = ["ann@example.com", "bob@example.org", "ann@EXAMPLE.com"];
    let reply = client.deliver("bounces@elsewhere.example", &to, &message_text(headers)).await;
    let stored = service.take_stored().await;
    assert!(stored[0].is_answered_by(&reply), "{reply}");
    let recipients: Vec<&str> = stored.iter().map(|stored| stored.message.rcpt_to.as_str()).collect();
    assert_eq!(recipients, ["ann@example.com", "bob@example.org"]);
    assert_eq!(stored[0].message.send.id, stored[1].message.send.id, "they share one body");
    for stored in &stored {
        let send = &stored.message.send;
        assert_eq!(send.mail_from, "bounces@elsewhere.example");
        assert_eq!(send.subject, "Hello");
        assert!(send.received_with_ssl && !send.bounce);
        assert_eq!(send.options.protocol, Protocol::Utf8Smtpsa, "the client of the tests says SMTPUTF8");
        let (head, body) = stored.text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "Hello there\r\n");
        assert!(head.starts_with("Date: "), "{head}");
        assert!(head.contains(&format!("\r\nMessage-ID: <{}>\r\n", send.message_id)), "{head}");
        assert!(head.contains("\r\nTo: somebody@else.example\r\n"), "{head}");
        assert!(!head.contains("Bcc") && !head.contains("Return-Path"), "{head}");
    }
}

#[tokio::test]
async fn the_starttls_listener_accepts_a_message() {
    let service = Service::start().await;
    let mut client = postroad_testkit::SmtpClient::connect_starttls(service.starttls).await;
    client.say(&crate::service::auth_plain(&service.key, &service.secret)).await;
    for line in ["MAIL FROM:<shop@example.test>", "RCPT TO:<ann@example.com>"] {
        assert!(client.say(line).await.starts_with("250 "));
    }
    assert!(client.say("DATA").await.starts_with("354 "));
    let reply = client.say(&format!("{}\r\n.", message_text(""))).await;
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&reply), "{reply}");
    assert_eq!(stored.message.send.options.protocol, Protocol::Esmtpsa);
}

#[tokio::test]
async fn the_null_sender_makes_a_bounce() {
    let service = Service::start().await;
    service.client().await.deliver("", &["ann@example.com"], &message_text("")).await;
    let send = service.take_only_stored().await.message.send;
    assert_eq!((send.mail_from.as_str(), send.bounce), ("", true));
}

#[tokio::test]
async fn every_from_address_must_belong_to_the_server() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let refusal = "550 5.7.1 The From address is not authorised to send mail from this server";
    for head in [
        "From: ceo@bank.example\r\n",
        "From: shop@example.test, ceo@bank.example\r\n",
        "From: shop@example.test\r\nFrom: ceo@bank.example\r\n",
        "From: shop@example.test\r\nSender: ceo@bank.example\r\n",
        "From: \"shop@example.test\" <ceo@bank.example>\r\n",
        "From: shop@sub.example.test\r\n",
        "From: shop@example.test.bank.example\r\n",
        "From: undisclosed:;\r\n",
        "From: =?utf-8?q?shop=40example.test?= <ceo@bank.example>\r\n",
        "Subject: nobody\r\n",
    ] {
        let reply = client.deliver(FROM, &["ann@example.com"], &format!("{head}\r\nx\r\n")).await;
        assert_eq!(reply, refusal, "{head}");
    }
    assert!(service.take_stored().await.is_empty());
    let reply = client.deliver(FROM, &["ann@example.com"], &message_text("")).await;
    assert!(reply.starts_with("250 "), "the session goes on: {reply}");
}

#[tokio::test]
async fn malformed_messages_are_refused() {
    let service = Service::start().await;
    let mut client = service.client().await;
    for (message, refusal) in [
        ("\r\nno headers\r\n", "550 5.6.0 The message is empty or has no headers"),
        (
            "From: shop@example.test\r\nnot a header\r\n\r\n",
            "550 5.6.0 Line 2 of the message is not a valid header line",
        ),
        (
            "From: shop@example.test\r\nSubject: a\r\nSubject: b\r\n\r\n",
            "550 5.6.0 The message has more than one Subject header",
        ),
    ] {
        assert_eq!(client.deliver(FROM, &["ann@example.com"], message).await, refusal);
    }
    assert!(service.take_stored().await.is_empty());
}

#[tokio::test]
async fn several_bdat_chunks_make_one_message() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let message = message_text("");
    let (one, other) = message.split_at(message.len() - 9);
    let all = format!(
        "MAIL FROM:<{FROM}> BODY=8BITMIME\r\nRCPT TO:<ann@example.com>\r\nBDAT {}\r\n{one}BDAT {}\r\n{other}BDAT 0 LAST\r\n",
        one.len(),
        other.len(),
    );
    client.send(all.as_bytes()).await;
    let mut replies = Vec::new();
    for _ in 0..5 {
        replies.push(client.reply().await);
    }
    assert_eq!(replies[2..4], ["250 2.0.0 Chunk OK"; 2]);
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&replies[4]), "{replies:?}");
    assert!(stored.text.ends_with(&message));
}

#[tokio::test]
async fn an_international_address_needs_smtputf8() {
    let service = Service::start().await;
    let mut client = service.client().await;
    client.say(&format!("MAIL FROM:<{FROM}>")).await;
    let reply = client.say("RCPT TO:<jürgen@example.com>").await;
    assert_eq!(reply, "553 5.6.7 The address needs SMTPUTF8 with MAIL");
    client.say("RSET").await;
    let message = message_text("X-Note: grüße\r\n");
    let reply = client.deliver(FROM, &["jürgen@bücher.example"], &message).await;
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&reply), "{reply}");
    assert_eq!(stored.message.rcpt_to, "jürgen@bücher.example");
}

#[tokio::test]
async fn a_large_message_comes_through_whole() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let line = "0123456789abcdef".repeat(60) + "\r\n";
    let message = message_text("") + "\r\n" + &line.repeat((25 << 20) / line.len() - 1) + "the end";
    let reply = client.deliver(FROM, &["ann@example.com"], &message).await;
    let stored = service.take_only_stored().await;
    assert!(stored.is_answered_by(&reply), "{reply}");
    assert!(stored.text.ends_with(&(message + "\r\n")));
}

#[tokio::test]
async fn any_way_of_cutting_the_bytes_makes_the_same_message() {
    let service = Service::start().await;
    let dialogue = format!(
        "MAIL FROM:<{FROM}>\r\nRCPT TO:<ann@example.com>\r\nDATA\r\n{}\r\n..dot\r\n.\r\nNOOP\r\n",
        message_text("")
    );
    // In one piece, byte by byte, and cut inside every CRLF.
    let inside_crlf: Vec<String> = dialogue.split_inclusive('\r').map(ToOwned::to_owned).collect();
    let bytes: Vec<String> = dialogue.chars().map(|c| c.to_string()).collect();
    for pieces in [vec![dialogue.clone()], bytes, inside_crlf] {
        let mut client = service.client().await;
        for piece in &pieces {
            client.send(piece.as_bytes()).await;
        }
        let mut replies = Vec::new();
        for _ in 0..5 {
            replies.push(client.reply().await);
        }
        assert_eq!(replies[..2], ["250 2.1.0 Sender OK", "250 2.1.5 Recipient OK"]);
        let stored = service.take_only_stored().await;
        assert!(stored.is_answered_by(&replies[3]), "{replies:?}");
        assert!(stored.text.ends_with("Hello there\r\n.dot\r\n"));
        assert_eq!(replies[4], "250 2.0.0 OK");
    }
}
