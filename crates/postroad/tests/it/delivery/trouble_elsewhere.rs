//! Hosts, domains and webhooks that do not answer delay no other mail.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use postroad_testkit::dns_server::Failure;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use postroad_testkit::{CatcherAnswer, SmtpPeer, WebhookCatcher};
use serde_json::json;

use super::outside::{Outside, to};
use crate::world::{Engine, SEND, World, both_engines, good_but, is_optimised_build};

/// Numbers of hosts, domains and webhooks that do not answer.
struct Trouble {
    silent_hosts: usize,
    dead_domains: usize,
    /// Domains whose name servers answer late; as many again have name servers that answer with an error.
    slow_domains: usize,
    dead_webhooks: usize,
}

impl Trouble {
    /// Five times as much in an optimised build; a debug build would need minutes just to accept that much mail.
    fn of_this_build() -> Self {
        let factor = if is_optimised_build() { 5 } else { 1 };
        Self {
            silent_hosts: 200 * factor,
            dead_domains: 600 * factor,
            slow_domains: 100 * factor,
            dead_webhooks: 200 * factor,
        }
    }
}

const SLOW_DNS_ANSWER: Duration = Duration::from_secs(3);
/// Number of messages to known domains; as many go to new domains.
const HEALTHY_MESSAGES: usize = 200;
const KNOWN_DOMAINS: usize = 20;
/// Memory that the service may use in addition during the trouble. Enough for a debug build too, which needs more than
/// a release build.
const MORE_MEMORY_KB_MAX: u64 = 400 << 10;

/// Maximum p99 latency, for known and for new domains. A debug build, which shares two cores with other tests, may be
/// slower.
fn p99_max() -> [Duration; 2] {
    if is_optimised_build() { [1, 2].map(Duration::from_secs) } else { [Duration::from_secs(6); 2] }
}

/// Time in which all healthy mail has to arrive, however busy the machine is.
const ARRIVAL_MAX: Duration = Duration::from_mins(1);

/// The store engines are tested one after the other, so that neither test slows the other.
static ENGINE_LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Sends one message to each of `domains`, 50 in a request, from two servers in turn.
async fn flood(world: &World, third_key: &str, domains: &[String]) {
    let requests = domains.chunks(50).enumerate().map(async |(number, domains)| {
        let addresses: Vec<String> = domains.iter().map(|domain| format!("ann@{domain}")).collect();
        let answer = if number % 2 == 0 {
            world.call_as(&world.key, SEND, &good_but(json!({ "to": addresses }))).await
        } else {
            let body = good_but(json!({ "from": "a@third.test", "to": addresses }));
            world.call_as(third_key, SEND, &body).await
        };
        assert_eq!(answer["status"], "success", "{answer}");
    });
    futures_util::stream::iter(requests).buffer_unordered(8).collect::<Vec<()>>().await;
}

/// Creates another server with its own domain, `NAME.test`; returns its key.
fn add_server(world: &World, name: &str) -> String {
    let domain = format!("{name}.test");
    world.admin(&["account", "create", name]);
    world.admin(&["server", "create", name, "--account", name]);
    let made = world.admin(&["key", "create", "--server", name]);
    world.admin(&["domain", "create", &domain, "--server", name]);
    world.admin(&["domain", "set-verified", &domain, "--server", name]);
    made["api_key"].as_str().expect("a key").to_owned()
}

/// Creates webhooks that hang, on a separate server that sends some messages.
async fn create_dead_webhooks(world: &World, catcher: &WebhookCatcher, count: usize) {
    catcher.answer("/hangs", CatcherAnswer::Hang);
    let key = &add_server(world, "second");
    let webhook = json!({ "url": catcher.url("/hangs"), "events": ["message.accepted"] });
    let creations = (0..count).map(async |_| {
        let answer = world.call_as(key, "/api/v1/webhooks/create", &webhook).await;
        assert_eq!(answer["status"], "success", "{answer}");
    });
    futures_util::stream::iter(creations).buffer_unordered(8).collect::<Vec<()>>().await;
    for number in 0..2 {
        let body =
            good_but(json!({ "from": "a@second.test", "to": [format!("user-{number}@known-0.example")] }));
        assert_eq!(world.call_as(key, SEND, &body).await["status"], "success");
    }
}

/// The service's memory now (`VmRSS`), or its peak since the start (`VmHWM`), in kB.
fn memory_kb(world: &World, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Latencies from the request to the last byte at the peer, of messages to addresses with this prefix.
fn latencies(peer: &SmtpPeer, begun: &HashMap<String, Instant>, prefix: &str) -> Vec<Duration> {
    let mut all: Vec<Duration> = peer.look(|record| {
        let of_kind = record.messages.iter().filter(|message| message.rcpt_to[0].starts_with(prefix));
        of_kind
            .filter_map(|message| {
                Some(message.at.saturating_duration_since(*begun.get(&message.rcpt_to[0])?))
            })
            .collect()
    });
    all.sort_unstable();
    all
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() * 99 / 100).min(sorted.len() - 1)]
}

