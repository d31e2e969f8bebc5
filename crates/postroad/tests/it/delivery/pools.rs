//! Pools: which address of ours a message leaves from, and what it greets with.

use std::collections::HashMap;

use postroad_testkit::SmtpPeer;
use postroad_testkit::smtp_peer::Script;
use serde_json::json;

use super::limits::{send_many, until_received};
use super::outside::{Outside, to};
use crate::world::{Engine, both_engines, good_but};

/// Messages by the address that they came from.
fn by_source(peer: &SmtpPeer) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for connection in peer.connections() {
        let from = connection.from.map(|address| address.to_string()).unwrap_or_default();
        *counts.entry(from).or_default() += connection.messages_begun as usize;
    }
    counts
}

both_engines! {
    async fn a_servers_mail_leaves_from_its_pool_and_greets_with_its_name(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("one.example", Script::new());
        let world = outside.start(engine, &[]);
        world.admin(&["pool", "create", "main", "--shared"]);
        world.admin(&["pool", "create", "own"]);
        world.admin(&["pool", "add-address", "main", "127.0.1.1", "--helo", "shared.here.example"]);
        world.admin(&["pool", "add-address", "own", "127.0.1.2", "--helo", "own.here.example"]);
        let shared = world.accepted_id(&to("a@one.example")).await;
        let record = world.until_status(shared, "Sent").await;
        assert_eq!(record[0]["source_ip"], "127.0.1.1");
        world.admin(&["server", "set-pool", "dev", "own"]);
        let own = world.accepted_id(&to("b@one.example")).await;
        assert_eq!(world.until_status(own, "Sent").await[0]["source_ip"], "127.0.1.2");
        // A message may name a pool: its server's own or the shared one.
        let named = good_but(json!({"to": ["c@one.example"], "ip_pool": "main"}));
        let named = world.accepted_id(&named).await;
        assert_eq!(world.until_status(named, "Sent").await[0]["source_ip"], "127.0.1.1");
        let commands: Vec<String> = peer.connections().into_iter().flat_map(|c| c.commands).collect();
        assert!(commands.iter().any(|line| line == "EHLO own.here.example"), "{commands:?}");
        world.admin(&["pool", "create", "others"]);
        let foreign = good_but(json!({"to": ["c@one.example"], "ip_pool": "others"}));
        let refused = world.call(crate::world::SEND, &foreign).await;
        assert_eq!(refused["data"]["errors"][0]["pointer"], "/ip_pool", "{refused}");
        let (success, _, error) = world.admin_output(&["pool", "delete", "own"]);
        assert!(!success && error.contains("is in use"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_share_the_mail_and_a_warming_address_sends_its_quota_only() {
    let outside = Outside::new();
    let peer = outside.site("one.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "20,40")]);
    world.admin(&["pool", "create", "main", "--shared"]);
    world.admin(&["pool", "add-address", "main", "127.0.1.1", "--helo", "a.here.example", "--weight", "3"]);
    world.admin(&["pool", "add-address", "main", "127.0.1.2", "--helo", "b.here.example"]);
    send_many(&world, &world.key, "one.example", 400).await;
    until_received(&peer, 400).await;
    let counts = by_source(&peer);
    assert!((280..=320).contains(&counts["127.0.1.1"]), "{counts:?}");

    world.admin(&["pool", "create", "new"]);
    world.admin(&["pool", "add-address", "new", "127.0.1.3", "--helo", "c.here.example", "--warm-up"]);
    world.admin(&["server", "set-pool", "dev", "new"]);
    let other = outside.site("two.example", Script::new());
    send_many(&world, &world.key, "two.example", 100).await;
    until_received(&other, 100).await;
    assert_eq!(by_source(&other)["127.0.1.3"], 20, "the first day's quota; the rest left by the shared pool");
    let pools = world.admin(&["pool", "list"]);
    let warming = pools.as_array().unwrap().iter().find(|pool| pool["name"] == "new").unwrap();
    assert_eq!(warming["addresses"][0]["warm_up"], "running");
}
