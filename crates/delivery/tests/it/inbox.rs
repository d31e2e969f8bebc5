//! The inbox catches sent mail and notifies waiting callers.

use std::sync::Arc;
use std::time::Duration;

use postroad_delivery::{Inbox, InboxServer, MessageMatcher};
use postroad_model::EmailAddress;
use postroad_testkit::{ManualClock, SmtpClient, eventually};

const WAIT_MAX: Duration = Duration::from_secs(20);

fn inbox() -> Inbox {
    Inbox::new(Arc::new(ManualClock::default()))
}

fn matcher(to: &str, subject: &str) -> MessageMatcher {
    let to = (!to.is_empty()).then(|| EmailAddress::parse(to).unwrap());
    MessageMatcher {
        to,
        subject: (!subject.is_empty()).then(|| subject.to_owned()),
        ..MessageMatcher::default()
    }
}

#[tokio::test]
async fn sent_messages_are_caught_byte_for_byte_once_per_recipient() {
    let inbox = inbox();
    let (_server, address) = InboxServer::start(inbox.clone()).await.unwrap();
    let text = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\n.dot\r\n..\r\nNUL \0 and ünïcode\r\n";
    let mut client = SmtpClient::connect(address).await;
    let reply = client.deliver("a@example.org", &["b@example.net", "用户@例子.广告"], text).await;
    assert_eq!(reply, "250 2.0.0 OK caught in the inbox");
    assert_eq!(client.deliver("", &["c@example.net"], "no header").await, "250 2.0.0 OK caught in the inbox");

    let caught = inbox.list(500);
    let recipients: Vec<&str> = caught.iter().map(|message| message.rcpt_to.as_str()).collect();
    assert_eq!(recipients, ["c@example.net", "用户@例子.广告", "b@example.net"]);
    assert_eq!((caught[0].mail_from.as_str(), caught[0].subject.as_str()), ("", ""));
    let first = inbox.find(1).unwrap();
    assert_eq!((first.mail_from.as_str(), first.subject.as_str()), ("a@example.org", "Grüße"));
    // The client of the test ends every text with a line end.
    assert_eq!(first.raw, format!("{text}\r\n").as_bytes());
    assert_eq!(first.received_at.to_rfc3339(), "2026-11-15T00:00:00Z");
    assert_eq!(first.helo, "client.example");
}

#[tokio::test]
async fn long_lines_are_caught_as_they_are() {
    let inbox = inbox();
    let (_server, address) = InboxServer::start(inbox.clone()).await.unwrap();
    let line = "x".repeat(300_000);
    SmtpClient::connect(address).await.deliver("a@example.org", &["b@example.net"], &line).await;
    assert_eq!(inbox.list(1)[0].raw.len(), 300_002);
}

#[tokio::test]
async fn waiting_ends_with_the_matching_message() {
    let inbox = inbox();
    let (_server, address) = InboxServer::start(inbox.clone()).await.unwrap();
    let waiting = {
        let inbox = inbox.clone();
        tokio::spawn(async move { inbox.wait(&matcher("Bob@Example.NET", "order 7"), WAIT_MAX).await })
    };
    eventually(async || {
        let shown = format!("{inbox:?}");
        if shown.contains("waiting: 1,") { Ok(()) } else { Err(format!("nobody waits: {shown}")) }
    })
    .await;
    let mut client = SmtpClient::connect(address).await;
    for (to, subject) in [
        ("ann@example.net", "Your order 7"),
        ("bob@example.net", "Your order 8"),
        ("bob@example.net", "Your order 7 is here"),
        ("bob@example.net", "Your order 9"),
    ] {
        client.deliver("a@example.org", &[to], &format!("Subject: {subject}\r\n\r\nhi")).await;
    }
    assert_eq!(waiting.await.unwrap().unwrap().id, 3);
    // Messages that are already here need no wait; the newest comes first.
    let at_once = |to: &str, subject: &str| {
        let (inbox, matcher) = (inbox.clone(), matcher(to, subject));
        async move { inbox.wait(&matcher, Duration::ZERO).await.map(|message| message.id) }
    };
    assert_eq!(at_once("bob@example.net", "order").await, Some(4));
    assert_eq!(at_once("", "order 7").await, Some(3));
    assert_eq!(at_once("ann@example.net", "").await, Some(1));
    assert_eq!(at_once("", "").await, Some(4));
    assert_eq!(at_once("ann@example.net", "order 8").await, None);
    assert_eq!(at_once("ann@example.com", "").await, None);
    assert_eq!(at_once("", "ORDER").await, None);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_time_is_up() {
    let inbox = inbox();
    let begun = tokio::time::Instant::now();
    assert_eq!(inbox.wait(&matcher("bob@example.net", ""), Duration::from_secs(30)).await, None);
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
}

#[tokio::test]
async fn dropped_server_closes_its_connections() {
    let (server, address) = InboxServer::start(inbox()).await.unwrap();
    let mut client = SmtpClient::connect(address).await;
    drop(server);
    assert_eq!(client.reply().await, "");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