both_engines!(silent_hosts_dead_domains_and_dead_webhooks_delay_no_healthy_mail);

async fn silent_hosts_dead_domains_and_dead_webhooks_delay_no_healthy_mail(engine: Engine) {
    let _guard = ENGINE_LOCK.lock().await;
    let trouble = Trouble::of_this_build();
    let outside = Outside::new();
    let healthy = outside.host("mx.healthy.example", Script::new());
    let silent = outside.host("mx.silent.example", Script::new().on(Stage::Banner, Answer::stall()));
    let publish = |domain: &str, peer: &SmtpPeer| {
        let host = format!("mx.{domain}");
        let std::net::IpAddr::V4(address) = peer.address().ip() else { panic!("all peers are IPv4") };
        outside.dns.mx(domain, 10, &host).a(&host, address);
    };
    let names = |kind: &str, count: usize| (0..count).map(|n| format!("{kind}-{n}.example")).collect();
    let (silent_domains, dead_domains): (Vec<String>, Vec<String>) =
        (names("silent", trouble.silent_hosts), names("dead", trouble.dead_domains));
    for domain in &silent_domains {
        publish(domain, &silent);
    }
    for domain in &dead_domains {
        outside.dns.fail(domain, Failure::Silent);
    }
    let (slow_domains, failing_domains): (Vec<String>, Vec<String>) =
        (names("slow", trouble.slow_domains), names("failing", trouble.slow_domains));
    for domain in &slow_domains {
        publish(domain, &silent);
        outside.dns.fail(domain, Failure::Slow(SLOW_DNS_ANSWER));
    }
    for domain in &failing_domains {
        outside.dns.fail(domain, Failure::ServFail);
    }
    let known_domains: Vec<String> = names("known", KNOWN_DOMAINS);
    let new_domains: Vec<String> = names("new", HEALTHY_MESSAGES);
    // The answers for known domains expire in the middle of the trouble.
    outside.dns.ttl_secs(1);
    for domain in known_domains.iter().chain(&new_domains) {
        publish(domain, &healthy);
    }
    let envs = [
        ("POSTROAD_WEBHOOKS_PER_SERVER", "2000"),
        // As in production: what fails is not tried again within the test.
        ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "60s"),
    ];
    let world = outside.start(engine, &envs);
    let catcher = WebhookCatcher::start();
    for domain in &known_domains {
        world.accepted(&to(&format!("first@{domain}"))).await;
    }
    healthy.wait_until(|record| record.messages.len() >= KNOWN_DOMAINS).await;
    let memory_before = memory_kb(&world, "VmRSS:");

    create_dead_webhooks(&world, &catcher, trouble.dead_webhooks).await;
    let third_key = add_server(&world, "third");
    let troubled: Vec<String> =
        [silent_domains, dead_domains, slow_domains, failing_domains].into_iter().flatten().collect();
    let flood_begun = Instant::now();
    flood(&world, &third_key, &troubled).await;
    eprintln!("{engine:?}: flood accepted in {:?}", flood_begun.elapsed());
    let mut begun = HashMap::new();
    for (number, new_domain) in new_domains.iter().enumerate() {
        let known_domain = &known_domains[number % KNOWN_DOMAINS];
        for address in [format!("known-{number}@{known_domain}"), format!("new-{number}@{new_domain}")] {
            begun.insert(address.clone(), Instant::now());
            world.accepted(&to(&address)).await;
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    let deadline = Instant::now() + ARRIVAL_MAX;
    let arrived = || ["known-", "new-"].map(|prefix| latencies(&healthy, &begun, prefix));
    while arrived().iter().any(|all| all.len() < HEALTHY_MESSAGES) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let [known, new] = arrived();
    let memory = memory_kb(&world, "VmHWM:").saturating_sub(memory_before);
    eprintln!(
        "{engine:?}: known {} of {HEALTHY_MESSAGES}, median {:?}, p99 {:?}; new {} of {HEALTHY_MESSAGES}, median {:?}, p99 {:?}; {memory} KB more at the peak",
        known.len(),
        known.get(known.len() / 2),
        known.last().map(|_| p99(&known)),
        new.len(),
        new.get(new.len() / 2),
        new.last().map(|_| p99(&new)),
    );
    assert_eq!((known.len(), new.len()), (HEALTHY_MESSAGES, HEALTHY_MESSAGES), "all healthy mail arrives");
    let [known_max, new_max] = p99_max();
    assert!(p99(&known) < known_max, "known domains: p99 {:?}", p99(&known));
    assert!(p99(&new) < new_max, "new domains: p99 {:?}", p99(&new));
    assert!(memory < MORE_MEMORY_KB_MAX, "{memory} KB more at the peak");
}
