//! Graceful stop: no new sessions and messages; messages in progress may finish.

use std::time::Duration;

use postroad_relay::TimeLimits;
use postroad_testkit::SmtpClient;
use tokio::net::TcpStream;

use crate::service::{FROM, Service, message_text, settings};

const STOPPING: &str = "421 4.3.2 The service is shutting down, closing the connection";

#[tokio::test]
async fn a_message_in_progress_is_finished_and_other_clients_are_disconnected() {
    let service = Service::start().await;
    let mut idle = SmtpClient::connect(service.starttls).await;
    let mut busy = service.client().await;
    for line in [&format!("MAIL FROM:<{FROM}>"), "RCPT TO:<ann@example.com>", "DATA"] {
        busy.say(line).await;
    }
    let (starttls, store) = (service.starttls, service.store.clone());
    let stopping = tokio::spawn(service.relay.stop());
    assert_eq!(idle.reply().await, STOPPING);
    assert_eq!(idle.reply().await, "");
    assert!(TcpStream::connect(starttls).await.is_err(), "nobody listens any more");
    let reply = busy.say(&format!("{}\r\n.", message_text(""))).await;
    assert!(reply.starts_with("250 2.0.0 OK queued as "), "{reply}");
    assert_eq!(busy.reply().await, STOPPING);
    drop(busy);
    stopping.await.unwrap();
    drop(store);
}

#[tokio::test]
async fn a_transaction_that_outlasts_the_stop_time_is_cut_off() {
    let times = TimeLimits { stop: Duration::from_millis(200), ..TimeLimits::default() };
    let service = Service::start_with(postroad_relay::Settings { times, ..settings() }, 0).await;
    let mut busy = service.client().await;
    busy.say(&format!("MAIL FROM:<{FROM}>")).await;
    let stopping = tokio::spawn(service.relay.stop());
    assert_eq!(busy.reply().await, STOPPING);
    drop(busy);
    stopping.await.unwrap();
}
