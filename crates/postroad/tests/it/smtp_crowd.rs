//! Many slow SMTP clients at once, and large messages: they use little memory and delay nobody.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use postroad_testkit::SmtpClient;

use crate::smtp::{auth_plain, log_in, starttls_address, text};
use crate::world::{Engine, World};

const SLOW_SESSIONS: usize = 500;
const FROM: &str = "shop@example.test";
/// Maximum memory of the whole process. Measured in a debug build: 48 MiB without and 98 MiB with all sessions
/// (docs/smtp.md).
const PROCESS_MEMORY_KIB_MAX: u64 = 160 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_slow_sessions_do_not_delay_the_next_session() {
    let world = World::start(Engine::Sqlite);
    let before = memory_kib(&world, "VmRSS");
    let auth = auth_plain(&world.key, world.daemon.ready()["api_secret"].as_str().unwrap());
    let address = starttls_address(&world);
    // Begins a message and sends 16 kB of it.
    let begin = async |at: usize| {
        let mut client = SmtpClient::connect_starttls(address).await;
        for line in [&auth, &format!("MAIL FROM:<{FROM}>"), &format!("RCPT TO:<r{at}@example.com>")] {
            assert!(client.say(line).await.starts_with('2'));
        }
        assert!(client.say("DATA").await.starts_with("354 "));
        client.send((text("") + "\r\n" + &("x".repeat(98) + "\r\n").repeat(160)).as_bytes()).await;
        client
    };
    let mut slow = Vec::new();
    while slow.len() < SLOW_SESSIONS {
        let first = slow.len();
        slow.extend(join_all((first..first + 50).map(&begin)).await);
    }
    let started = Instant::now();
    let reply = log_in(&world).await.deliver(FROM, &["ann@example.com"], &text("")).await;
    assert!(reply.starts_with("250 2.0.0 OK queued as "), "{reply}");
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "the next session took {took:?}");
    let peak = memory_kib(&world, "VmHWM");
    eprintln!(
        "{SLOW_SESSIONS} slow sessions: {before} KiB before, {peak} KiB at the peak; the next session took {took:?}"
    );
    assert!(peak < PROCESS_MEMORY_KIB_MAX, "{peak} KiB");
    // The slow messages are not lost.
    let ends = slow.iter_mut().map(async |client| client.say(".").await);
    let replies = join_all(ends).await;
    assert!(replies.iter().all(|reply| reply.starts_with("250 2.0.0 OK queued as ")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_message_takes_less_than_three_times_its_size_in_memory() {
    let world = World::start(Engine::Sqlite);
    let mut client = log_in(&world).await;
    assert!(client.deliver(FROM, &["ann@example.com"], &text("")).await.starts_with("250 "));
    let before = memory_kib(&world, "VmHWM");
    // The message may be in memory twice: as received, and compressed. A third copy would be too much. The text hardly
    // compresses, so that the stored copy is as large as possible.
    let mut rng = rand::rng();
    // In test mode, because delivery would read the message again at the same time.
    let mut message = text("X-Test-Mode: true\r\n") + "\r\n";
    while message.len() < (25 << 20) - 2_000 {
        message.push_str(&postroad_model::token::random_text(&mut rng, 990));
        message.push_str("\r\n");
    }
    let reply = client.deliver(FROM, &["ann@example.com"], &message).await;
    assert!(reply.starts_with("250 2.0.0 OK queued as "), "{reply}");
    let more = memory_kib(&world, "VmHWM") - before;
    eprintln!("a message of 25 MiB took {more} KiB more at the peak");
    assert!(more < (25 << 10) * 3, "{more} KiB");
}

/// Memory of the service as the kernel counts it: `VmRSS` now, `VmHWM` at the peak.
fn memory_kib(world: &World, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
