//! Limits: sizes, recipients, sessions, time and memory.

use std::time::Duration;

use postroad_model::ServerMode;
use postroad_relay::{Settings, TimeLimits};
use postroad_testkit::SmtpClient;

use crate::service::{FROM, Service, auth_plain, message_text, settings};

const TO: [&str; 1] = ["ann@example.com"];

fn with_times(change: impl FnOnce(&mut TimeLimits)) -> Settings {
    let mut settings = settings();
    change(&mut settings.times);
    settings
}

#[tokio::test]
async fn messages_over_the_size_limit_are_refused() {
    let service = Service::start_with(Settings { message_bytes_max: 100_000, ..settings() }, 0).await;
    let mut client = service.client().await;
    let too_large = "552 5.3.4 The message is too large";
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}> SIZE=100001")).await, too_large);
    let head = message_text("") + "\r\n" + &("x".repeat(98) + "\r\n").repeat(990);
    // `bytes` includes the line end that the client adds.
    let fitting = |bytes: usize| format!("{head}{}", "x".repeat(bytes - 2 - head.len()));
    assert_eq!(client.deliver(FROM, &TO, &(fitting(100_000) + "y")).await, too_large);
    let reply = client.deliver(FROM, &TO, &fitting(100_000)).await;
    assert!(reply.starts_with("250 "), "the session goes on: {reply}");
    client.say(&format!("MAIL FROM:<{FROM}>")).await;
    client.say("RCPT TO:<ann@example.com>").await;
    client.send(format!("BDAT 100001 LAST\r\n{}", "x".repeat(100_001)).as_bytes()).await;
    assert_eq!(client.reply().await, too_large);
    assert_eq!(service.take_stored().await.len(), 1);
}

#[tokio::test]
async fn a_message_may_have_a_thousand_recipients_and_not_one_more() {
    let service = Service::start().await;
    let mut client = service.client().await;
    let recipients: Vec<String> = (0..=1_000).map(|at| format!("RCPT TO:<r{at}@example.com>\r\n")).collect();
    client.send(format!("MAIL FROM:<{FROM}>\r\n{}DATA\r\n", recipients.concat()).as_bytes()).await;
    client.reply().await;
    for _ in 0..1_000 {
        assert_eq!(client.reply().await, "250 2.1.5 Recipient OK");
    }
    assert_eq!(client.reply().await, "452 4.5.3 Too many recipients");
    assert!(client.reply().await.starts_with("354 "));
    let reply = client.say(&format!("{}\r\n.", message_text(""))).await;
    let stored = service.take_stored().await;
    assert_eq!(stored.len(), 1_000);
    assert!(stored[0].is_answered_by(&reply), "{reply}");
    assert_eq!(stored[0].message.rcpt_to, "r0@example.com");
}

#[tokio::test]
async fn a_silent_client_is_disconnected() {
    let service = Service::start_with(with_times(|times| times.idle = Duration::from_millis(200)), 0).await;
    let idle = "421 4.4.2 Idle for too long, closing the connection";
    let mut client = SmtpClient::connect_tls(service.tls).await;
    assert_eq!(client.reply().await, idle);
    assert_eq!(client.reply().await, "");
    // Bytes that complete no command are not progress.
    let mut client = SmtpClient::connect(service.starttls).await;
    let dripping = async {
        loop {
            client.send(b"x").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(150), dripping).await.is_err());
    assert_eq!(client.reply().await, idle);
}

#[tokio::test]
async fn a_message_that_comes_too_slowly_is_broken_off() {
    let service = Service::start_with(
        with_times(|times| {
            times.content_grace = Duration::from_millis(300);
            times.content_bytes_per_second_min = 1_000_000;
        }),
        0,
    )
    .await;
    let mut client = service.client().await;
    client.say(&format!("MAIL FROM:<{FROM}>")).await;
    client.say("RCPT TO:<ann@example.com>").await;
    client.say("DATA").await;
    client.send(message_text("").as_bytes()).await;
    assert_eq!(client.reply().await, "421 4.4.2 The message comes too slowly, closing the connection");
    assert!(service.take_stored().await.is_empty());
}

