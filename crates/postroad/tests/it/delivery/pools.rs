//! Pools: mail leaves from the addresses that were chosen for it, in their shares, and greets by their names.

use std::collections::HashMap;
use std::net::IpAddr;

use postroad_model::EventKind;
use postroad_testkit::SmtpPeer;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::limits::send_many;
use super::outside::{Outside, to};
use crate::world::{Engine, World, both_engines};

/// Addresses of the loopback that no peer has.
const FIRST: &str = "127.0.1.1";
const SECOND: &str = "127.0.1.2";

fn add_address(world: &World, pool: &str, address: &str, more: &[&str]) {
    let helo = format!("{}.out.example", address.replace('.', "-"));
    let mut args = vec!["pool", "add-address", pool, address, "--helo", &helo];
    args.extend_from_slice(more);
    world.admin(&args);
}

/// Messages by the address they came from; every connection must greet by the name of its address.
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

both_engines! {
    async fn a_servers_pool_is_where_its_mail_leaves(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("shop.example", Script::new());
        let world = outside.start(engine, &[]);
        world.admin(&["pool", "create", "everybody", "--shared"]);
        add_address(&world, "everybody", FIRST, &[]);
        world.have_changes_heeded();
        let shared = world.accepted_id(&to("ann@shop.example")).await;
        assert_eq!(world.until_status(shared, "Sent").await[0]["source_ip"], FIRST);
        world.admin(&["pool", "create", "own"]);
        add_address(&world, "own", SECOND, &[]);
        world.admin(&["server", "set-pool", "dev", "own"]);
        world.have_changes_heeded();
        let own = world.accepted_id(&to("bob@shop.example")).await;
        assert_eq!(world.until_status(own, "Sent").await[0]["source_ip"], SECOND);
        let counts = by_source(&peer);
        assert_eq!((counts[&FIRST.parse().unwrap()], counts[&SECOND.parse().unwrap()]), (1, 1));
    }

    async fn a_warming_address_sends_its_quota_and_the_shared_pool_the_rest(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("shop.example", Script::new());
        let world = outside.start(engine, &[("POSTROAD_DELIVERY_WARMUP_PLAN", "5,10")]);
        world.admin(&["pool", "create", "everybody", "--shared"]);
        add_address(&world, "everybody", FIRST, &[]);
        world.admin(&["pool", "create", "fresh"]);
        add_address(&world, "fresh", SECOND, &["--warm-up"]);
        world.admin(&["server", "set-pool", "dev", "fresh"]);
        world.have_changes_heeded();
        send_many(&world, &world.key, "shop.example", 20).await;
        peer.wait_until(|record| record.messages.len() == 20).await;
        let counts = by_source(&peer);
        assert_eq!(counts[&SECOND.parse::<IpAddr>().unwrap()], 5, "{counts:?}");
        assert_eq!(counts[&FIRST.parse::<IpAddr>().unwrap()], 15, "{counts:?}");
    }
}

both_engines! {
    async fn a_warm_up_that_bounces_is_paused_and_told(engine: Engine) {
        let outside = Outside::new();
        let gone = Answer::reply("550 5.1.1 no such user here");
        let _peer = outside.site("shop.example", Script::new().on(Stage::RcptTo, gone));
        let mut world = outside.start(engine, &[]);
        world.admin(&["pool", "create", "fresh"]);
        add_address(&world, "fresh", FIRST, &["--warm-up"]);
        world.admin(&["server", "set-pool", "dev", "fresh"]);
        world.have_changes_heeded();
        send_many(&world, &world.key, "shop.example", 60).await;
        world.until_logged("the warm-up is paused").await;
        let paused = world.admin(&["pool", "list"])[0]["addresses"][0].clone();
        assert_eq!(paused["warm_up"], "paused", "{paused}");
        let told = world.events_at_the_end(0).await;
        assert_eq!((told.len(), told[0].event.kind), (1, EventKind::IpWarmupPaused));
        let data: Value = serde_json::from_str(&told[0].event.data).unwrap();
        assert_eq!(data, json!({"address": FIRST, "pool": "fresh", "reason": paused["warm_up_paused_reason"]}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_share_the_mail_by_weight() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    world.admin(&["pool", "create", "everybody", "--shared"]);
    add_address(&world, "everybody", FIRST, &["--weight", "1"]);
    add_address(&world, "everybody", SECOND, &["--weight", "3"]);
    world.have_changes_heeded();
    send_many(&world, &world.key, "shop.example", 400).await;
    peer.wait_until(|record| record.messages.len() == 400).await;
    let counts = by_source(&peer);
    let light = counts[&FIRST.parse::<IpAddr>().unwrap()];
    assert!((85..=115).contains(&light), "a quarter of 400: {counts:?}");
}
