//! SMTP smuggling and open relaying, which must both fail.

use postroad_testkit::SmtpClient;

use crate::service::{FROM, Service, message_text};

/// Sequences that a mail server may take for the end of data by mistake.
const FALSE_ENDS: &[&str] = &[
    "\n.\n",
    "\n.\r\n",
    "\n.\r",
    "\r.\r",
    "\r.\n",
    "\r.\r\n",
    "\r\n.\n",
    "\r\n.\r",
    "\r\n.\r\r\n",
    "\r\n\0.\r\n",
    "\r\n.\0\r\n",
    "\r\n.\r\0\n",
    "\r\0\n.\r\n",
    "\0\n.\r\n",
    "\r\n. \r\n",
    "\r\n .\r\n",
    "\n\n.\n\n",
    "\r\n.\n\r\n",
    "\r\n\u{0}\r\n.\n",
    "\n..\n",
    "\n..\r\n",
    "\n\r\n.\n",
    "\r\n\n.\r\n",
];

#[tokio::test]
async fn no_false_end_of_data_makes_a_second_message() {
    let service = Service::start().await;
    for end in FALSE_ENDS {
        let mut client = service.client().await;
        let second = format!(
            "MAIL FROM:<{FROM}>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\nFrom: {FROM}\r\nSubject: second\r\n\r\nx"
        );
        client.send(format!("MAIL FROM:<{FROM}>\r\nRCPT TO:<ann@example.com>\r\nDATA\r\n").as_bytes()).await;
        for _ in 0..3 {
            client.reply().await;
        }
        client.send(format!("{}x{end}{second}\r\n.\r\nQUIT\r\n", message_text("")).as_bytes()).await;
        let reply = client.reply().await;
        assert_eq!(client.reply().await, "221 2.0.0 Bye", "{end:?}: there was a second reply after {reply}");
        let stored = service.take_stored().await;
        assert!(stored.len() <= 1, "{end:?}");
        assert!(stored.iter().all(|stored| stored.message.rcpt_to == "ann@example.com"), "{end:?}");
        let is_refused = reply.starts_with("550 5.6.0 ");
        assert_eq!(is_refused, stored.is_empty(), "{end:?}: {reply}");
        // Bare LF is converted to CRLF; bare CR and NUL are refused.
        assert_eq!(is_refused, end.replace("\r\n", "").contains(['\r', '\0']), "{end:?}: {reply}");
        for stored in stored {
            assert!(!stored.text.replace("\r\n", "").contains(['\r', '\n']), "{end:?}: {:?}", stored.text);
            assert!(stored.text.contains("\r\nRCPT TO:<victim@example.net>\r\n"), "{end:?}: not content");
        }
    }
}

#[tokio::test]
async fn bare_lf_from_a_client_is_normalised_in_data_and_in_chunks() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let message =
        format!("From: {FROM}\nSubject: Hello\nMessage-ID: <1@x>\nDate: x\n\n.one\n..two\r\nthree\n");
    let envelope = format!("MAIL FROM:<{FROM}>\r\nRCPT TO:<ann@example.com>\r\n");
    for (wire, body) in [
        (format!("DATA\r\n{message}\r\n.\r\n"), ".one\r\n.two\r\nthree\r\n\r\n"),
        (format!("BDAT {} LAST\r\n{message}", message.len()), ".one\r\n..two\r\nthree\r\n"),
    ] {
        client.send(format!("{envelope}{wire}").as_bytes()).await;
        let mut reply = client.reply().await;
        while !reply.contains("queued as") {
            assert!(reply.starts_with(['2', '3']), "{reply}");
            reply = client.reply().await;
        }
        let stored = service.take_only_stored().await;
        assert_eq!(stored.text.split_once("\r\n\r\n").unwrap().1, body);
        assert!(!stored.text.replace("\r\n", "").contains(['\r', '\n']));
    }
    assert_eq!(client.say("NOOP\n").await, "500 5.5.2 A line ends with CRLF, and holds no other CR or LF");
}

