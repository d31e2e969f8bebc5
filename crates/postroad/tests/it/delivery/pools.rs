//! Pools: mail leaves from the source addresses of the chosen pool, by weight, with the HELO names of the addresses.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postroad_model::{Clock, EventKind, SystemClock};
use postroad_store::{Source, WarmupPause};
use postroad_testkit::SmtpPeer;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::limits::{send_many, write_providers_file};
use super::outside::{Outside, to};
use crate::analytics::{TOP, call_analytics, until_counted};
use crate::world::{Engine, World, both_engines};

/// Addresses of the loopback that no peer has.
const FIRST_IP: &str = "127.0.1.1";
const SECOND_IP: &str = "127.0.1.2";

fn add_address(world: &World, pool: &str, address: &str, more: &[&str]) {
    let helo = format!("{}.out.example", address.replace('.', "-"));
    let mut args = vec!["pool", "add-address", pool, address, "--helo", &helo];
    args.extend_from_slice(more);
    world.admin(&args);
}

/// Number of messages by source address; every connection must greet with the HELO name of its address.
fn by_source(peer: &SmtpPeer) -> HashMap<IpAddr, usize> {
    let mut counts = HashMap::new();
    for connection in peer.connections() {
        let ip = connection.client.ip();
        let greeting = format!("EHLO {}.out.example", ip.to_string().replace('.', "-"));
        assert_eq!(connection.commands.first(), Some(&greeting));
        *counts.entry(ip).or_default() += connection.messages_begun as usize;
    }
    counts
}

both_engines!(
    mail_leaves_from_the_addresses_of_its_servers_pool,
    a_warming_address_sends_its_quota_and_the_shared_pool_the_rest,
    a_warm_up_counts_by_provider_and_shows_its_history,
    analytics_by_pool_show_the_pool_that_was_used
);

async fn mail_leaves_from_the_addresses_of_its_servers_pool(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &[]);
    world.apply_changes();
    let shared = world.accepted_id(&to("ann@shop.example")).await;
    assert_eq!(world.until_status(shared, "Sent").await[0]["source_ip"], FIRST_IP);
    world.admin(&["pool", "create", "own"]);
    add_address(&world, "own", SECOND_IP, &[]);
    world.admin(&["server", "set-pool", "dev", "own"]);
    world.apply_changes();
    let own = world.accepted_id(&to("bob@shop.example")).await;
    assert_eq!(world.until_status(own, "Sent").await[0]["source_ip"], SECOND_IP);
    let counts = by_source(&peer);
    assert_eq!((counts[&FIRST_IP.parse().unwrap()], counts[&SECOND_IP.parse().unwrap()]), (1, 1));
}

async fn a_warming_address_sends_its_quota_and_the_shared_pool_the_rest(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10")]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", SECOND_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    world.apply_changes();
    send_many(&world, &world.key, "shop.example", 20).await;
    peer.wait_until(|record| record.messages.len() == 20).await;
    let counts = by_source(&peer);
    assert_eq!(counts[&SECOND_IP.parse::<IpAddr>().unwrap()], 5, "{counts:?}");
    assert_eq!(counts[&FIRST_IP.parse::<IpAddr>().unwrap()], 15, "{counts:?}");
}

async fn a_warm_up_counts_by_provider_and_shows_its_history(engine: Engine) {
    let outside = Outside::new();
    let shop = outside.site("shop.example", Script::new());
    let big = outside.site("big.example", Script::new());
    let rules = write_providers_file("[big]\nmx = [\"mx.big.example\"]\n");
    let envs = [
        ("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10"),
        ("POSTROAD_DELIVERY_PROVIDERS_FILE", rules.path().to_str().unwrap()),
    ];
    let mut world = outside.start(engine, &envs);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", SECOND_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    world.apply_changes();
    send_many(&world, &world.key, "big.example", 8).await;
    big.wait_until(|record| record.messages.len() == 8).await;
    // After the restart, the counts of today are read from the store.
    drop(world.stopped_store().await);
    world.restart();
    send_many(&world, &world.key, "shop.example", 3).await;
    shop.wait_until(|record| record.messages.len() == 3).await;
    send_many(&world, &world.key, "shop.example", 9).await;
    send_many(&world, &world.key, "big.example", 2).await;
    shop.wait_until(|record| record.messages.len() == 12).await;
    big.wait_until(|record| record.messages.len() == 10).await;
    for (peer, all) in [(&shop, 12), (&big, 10)] {
        let counts = by_source(peer);
        assert_eq!(counts[&SECOND_IP.parse::<IpAddr>().unwrap()], 5, "{counts:?}");
        assert_eq!(counts[&FIRST_IP.parse::<IpAddr>().unwrap()], all - 5, "{counts:?}");
    }
    until_counted(&world, "sent", 22).await;
    let history = world.admin(&["pool", "history", SECOND_IP]);
    let shown: Vec<_> =
        history.as_array().unwrap().iter().map(|row| (&row["provider"], &row["sent"])).collect();
    assert_eq!(shown, [(&json!("big"), &json!(5)), (&json!("other"), &json!(5))], "{history:#}");
    assert_eq!(history[0]["bounced"], 0);
}