#[tokio::test]
async fn a_session_has_a_time_limit() {
    let service =
        Service::start_with(with_times(|times| times.session = Duration::from_millis(300)), 0).await;
    let mut client = service.client().await;
    let living = async {
        loop {
            let reply = client.say("NOOP").await;
            if !reply.starts_with("250 ") {
                return reply;
            }
            // Without a pause a fast machine would reach the limit of commands first.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let reply = tokio::time::timeout(Duration::from_secs(10), living).await;
    assert_eq!(reply.unwrap(), "421 4.4.2 Idle for too long, closing the connection");
}

#[tokio::test]
async fn sessions_are_counted_in_all_and_per_address() {
    let settings = Settings {
        sessions_max: 3,
        sessions_per_address_max: 1,
        proxy_protocol_from: vec!["127.0.0.1/32".parse().unwrap()],
        ..settings()
    };
    let service = Service::start_with(settings, 0).await;
    let dial = async |address: &str| {
        let header = format!("PROXY TCP4 {address} 127.0.0.1 50000 25\r\n");
        let mut client = SmtpClient::dial_with(service.plain, header.as_bytes()).await;
        let reply = client.reply().await;
        (client, reply)
    };
    let (first, banner) = dial("192.0.2.1").await;
    assert!(banner.starts_with("220 "), "{banner}");
    let (second, reply) = dial("192.0.2.1").await;
    assert_eq!(reply, "421 4.7.0 Too many connections from your address, closing the connection");
    drop(second);
    let (other, banner) = dial("192.0.2.2").await;
    assert!(banner.starts_with("220 "), "{banner}");
    let (_third, banner) = dial("192.0.2.3").await;
    assert!(banner.starts_with("220 "), "{banner}");
    let mut turned_away = SmtpClient::dial(service.plain).await;
    assert_eq!(turned_away.reply().await, "421 4.3.2 Too many connections, try again later");
    drop((first, other));
}

#[tokio::test]
async fn messages_that_wait_too_long_for_memory_get_452() {
    let settings = Settings {
        in_flight_bytes_max: 1 << 20,
        message_bytes_max: 1 << 20,
        times: TimeLimits { memory_wait: Duration::from_millis(100), ..TimeLimits::default() },
        ..settings()
    };
    let service = Service::start_with(settings, 0).await;
    let large = message_text("") + "\r\n" + &("x".repeat(98) + "\r\n").repeat(9_000);
    let mut holder = service.client().await;
    for line in [
        format!("MAIL FROM:<{FROM}> SIZE={}", large.len()),
        "RCPT TO:<ann@example.com>".into(),
        "DATA".into(),
    ] {
        holder.say(&line).await;
    }
    holder.send(large.as_bytes()).await;
    let mut client = service.client().await;
    let reply = client.deliver(FROM, &TO, &large).await;
    assert_eq!(reply, "452 4.3.1 Too many messages are coming in, try again later");
    let reply = client.deliver(FROM, &TO, &message_text("")).await;
    assert!(reply.starts_with("250 "), "a small message does not wait for large ones: {reply}");
    let reply = holder.say(".").await;
    assert!(reply.starts_with("250 "), "{reply}");
    let reply = client.deliver(FROM, &TO, &large).await;
    assert!(reply.starts_with("250 "), "the memory is free again: {reply}");
}

#[tokio::test]
async fn messages_of_one_server_leave_memory_to_those_of_others() {
    let settings = Settings {
        in_flight_bytes_max: 8 << 20,
        message_bytes_max: 1 << 20,
        times: TimeLimits { memory_wait: Duration::from_millis(100), ..TimeLimits::default() },
        ..settings()
    };
    let service = Service::start_with(settings, 0).await;
    service.app.create_server("other".into(), "dev", ServerMode::Live, None).await.unwrap();
    let key = service.create_key(|key| key.server = "other".into()).await;
    let large = message_text("") + "\r\n" + &("x".repeat(98) + "\r\n").repeat(9_000);
    // Messages that never end: together they need more memory than there is.
    let mut holders = Vec::new();
    for _ in 0..10 {
        let mut holder = service.client().await;
        for line in [format!("MAIL FROM:<{FROM}>"), "RCPT TO:<ann@example.com>".into(), "DATA".into()] {
            holder.say(&line).await;
        }
        holder.send(large.as_bytes()).await;
        holders.push(holder);
    }
    let mut client = SmtpClient::connect_tls(service.tls).await;
    let [api_key, secret] = ["api_key", "api_secret"].map(|part| key[part].as_str().unwrap());
    client.say(&auth_plain(api_key, secret)).await;
    let reply = client.deliver(FROM, &TO, &large).await;
    assert!(reply.starts_with("550 5.7.1 "), "it was read, but its server has no verified domain: {reply}");
}

#[tokio::test]
async fn a_message_is_refused_temporarily_while_the_disk_is_full() {
    let service = Service::start_with(settings(), u64::MAX).await;
    let mut client = service.client().await;
    let reply = client.deliver(FROM, &TO, &message_text("")).await;
    assert_eq!(reply, "451 4.3.0 The message cannot be stored at the moment, try again later");
    assert_eq!(client.say("NOOP").await, "250 2.0.0 OK");
}
