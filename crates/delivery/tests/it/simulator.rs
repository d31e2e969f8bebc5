//! Each recipient of the simulator behaves as its name says.

use std::time::Duration;

use std::sync::Arc;

use postroad_delivery::SimulatorServer;
use postroad_model::SystemClock;
use postroad_testkit::SmtpClient;
use tokio::time::timeout;

const TEXT: &str = "Subject: hi\r\n\r\nhi";
const TAKEN: &str = "250 2.0.0 OK taken by the simulator";

#[tokio::test]
async fn replies_follow_the_local_part() {
    let (_server, address) = SimulatorServer::start(Arc::new(SystemClock)).await.unwrap();
    let mut client = SmtpClient::connect(address).await;
    for (local_part, beginning) in [
        ("delivered", TAKEN),
        ("missing", "550 5.1.1 "),
        ("full", "552 5.2.2 "),
        ("blocked+7", "550 5.7.1 "),
        ("bounce-later", TAKEN),
        ("complaint", TAKEN),
        ("open", TAKEN),
        ("click", TAKEN),
        ("smtp-554-5.6.0", "554 5.6.0 "),
        ("smtp-250-2.1.5", TAKEN),
        ("somebody", "550 5.1.1 Unknown simulator recipient; known are delivered, defer, "),
    ] {
        let to = format!("{local_part}@sim.postroad.test");
        let reply = client.deliver("rp1@example.org", &[&to], TEXT).await;
        assert!(reply.starts_with(beginning), "{local_part}: {reply}");
    }
    let reply = client.deliver("rp1@example.org", &["smtp-421-4.3.2@sim.postroad.test"], TEXT).await;
    assert_eq!((reply.as_str(), client.reply().await.as_str()), ("421 4.3.2 Simulated reply", ""));
}

#[tokio::test]
async fn first_attempts_of_each_message_to_defer_and_greylist_recipients_are_refused() {
    let (_server, address) = SimulatorServer::start(Arc::new(SystemClock)).await.unwrap();
    for return_path in ["rp1@example.org", "rp2@example.org", ""] {
        for (to, expected) in [
            ("defer@sim.postroad.test", &["451 4.7.1", "451 4.7.1", "250 2.0.0", "250 2.0.0"][..]),
            ("greylist@sim.postroad.test", &["450 4.2.0", "250 2.0.0"]),
        ] {
            for beginning in expected {
                // Each attempt has its own connection, as after a pause.
                let reply = SmtpClient::connect(address).await.deliver(return_path, &[to], TEXT).await;
                assert!(reply.starts_with(beginning), "{to} {return_path}: {reply}");
            }
        }
    }
}

#[tokio::test]
async fn timeout_recipient_gets_no_reply_and_delays_no_other_client() {
    let (_server, address) = SimulatorServer::start(Arc::new(SystemClock)).await.unwrap();
    let mut client = SmtpClient::connect(address).await;
    assert_eq!(client.say("MAIL FROM:<a@example.org>").await, "250 2.1.0 Sender OK");
    client.send(b"RCPT TO:<timeout@sim.postroad.test>\r\nQUIT\r\n").await;
    assert!(timeout(Duration::from_millis(100), client.reply()).await.is_err());
    let other = SmtpClient::connect(address).await.deliver("", &["delivered@sim.postroad.test"], TEXT).await;
    assert_eq!(other, TAKEN);
}
