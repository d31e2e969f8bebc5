//! kill -9 while sending, repeatedly: no accepted message is lost, and only a lost reply causes a duplicate.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postroad_testkit::SmtpPeer;
use postroad_testkit::http::Client;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use rand::Rng;
use serde_json::{Value, json};

use super::limits::write_providers_file;
use super::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

const SENDERS: usize = 2;

/// Address and id of each message whose acceptance was answered.
type Accepted = Arc<Mutex<Vec<(String, i64)>>>;

/// Sends one message after the other until the service is gone.
async fn send_until_killed(client: Client, key: String, prefix: String, accepted: Accepted) {
    for number in 0.. {
        let address = format!("{prefix}-{number}@crash.example");
        let Ok(reply) = client.post_json(SEND, Some(&key), &good_but(json!({"to": [address]}))).await else {
            return;
        };
        let id = reply.json()["data"]["messages"][&address]["id"].as_i64();
        accepted.lock().unwrap().push((address, id.expect("a running service accepts good messages")));
    }
}

/// Sends until the service is killed. The moment of the kill is counted in messages at the peer, so that it hits a slow
/// machine in the middle of sending, too.
async fn run_and_kill(world: &mut World, round: usize, peer: &SmtpPeer, accepted: &Accepted) {
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..SENDERS {
        let client = Client::new(world.daemon.ready()["url"].as_str().unwrap());
        let prefix = format!("m-{round}-{sender}");
        senders.spawn(send_until_killed(client, world.key.clone(), prefix, Arc::clone(accepted)));
    }
    let (messages, micros) = (rand::rng().random_range(1..=8), rand::rng().random_range(0..20_000));
    let count = peer.look(|record| record.messages.len()) + messages;
    peer.wait_until(|record| record.messages.len() >= count).await;
    tokio::time::sleep(Duration::from_micros(micros)).await;
    world.daemon.kill9();
    senders.join_all().await;
}

/// Number of copies that the peer received, by recipient.
fn copies(peer: &SmtpPeer) -> HashMap<String, usize> {
    let mut copies = HashMap::new();
    peer.look(|record| {
        for message in &record.messages {
            *copies.entry(message.rcpt_to[0].clone()).or_default() += 1;
        }
    });
    copies
}

#[expect(clippy::print_stdout, reason = "how many duplicates kills make is a figure that people ask for")]
fn report(figures: &str) {
    println!("{figures}");
}

both_engines!(every_message_is_sent_and_only_a_lost_reply_causes_a_duplicate);

async fn every_message_is_sent_and_only_a_lost_reply_causes_a_duplicate(engine: Engine) {
    let kills = if engine == Engine::Sqlite { 100 } else { 20 };
    let outside = Outside::new();
    // The reply is late enough that some kills fall between the end of a message and its reply.
    let reply = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(3));
    let peer = outside.site("crash.example", Script::new().on(Stage::Message, reply));
    let file = write_providers_file(
        "[crash]\nmx = [\"crash.example\"]\nconnections_per_minute = 60000\nslow_start_connections = 10\n",
    );
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let mut world = outside.start(engine, &envs);
    let accepted = Accepted::default();
    for round in 0..kills {
        run_and_kill(&mut world, round, &peer, &accepted).await;
        world.restart();
    }
    let accepted = std::mem::take(&mut *accepted.lock().unwrap());
    assert!(accepted.len() > kills, "only {} messages were accepted", accepted.len());
    let mut announced: HashMap<&str, usize> = HashMap::new();
    for chunk in accepted.chunks(16) {
        let histories = chunk.iter().map(|(_, id)| world.until_status(*id, "Sent"));
        let histories = futures_util::future::join_all(histories).await;
        for ((address, _), deliveries) in chunk.iter().zip(histories) {
            let count =
                |condition: &dyn Fn(&Value) -> bool| deliveries.iter().filter(|d| condition(d)).count();
            assert_eq!(count(&|d| d["status"] == "Sent"), 1, "one final state: {deliveries:#?}");
            assert_eq!(deliveries.last().unwrap()["status"], "Sent");
            announced.insert(address, count(&|d| d["possible_duplicate"] == true));
        }
    }
    let copies = copies(&peer);
    let received = copies.values().sum::<usize>();
    let (mut duplicates, mut possible) = (0, 0);
    for (address, announced) in announced {
        let copies = copies.get(address).copied().unwrap_or(0);
        assert!(copies >= 1, "{address} never arrived");
        assert!(copies <= 1 + announced, "{address} arrived {copies} times, {announced} announced");
        duplicates += copies - 1;
        possible += announced;
    }
    report(&format!(
        "{engine:?}: {kills} kills, {} messages accepted, {received} received; of the accepted ones {duplicates} \
             came twice, {possible} were announced as possible duplicates",
        accepted.len()
    ));
    peer.look(|record| {
        let mut first: HashMap<&str, &[u8]> = HashMap::new();
        for message in &record.messages {
            let seen = first.entry(&message.rcpt_to[0]).or_insert(&message.bytes);
            assert_eq!(*seen, &*message.bytes, "a second copy has the same bytes");
        }
        // A client that continues on the same connection has seen the reply: no other copy comes after that. Read
        // backwards, so that what comes later is known.
        let mut connections_used_later: HashSet<u32> = HashSet::new();
        let mut later_copies: HashSet<&str> = HashSet::new();
        for message in record.messages.iter().rev() {
            let (address, was_seen) =
                (message.rcpt_to[0].as_str(), !connections_used_later.insert(message.connection));
            let comes_again = !later_copies.insert(address);
            assert!(!(was_seen && comes_again), "{address} came again after its reply was seen");
        }
    });
}
