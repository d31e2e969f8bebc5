//! Outcomes that cannot be stored stop delivery: nothing is lost, and nothing is sent twice once the store is
//! back.

use std::time::Duration;

use postroad_testkit::SmtpPeer;
use postroad_testkit::postgres::{Database, PgProxy};
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::limits::write_providers_file;
use super::outside::{Outside, to};
use crate::outage::limit_file_size;
use crate::world::{Engine, World, good_but};

const MESSAGES: usize = 200;
/// Maximum number of messages that the two connections may be sending when the store goes away.
const SENDING_AT_THE_CUT_MAX: usize = 6;
const PROVIDERS_FILE: &str =
    "[slow]\nmx = [\"slow.example\"]\nconnections_max = 2\nconnections_per_minute = 6000\n";

fn slow_site(outside: &Outside) -> SmtpPeer {
    let reply = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(15));
    outside.site("slow.example", Script::new().on(Stage::Message, reply))
}

async fn queue_many(world: &World) -> Vec<i64> {
    let mut ids = Vec::new();
    for request in 0..MESSAGES / 50 {
        let addresses: Vec<String> =
            (0..50).map(|number| format!("user-{request}-{number}@slow.example")).collect();
        let data = world.accepted(&good_but(json!({ "to": addresses }))).await;
        let messages = data["messages"].as_object().expect("a map").values();
        ids.extend(messages.map(|message| message["id"].as_i64().expect("an id")));
    }
    ids
}

fn count_received(peer: &SmtpPeer) -> usize {
    peer.look(|record| record.messages.len())
}

/// Asserts that the peer gets almost nothing more after the store went away.
async fn assert_delivery_stops(peer: &SmtpPeer, at_the_cut: usize) {
    // The absence of messages cannot be observed, so the test waits for a time in which dozens would come.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = count_received(peer);
    assert!(after <= at_the_cut + SENDING_AT_THE_CUT_MAX, "{} came without a store", after - at_the_cut);
    assert!(after < MESSAGES);
}

async fn assert_each_once(world: &World, peer: &SmtpPeer, ids: &[i64]) {
    for id in ids {
        let deliveries = world.until_status(*id, "Sent").await;
        let statuses: Vec<&Value> = deliveries.iter().map(|delivery| &delivery["status"]).collect();
        assert_eq!(statuses, ["Sent"], "{deliveries:#?}");
    }
    let mut recipients = peer.look(|record| {
        record.messages.iter().flat_map(|message| message.rcpt_to.clone()).collect::<Vec<_>>()
    });
    assert_eq!(recipients.len(), MESSAGES, "no message arrived twice");
    recipients.sort_unstable();
    recipients.dedup();
    assert_eq!(recipients.len(), MESSAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_database_stops_delivery_until_it_is_back() {
    let outside = Outside::new();
    let peer = slow_site(&outside);
    let file = write_providers_file(PROVIDERS_FILE);
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start_on(proxy.url(), Some(database), &envs);
    let ids = queue_many(&world).await;
    peer.wait_until(|record| record.messages.len() >= 20).await;
    proxy.cut();
    assert_delivery_stops(&peer, count_received(&peer)).await;
    proxy.restore();
    assert_each_once(&world, &peer, &ids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_delivery_until_there_is_room() {
    let outside = Outside::new();
    let peer = slow_site(&outside);
    let file = write_providers_file(PROVIDERS_FILE);
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(Engine::Sqlite, &envs);
    let ids = queue_many(&world).await;
    peer.wait_until(|record| record.messages.len() >= 20).await;
    limit_file_size(world.daemon.pid(), "4096");
    assert_delivery_stops(&peer, count_received(&peer)).await;
    limit_file_size(world.daemon.pid(), "unlimited");
    assert_each_once(&world, &peer, &ids).await;
}

/// Replies that came while the store was gone are in the flight journal: after a kill nothing is sent twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_without_a_store_makes_no_duplicate() {
    let outside = Outside::new();
    let peer = slow_site(&outside);
    let file = write_providers_file(PROVIDERS_FILE);
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let mut world = outside.start_on(proxy.url(), Some(database), &envs);
    let ids = queue_many(&world).await;
    peer.wait_until(|record| record.messages.len() >= 20).await;
    proxy.cut();
    assert_delivery_stops(&peer, count_received(&peer)).await;
    assert!(peer.look(|record| record.messages.iter().all(|message| message.reply.is_some())));
    world.daemon.kill9();
    proxy.restore();
    world.restart();
    assert_each_once(&world, &peer, &ids).await;
}

/// A reply that comes a moment after the peer has the message, so that a test can act in between.
fn late_reply() -> Script {
    Script::new().on(Stage::Message, Answer::reply("250 2.0.0 taken").after(Duration::from_secs(2)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_delays_no_other_message() {
    let outside = Outside::new();
    let peer = outside.site("slow.example", late_reply());
    let _other = outside.site("shop.example", Script::new());
    let world = outside.start(Engine::Postgres, &[]);
    let id = world.accepted_id(&to("ann@slow.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    let lock = world.database().lock_message(id);
    world.until_logged("locked by another transaction").await;
    let other = world.accepted_id(&to("bob@shop.example")).await;
    world.until_status(other, "Sent").await;
    assert_eq!(world.deliveries(id).await, json!([]), "its row is still locked");
    drop(lock);
    assert_eq!(world.until_status(id, "Sent").await.len(), 1);
    assert_eq!(peer.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_after_a_lost_lease_is_stored_when_the_store_is_back() {
    let outside = Outside::new();
    let peer = outside.site("slow.example", late_reply());
    let world = outside.start(Engine::Postgres, &[]);
    let id = world.accepted_id(&to("ann@slow.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    world.database().lose_claims();
    world.database().refuse_outcomes();
    world.until_logged("no room for outcomes").await;
    world.accept_outcomes();
    assert_eq!(world.until_status(id, "Sent").await.len(), 1);
    assert_eq!(peer.messages().len(), 1);
}

/// An outcome that the store refuses for good stays in the flight journal, even after a lost lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_outcome_after_a_lost_lease_is_settled_by_the_next_start() {
    let outside = Outside::new();
    let peer = outside.site("slow.example", late_reply());
    let mut world = outside.start(Engine::Postgres, &[]);
    let id = world.accepted_id(&to("ann@slow.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    world.database().lose_claims();
    world.refuse_outcomes_of(id);
    world.until_logged("storing an outcome failed for good").await;
    world.accept_outcomes();
    world.crash_and_restart();
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(peer.messages().len(), 1);
}
