//! Limits set in a providers file, measured at the receiver.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, ReceivedMessage, Script, Stage};
use serde_json::json;

use super::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

/// Writes a providers file; dropping the returned handle removes it.
pub(crate) fn write_providers_file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("the temporary folder is writable");
    std::fs::write(file.path(), text).expect("the temporary folder is writable");
    file
}

/// Sends `count` messages to different addresses of the domain, 50 in each request.
pub(super) async fn send_many(world: &World, key: &str, domain: &str, count: usize) {
    let senders = (0..count.div_ceil(50)).map(async |request| {
        let addresses: Vec<String> = (request * 50..((request + 1) * 50).min(count))
            .map(|number| format!("user-{number}@{domain}"))
            .collect();
        let answer = world.call_as(key, SEND, &good_but(json!({ "to": addresses }))).await;
        assert_eq!(answer["status"], "success", "{answer}");
    });
    futures_util::future::join_all(senders).await;
}

/// Waits until the peer has `count` messages, however long that takes while there is progress.
pub(super) async fn until_received(peer: &postroad_testkit::SmtpPeer, count: usize) {
    let mut seen = 0;
    while seen < count {
        // `wait_until` allows 30 seconds for each step.
        let wanted = (seen + 10).min(count);
        peer.wait_until(|record| record.messages.len() >= wanted).await;
        seen = peer.look(|record| record.messages.len());
    }
}

both_engines!(connections_and_messages_per_connection_stay_within_the_limit);

async fn connections_and_messages_per_connection_stay_within_the_limit(engine: Engine) {
    let count = if engine == Engine::Sqlite { 10_000 } else { 2_000 };
    let outside = Outside::new();
    let peer = outside.site("limited.example", Script::new().offering(&["PIPELINING", "CHUNKING"]));
    let file = write_providers_file(
        "[limited]\nmx = [\"limited.example\"]\nconnections_max = 5\nslow_start_connections = 5\n\
             messages_per_connection_max = 50\nconnections_per_minute = 6000\n",
    );
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(engine, &envs);
    send_many(&world, &world.key, "limited.example", count).await;
    until_received(&peer, count).await;
    let connections = peer.connections();
    let messages_max = connections.iter().map(|connection| connection.messages_begun).max().unwrap();
    assert!(peer.open_connections_max() <= 5, "{} at once", peer.open_connections_max());
    assert!(messages_max <= 50, "{messages_max} over one connection");
    // The limits are also used: several connections, and all 50 messages of a connection.
    assert!(
        peer.open_connections_max() >= 3 && messages_max == 50,
        "{} {messages_max}",
        peer.open_connections_max()
    );
    assert!(connections.len() <= count / 50 + 20, "{} connections", connections.len());
    let mut recipients: Vec<String> = peer.messages().into_iter().flat_map(|m| m.rcpt_to).collect();
    recipients.sort_unstable();
    recipients.dedup();
    assert_eq!((recipients.len(), peer.messages().len()), (count, count), "each once");
}

/// Returns the highest number of messages that begin within a window of this length.
pub(super) fn most_in_a_window(messages: &[ReceivedMessage], window: Duration) -> usize {
    let within = |first: &ReceivedMessage| {
        messages
            .iter()
            .filter(|m| m.begun_at >= first.begun_at && m.begun_at - first.begun_at < window)
            .count()
    };
    messages.iter().map(within).max().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_rate_per_minute_is_never_exceeded() {
    let outside = Outside::new();
    let peer = outside.site("paced.example", Script::new());
    let file = write_providers_file("[paced]\nmx = [\"paced.example\"]\nmessages_per_minute = 1200\n");
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(Engine::Sqlite, &envs);
    send_many(&world, &world.key, "paced.example", 80).await;
    peer.wait_until(|record| record.messages.len() == 80).await;
    let messages = peer.messages();
    // 1200 a minute are 20 a second; one more may fall on the edge of the window.
    let peak = most_in_a_window(&messages, Duration::from_secs(1));
    assert!(peak <= 21, "{peak} in a second");
    let took = messages.last().unwrap().begun_at - messages[0].begun_at;
    assert!(took >= Duration::from_millis(79 * 50), "{took:?}");
    assert!(took < Duration::from_secs(12), "the rate is used: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_rate_includes_reconnections_after_a_lost_connection() {
    let outside = Outside::new();
    let closing = Answer::reply("250 2.0.0 taken").then_close();
    let peer = outside.site("closing.example", Script::new().on(Stage::Message, closing));
    let file = write_providers_file("[closing]\nmx = [\"closing.example\"]\nconnections_per_minute = 120\n");
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(Engine::Sqlite, &envs);
    send_many(&world, &world.key, "closing.example", 8).await;
    peer.wait_until(|record| record.messages.len() == 8).await;
    assert_eq!(peer.connections().len(), 8);
    // 120 a minute are two a second; one more may fall on the edge of the window.
    let peak = most_in_a_window(&peer.messages(), Duration::from_secs(1));
    assert!(peak <= 3, "{peak} in a second");
}

/// The providers file allows one connection at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_limited_to_one_connection_gets_one() {
    let outside = Outside::new();
    // Every message takes a while, so that more connections would be of use.
    let slow = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(40));
    let peer = outside.site("narrow.example", Script::new().on(Stage::Message, slow));
    let file = write_providers_file("[narrow]\nmx = [\"narrow.example\"]\nconnections_max = 1\n");
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(Engine::Sqlite, &envs);
    send_many(&world, &world.key, "narrow.example", 60).await;
    peer.wait_until(|record| record.messages.len() == 60).await;
    assert_eq!(peer.open_connections_max(), 1);
}