#[tokio::test]
async fn bare_cr_in_chunks_is_refused() {
    let service = Service::start().await;
    for bare in ["\r", "\r\r\n", "\n\r"] {
        let mut client = service.client().await;
        let message = format!("{}a{bare}b\r\n", message_text(""));
        let all = format!(
            "MAIL FROM:<{FROM}>\r\nRCPT TO:<ann@example.com>\r\nBDAT {} LAST\r\n{message}",
            message.len()
        );
        client.send(all.as_bytes()).await;
        client.reply().await;
        client.reply().await;
        assert!(client.reply().await.starts_with("550 5.6.0 "), "{bare:?}");
    }
    assert!(service.take_stored().await.is_empty());
}

#[tokio::test]
async fn commands_sent_before_tls_are_never_executed() {
    let service = Service::start().await;
    let mut client = SmtpClient::connect(service.starttls).await;
    client
        .send(format!("STARTTLS\r\nEHLO injected.example\r\nMAIL FROM:<{FROM}>\r\nNOOP\r\n").as_bytes())
        .await;
    assert!(client.reply().await.starts_with("220 "));
    let mut client = client.tls_handshake().await.unwrap();
    // The injected commands get no reply, and the injected EHLO does not count.
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "503 5.5.1 Say EHLO first");
    assert!(client.say("EHLO client.example").await.starts_with("250-"));
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
}

#[tokio::test]
async fn strangers_cannot_relay_by_any_trick() {
    let service = Service::start().await;
    let senders = [
        "",
        "shop@example.test",
        "token@rp.mail.example.test",
        "postmaster@mail.example.test",
        "a@[127.0.0.1]",
    ];
    let recipients = [
        "victim@example.net",
        "victim%example.net@mail.example.test",
        "@mail.example.test:victim@example.net",
        "\"victim@example.net\"@mail.example.test",
        "example.net!victim@mail.example.test",
        "victim@example.net@mail.example.test",
        "victim@[192.0.2.1]",
        "token@rp.mail.example.test",
        "postmaster",
    ];
    let mut inside = SmtpClient::connect_starttls(service.starttls).await;
    let mut outside = SmtpClient::connect(service.starttls).await;
    let mut plain = SmtpClient::connect(service.plain).await;
    for client in [&mut inside, &mut outside, &mut plain] {
        for sender in senders {
            assert!(client.say(&format!("MAIL FROM:<{sender}>")).await.starts_with("530 5.7.0 "), "{sender}");
            for recipient in recipients {
                let reply = client.say(&format!("RCPT TO:<{recipient}>")).await;
                assert!(reply.starts_with('5'), "{sender} {recipient}: {reply}");
                let reply = client.say("DATA").await;
                assert!(reply.starts_with('5'), "{sender} {recipient}: {reply}");
            }
        }
    }
}

#[tokio::test]
async fn routes_are_refused_to_customers_as_well() {
    let service = Service::start().await;
    let mut client = service.client().await;
    client.say(&format!("MAIL FROM:<{FROM}>")).await;
    for (recipient, refusal) in [
        ("victim%example.net@example.com", "553 5.1.3 Routes in addresses are not accepted"),
        ("example.net!victim@example.com", "553 5.1.3 Routes in addresses are not accepted"),
        ("\"victim@example.net\"@example.com", "553 5.1.3 Routes in addresses are not accepted"),
        ("@example.com:victim@example.net", "553 5.1.3 Source routes are not accepted"),
        ("victim@example.net@example.com", "501 5.1.3 The recipient's address is not valid"),
        ("victim@[192.0.2.1]", "501 5.1.3 The recipient's address is not valid"),
    ] {
        assert_eq!(client.say(&format!("RCPT TO:<{recipient}>")).await, refusal, "{recipient}");
    }
    assert_eq!(client.say("DATA").await, "554 5.5.1 No valid recipients");
}
