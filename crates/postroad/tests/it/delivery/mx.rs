//! Mail hosts of a domain: DNS answers of all kinds and their consequences.

use std::net::IpAddr;
use std::time::Duration;

use postroad_testkit::dns_server::Failure;
use postroad_testkit::eventually;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::outcomes::{assert_pause, numbered_kinds};
use super::outside::{Outside, to};
use crate::world::{Engine, both_engines, good_but};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_are_tried_by_preference() {
    let outside = Outside::new();
    outside.dns.mx("shop.example", 20, "second.shop.example").mx("shop.example", 10, "first.shop.example");
    let second = outside.host("second.shop.example", Script::new());
    let first = outside.host("first.shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    for local_part in ["ann", "bob", "cid"] {
        let id = world.accepted_id(&to(&format!("{local_part}@shop.example"))).await;
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries[0]["mx"], "first.shop.example");
    }
    assert_eq!(first.messages().len(), 3);
    assert!(second.connections().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_host_is_passed_over() {
    let outside = Outside::new();
    outside.dns.mx("shop.example", 10, "dead.shop.example").mx("shop.example", 20, "alive.shop.example");
    outside.dns.a("dead.shop.example", outside.new_address());
    let alive = outside.host("alive.shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "the next host is no next attempt: {deliveries:#?}");
    assert_eq!(deliveries[0]["mx"], "alive.shop.example");
    assert_eq!(alive.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_thirteenth_host_is_tried_when_twelve_are_dead() {
    let outside = Outside::new();
    for number in 1..=12 {
        let host = format!("dead{number}.shop.example");
        outside.dns.mx("shop.example", number, &host).a(&host, outside.new_address());
    }
    outside.dns.mx("shop.example", 13, "alive.shop.example");
    let alive = outside.host("alive.shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 2, "the second attempt goes on where the first stopped: {deliveries:#?}");
    assert_eq!(deliveries[1]["mx"], "alive.shop.example");
    assert_eq!(alive.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_of_equal_preference_get_the_same_number_of_connections() {
    let outside = Outside::new();
    // Each connection carries one message.
    let script = || Script::new().on(Stage::Message, Answer::reply("250 2.0.0 Taken").then_close());
    let hosts = ["one.shop.example", "two.shop.example", "three.shop.example"];
    let peers = hosts.map(|host| {
        outside.dns.mx("shop.example", 10, host);
        outside.host(host, script())
    });
    let world = outside.start(Engine::Sqlite, &[]);
    for number in 0..9 {
        let id = world.accepted_id(&to(&format!("ann{number}@shop.example"))).await;
        world.until_status(id, "Sent").await;
    }
    assert_eq!(peers.map(|peer| peer.messages().len()), [3, 3, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_address_is_passed_over() {
    let outside = Outside::new();
    outside.dns.mx("shop.example", 10, "mx.shop.example");
    // The name server gives addresses in the order in which it learned them.
    outside.dns.a("mx.shop.example", outside.new_address());
    let peer = outside.host("mx.shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(deliveries[0]["remote_ip"], peer.address().ip().to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_without_a_living_host_is_tried_again() {
    let outside = Outside::new();
    outside.dns.mx("shop.example", 10, "mx.shop.example");
    let address = outside.new_address();
    outside.dns.a("mx.shop.example", address);
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let deliveries = world.until_deliveries(id, 1).await;
    assert_eq!(deliveries[0]["status"], "SoftFail");
    assert_eq!(deliveries[0]["remote_ip"], address.to_string());
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.starts_with("No connection: connecting to mx.shop.example ("), "{details}");
    assert_pause(&deliveries[0], 0.3);
    let peer = outside.peer_at(IpAddr::V4(address), Script::new());
    world.until_status(id, "Sent").await;
    assert_eq!(peer.messages().len(), 1);
}

both_engines!(
    mail_to_a_domain_with_a_null_mx_or_without_records_fails_at_once,
    messages_wait_while_the_dns_gives_no_answer
);

async fn mail_to_a_domain_with_a_null_mx_or_without_records_fails_at_once(engine: Engine) {
    let outside = Outside::new();
    outside.dns.null_mx("null.example");
    let mut world = outside.start(engine, &[]);
    let null = world.accepted_id(&to("ann@null.example")).await;
    let nowhere = world.accepted_id(&to("ann@nowhere.example")).await;
    for id in [null, nowhere] {
        let deliveries = world.until_status(id, "HardFail").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(deliveries[0]["bounce_class"], "bad_domain");
        assert_eq!((&deliveries[0]["mx"], &deliveries[0]["code"]), (&Value::Null, &Value::Null));
        assert_eq!(deliveries[0]["time"], Value::Null, "no host was contacted");
    }
    let figures = world.call("/api/v1/analytics/message", &json!({ "id": nowhere })).await["data"].take();
    assert_eq!((&figures["attempts"], &figures["latency"]["first_attempt"]), (&json!(0), &Value::Null));
    let events = world.events_at_the_end(nowhere).await;
    assert_eq!(numbered_kinds(&events), [(1, "message.accepted"), (2, "message.failed")]);
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    assert_eq!(data["class"], "bad_domain");
    assert_eq!((data.get("attempt"), &data["time"]), (Some(&Value::Null), &Value::Null), "{data}");
}

async fn messages_wait_while_the_dns_gives_no_answer(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    outside.dns.fail("shop.example", Failure::ServFail);
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "500ms")]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    // The reason is known after the first look-up has failed.
    eventually(async || {
        let timeline = world.call("/api/v1/messages/timeline", &json!({"id": id})).await;
        let items = timeline["data"]["items"].as_array().cloned().unwrap_or_default();
        let last = items.last().cloned().unwrap_or_default();
        let shows_retry =
            last["text"].as_str().is_some_and(|text| text.contains("the DNS is asked again at"));
        if last["kind"] == "waiting" && shows_retry { Ok(()) } else { Err(timeline.to_string()) }
    })
    .await;
    // The message was not offered to any host, so there is no failed attempt.
    assert_eq!(world.expanded(id).await["status"]["status"], "Pending");
    assert_eq!(world.deliveries(id).await, json!([]));
    outside.dns.clear_failures("shop.example");
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(peer.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_mx_the_domain_itself_is_the_host() {
    let outside = Outside::new();
    let peer = outside.host("bare.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@bare.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries[0]["mx"], "bare.example");
    assert_eq!(peer.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_with_ipv6_only_gets_its_mail() {
    let outside = Outside::new();
    outside.dns.mx("six.example", 10, "mx.six.example");
    let peer = outside.host_v6("mx.six.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@six.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!((&deliveries[0]["remote_ip"], &deliveries[0]["source_ip"]), (&"::1".into(), &"::1".into()));
    assert_eq!(peer.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domains_with_the_same_hosts_share_connections() {
    let outside = Outside::new();
    let peer = outside.site("one.example", Script::new());
    outside.dns.mx("two.example", 10, "mx.one.example");
    let world = outside.start(Engine::Sqlite, &[]);
    for address in ["ann@one.example", "bob@two.example"] {
        let id = world.accepted_id(&to(address)).await;
        world.until_status(id, "Sent").await;
    }
    let connections = peer.connections();
    assert_eq!(connections.iter().map(|c| c.messages_begun).collect::<Vec<_>>(), [2], "{connections:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_destinations_are_refused_unless_allowed() {
    let outside = Outside::new();
    let peer = outside.site("inside.example", Script::new());
    let envs =
        [("POSTROAD_DELIVERY_ALLOW_PRIVATE_DESTINATIONS", "false"), ("POSTROAD_DELIVERY_CATCH_ALL", "off")];
    let world = outside.start(Engine::Sqlite, &envs);
    let id = world.accepted_id(&to("ann@inside.example")).await;
    let deliveries = world.until_deliveries(id, 2).await;
    for delivery in &deliveries {
        assert_eq!(delivery["status"], "SoftFail", "{delivery}");
        let details = delivery["details"].as_str().unwrap();
        assert!(details.contains("has only private addresses, which"), "{details}");
        assert!(!details.contains("127.0.0."), "the addresses are not named: {details}");
        assert!(details.contains("`delivery.allow_private_destinations`"), "{details}");
    }
    assert!(peer.connections().is_empty());
}

/// RFC 5321 5.1: MX hosts that are not preferred to ourselves would only return the mail to us.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_does_not_loop_through_this_host_or_less_preferred_ones() {
    let outside = Outside::new();
    outside.dns.mx("backup.example", 10, "dead.example").mx("backup.example", 20, "postroad.localhost");
    outside.dns.mx("backup.example", 30, "worse.example");
    outside.dns.a("dead.example", outside.new_address());
    let worse = outside.host("worse.example", Script::new());
    outside.dns.mx("ours.example", 10, "postroad.localhost");
    let own = outside.host("postroad.localhost", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    let backup = world.accepted_id(&to("ann@backup.example")).await;
    let ours = world.accepted_id(&to("ann@ours.example")).await;
    let deliveries = world.until_deliveries(ours, 1).await;
    assert_eq!(
        (&deliveries[0]["status"], &deliveries[0]["bounce_class"]),
        (&"SoftFail".into(), &"dns".into())
    );
    let details = deliveries[0]["details"].as_str().unwrap();
    assert_eq!(details, "mail for ours.example comes back to this host: its MX record names us");
    let deliveries = world.until_deliveries(backup, 2).await;
    assert!(deliveries.iter().all(|delivery| delivery["mx"] == "dead.example"), "{deliveries:#?}");
    assert!(own.connections().is_empty() && worse.connections().is_empty());
}

/// Limits are per site: small hosts do not share one budget of connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_to_many_small_sites_leaves_at_once() {
    let outside = Outside::new();
    let peer = outside.host("everywhere.example", Script::new());
    let IpAddr::V4(address) = peer.address().ip() else { panic!("hosts are given IPv4 addresses") };
    let mut recipients = Vec::new();
    for number in 0..30 {
        let domain = format!("small-{number}.example");
        outside.dns.mx(&domain, 10, &format!("mx.{domain}")).a(&format!("mx.{domain}"), address);
        recipients.push(format!("ann@{domain}"));
    }
    let world = outside.start(Engine::Sqlite, &[]);
    world.accepted(&good_but(json!({ "to": recipients }))).await;
    peer.wait_until(|record| record.messages.len() == 30).await;
    let messages = peer.messages();
    let took = messages.last().unwrap().at - messages[0].at;
    assert!(took < Duration::from_secs(8), "30 messages to 30 sites took {took:?}");
}