async fn analytics_by_pool_show_the_pool_that_was_used(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10")]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", SECOND_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    world.apply_changes();
    send_many(&world, &world.key, "shop.example", 20).await;
    peer.wait_until(|record| record.messages.len() == 20).await;
    until_counted(&world, "sent", 20).await;
    let top = call_analytics(&world, TOP, &json!({"dimension": "ip_pool", "metric": "sent"})).await;
    let sent: Vec<_> =
        top["items"].as_array().unwrap().iter().map(|item| (&item["value"], &item["sent"])).collect();
    assert_eq!(sent, [(&json!("everybody"), &json!(15)), (&json!("fresh"), &json!(5))], "{top:#}");
}

both_engines!(a_warm_up_that_bounces_is_paused_and_reported);

async fn a_warm_up_that_bounces_is_paused_and_reported(engine: Engine) {
    let outside = Outside::new();
    let gone = Answer::reply("550 5.1.1 no such user here");
    let _peer = outside.site("shop.example", Script::new().on(Stage::RcptTo, gone));
    let mut world = outside.start(engine, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", FIRST_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    world.apply_changes();
    send_many(&world, &world.key, "shop.example", 60).await;
    world.until_logged("warm-up paused").await;
    let paused = world.admin(&["pool", "list"])[0]["addresses"][0].clone();
    assert_eq!(paused["warm_up"], "paused", "{paused}");
    let events = world.events_at_the_end(0).await;
    assert_eq!((events.len(), events[0].kind), (1, EventKind::IpWarmupPaused));
    let data: Value = serde_json::from_str(&events[0].data).unwrap();
    assert_eq!(
        data,
        json!({"address": FIRST_IP, "pool": "fresh", "reason": paused["warm_up_paused_reason"]})
    );
}

/// Refuses recipients whose name begins with `gone`.
fn refusing_gone_recipients() -> Script {
    Script::new().when(|context| {
        let is_gone = context.stage == Stage::RcptTo && context.line.contains("<gone");
        is_gone.then(|| Answer::reply("550 5.1.1 no such user here"))
    })
}

both_engines!(a_few_bounces_pause_no_warm_up_and_a_resumed_warm_up_goes_on);

async fn a_few_bounces_pause_no_warm_up_and_a_resumed_warm_up_goes_on(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", refusing_gone_recipients());
    let world = outside.start(engine, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", FIRST_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    world.apply_changes();
    let state = || world.admin(&["pool", "list"])[0]["addresses"][0]["warm_up"].clone();
    send_many(&world, &world.key, "shop.example", 52).await;
    peer.wait_until(|record| record.messages.len() == 52).await;
    for number in 0..4 {
        let id = world.accepted_id(&to(&format!("gone-{number}@shop.example"))).await;
        world.until_status(id, "HardFail").await;
    }
    world.apply_changes();
    assert_eq!(state(), "running", "four of 56 are more than 4 %, but too few to tell");
    let id = world.accepted_id(&to("gone-5@shop.example")).await;
    world.until_status(id, "HardFail").await;
    world.until_logged("warm-up paused").await;
    assert_eq!(state(), "paused");
    world.admin(&["pool", "warm-up", FIRST_IP, "resume"]);
    world.apply_changes();
    assert_eq!(state(), "running", "the counts before the resume do not pause it again");
    let id = world.accepted_id(&to("ann@shop.example")).await;
    assert_eq!(world.until_status(id, "Sent").await[0]["source_ip"], FIRST_IP);
}

both_engines!(an_address_whose_warm_up_plan_is_over_is_shown_as_done);

async fn an_address_whose_warm_up_plan_is_over_is_shown_as_done(engine: Engine) {
    let outside = Outside::new();
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10")]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", FIRST_IP, &["--warm-up"]);
    let state = |world: &World| world.admin(&["pool", "list"])[0]["addresses"][0]["warm_up"].clone();
    assert_eq!(state(&world), "running");
    let store = world.stopped_store().await;
    let source = store.list_sources().await.unwrap().remove(0);
    let days_ago = |days: u64| SystemClock.now().minus(Duration::from_hours(days * 24));
    store.set_source_warmup(source.id, Some(days_ago(2))).await.unwrap();
    drop(store);
    world.restart();
    assert_eq!(state(&world), "done");
}

/// On SQLite only; the tests of `store` cover both engines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_with_a_paused_warm_up_sends_nothing_after_the_end_of_its_plan() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let mut world = outside.start(Engine::Sqlite, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10")]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &[]);
    world.admin(&["pool", "create", "fresh"]);
    add_address(&world, "fresh", SECOND_IP, &["--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "fresh"]);
    let store = world.stopped_store().await;
    let is_second = |source: &Source| source.address == SECOND_IP.parse::<IpAddr>().unwrap();
    let source = store.list_sources().await.unwrap().into_iter().find(is_second).unwrap();
    let long_ago = SystemClock.now().minus(Duration::from_hours(23 * 24));
    store.set_source_warmup(source.id, Some(long_ago)).await.unwrap();
    let reason = "too many bounces".to_owned();
    let pause = WarmupPause { source_id: source.id, reason, pool: "fresh".into(), servers: vec![] };
    assert!(store.pause_warmup(pause).await.unwrap());
    drop(store);
    world.restart();
    send_many(&world, &world.key, "shop.example", 20).await;
    peer.wait_until(|record| record.messages.len() == 20).await;
    let counts = by_source(&peer);
    assert_eq!(counts.get(&SECOND_IP.parse::<IpAddr>().unwrap()), None, "{counts:?}");
}

/// Accepts a recipient at the second attempt from the same address, and no recipient before `accepts_mail` is set.
fn greylisting_by_address(accepts_mail: Arc<AtomicBool>) -> Script {
    let seen = Mutex::new(HashSet::new());
    Script::new().when(move |context| {
        let is_refused = context.stage == Stage::RcptTo
            && (seen.lock().unwrap().insert((context.client, context.line.to_owned()))
                || !accepts_mail.load(Ordering::SeqCst));
        is_refused.then(|| Answer::reply("450 4.2.0 Greylisted, please try again"))
    })
}

both_engines!(a_greylisted_message_is_retried_from_the_same_address);

async fn a_greylisted_message_is_retried_from_the_same_address(engine: Engine) {
    let outside = Outside::new();
    let accepts_mail = Arc::new(AtomicBool::new(false));
    let peer = outside.site("shop.example", greylisting_by_address(Arc::clone(&accepts_mail)));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1s")]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    for number in 1..=4 {
        add_address(&world, "everybody", &format!("127.0.1.{number}"), &[]);
    }
    world.apply_changes();
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(world.accepted_id(&to(&format!("p{number}@shop.example"))).await);
    }
    for id in &ids {
        world.until_deliveries(*id, 1).await;
    }
    // The store remembers the address of the first attempt.
    world.crash_and_restart();
    accepts_mail.store(true, Ordering::SeqCst);
    peer.wait_until(|record| record.messages.len() == 40).await;
    for id in ids {
        let deliveries = world.until_status(id, "Sent").await;
        let is_kept = |delivery: &Value| delivery["source_ip"] == deliveries[0]["source_ip"];
        assert!(deliveries.len() >= 2 && deliveries.iter().all(is_kept), "{deliveries:#?}");
    }
    let counts = by_source(&peer);
    assert_eq!(counts.len(), 4, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_messages_to_many_domains_leave_from_all_addresses() {
    let outside = Outside::new();
    let world = outside.start(Engine::Sqlite, &[]);
    let peer = outside.host("mx.everyone.example", Script::new());
    world.admin(&["pool", "create", "everybody", "--shared"]);
    for number in 1..=4 {
        add_address(&world, "everybody", &format!("127.0.1.{number}"), &[]);
    }
    world.apply_changes();
    for number in 0..60 {
        // Each domain is a separate site.
        let domain = format!("d{number}.example");
        outside.dns.mx(&domain, 10, &format!("mx{number}.everyone.example"));
        outside.dns.a(&format!("mx{number}.everyone.example"), peer_ip(&peer));
        world.accepted_id(&to(&format!("ann@{domain}"))).await;
    }
    peer.wait_until(|record| record.messages.len() == 60).await;
    let counts = by_source(&peer);
    assert!(counts.len() == 4 && counts.values().all(|count| (12..=18).contains(count)), "{counts:?}");
}

fn peer_ip(peer: &SmtpPeer) -> Ipv4Addr {
    match peer.address().ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(ip) => panic!("{ip} is not an IPv4 address"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_share_the_mail_by_weight() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST_IP, &["--weight", "1"]);
    add_address(&world, "everybody", SECOND_IP, &["--weight", "3"]);
    world.apply_changes();
    send_many(&world, &world.key, "shop.example", 400).await;
    peer.wait_until(|record| record.messages.len() == 400).await;
    let counts = by_source(&peer);
    let light = counts[&FIRST_IP.parse::<IpAddr>().unwrap()];
    assert!((85..=115).contains(&light), "a quarter of 400: {counts:?}");
}
