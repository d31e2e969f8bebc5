//! Sends to the inbox with our own client session, with and without PIPELINING and CHUNKING.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use postroad_delivery::{Inbox, InboxServer};
use postroad_model::{DomainName, EmailAddress};
use postroad_smtp::{Body, ClientConfig, ClientSession, Event, HeloName, OutgoingMessage, Verdict};
use postroad_testkit::ManualClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends the messages on one connection. Returns a verdict for each.
async fn send(address: SocketAddr, config: ClientConfig, messages: Vec<OutgoingMessage>) -> Vec<Verdict> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut session = ClientSession::new(config);
    let (mut messages, mut verdicts) = (messages.into_iter(), Vec::new());
    let (mut out, mut input) = (Vec::new(), [0; 4_096]);
    loop {
        let is_filled = session.fill_output(&mut out, 64 << 10) > 0;
        let mut has_event = false;
        while let Some(event) = session.next_event() {
            has_event = true;
            match event {
                Event::Ready => match messages.next() {
                    Some(message) => session.send(message).unwrap(),
                    None => session.quit().unwrap(),
                },
                Event::Outcome(outcome) => verdicts.push(outcome.verdict),
                Event::Closed(_) => return verdicts,
                Event::StartTls | Event::Finishing => {}
            }
        }
        if !out.is_empty() {
            stream.write_all(&std::mem::take(&mut out)).await.unwrap();
        } else if !is_filled && !has_event {
            let count = stream.read(&mut input).await.unwrap();
            assert!(count > 0, "the inbox does not hang up");
            session.feed(&input[..count]);
        }
    }
}

#[tokio::test]
async fn mail_is_caught_with_and_without_pipelining_and_chunking() {
    let inbox = Inbox::new(Arc::new(ManualClock::default()));
    let (_server, address) = InboxServer::start(inbox.clone()).await.unwrap();
    let line = "a line of a message, with .dots. and ünïcode\r\n.\r\n";
    let large = Bytes::from(line.repeat(20_000));
    for (pipelining, chunking) in [(false, false), (true, false), (false, true), (true, true)] {
        let helo = HeloName::from(DomainName::parse("out.example.org").unwrap());
        let config = ClientConfig { pipelining, chunking, ..ClientConfig::new(helo) };
        let message = |text: &Bytes| OutgoingMessage {
            mail_from: None,
            rcpt_to: EmailAddress::parse("jürgen@example.net").unwrap(),
            body: Body::parse(vec![text.clone()]).unwrap(),
            has_utf8_header: false,
        };
        let small = Bytes::from_static(b"Subject: small\r\n\r\n");
        let verdicts = send(address, config, vec![message(&small), message(&large)]).await;
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Accepted(_))), "{verdicts:?}");
        let caught = inbox.list(2);
        assert!(
            caught[0].raw == large && caught[1].raw == small,
            "pipelining {pipelining}, chunking {chunking}"
        );
    }
    assert_eq!(inbox.list(500).len(), 8);
}
