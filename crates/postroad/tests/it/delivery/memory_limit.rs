//! More messages than may wait in memory: the rest waits in the store, nothing is lost or sent twice, and other servers
//! notice nothing.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::fairness::second_sender;
use super::limits::{send_many, until_received};
use super::outside::Outside;
use crate::world::{Engine, SEND, both_engines, good_but};

both_engines!(a_backlog_beyond_the_memory_waits_in_the_store);

async fn a_backlog_beyond_the_memory_waits_in_the_store(engine: Engine) {
    const BACKLOG: usize = 1_000;
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(60));
    let peer = outside.site("slow.example", Script::new().on(Stage::Message, slow));
    let quick = outside.site("quick.example", Script::new());
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_MESSAGES_IN_MEMORY", "100")]);
    let key = second_sender(&world);
    // On a busy machine it could leave as fast as it comes.
    world.queue(&["suspend", "domain:slow.example", "--reason", "until all of it is here"]);
    send_many(&world, &world.key, "slow.example", BACKLOG).await;
    world.queue(&["resume", "domain:slow.example"]);
    for number in 0..5 {
        let address = format!("reset-{number}@quick.example");
        let body = good_but(json!({"from": "security@second.test", "to": [address]}));
        let answer = world.call_as(&key, SEND, &body).await;
        assert_eq!(answer["status"], "success", "{answer}");
        quick.wait_until(|record| record.messages.iter().any(|m| m.rcpt_to[0] == address)).await;
    }
    let before = peer.look(|record| record.messages.len());
    assert!(before < BACKLOG, "the other sender had nothing waiting any more");
    until_received(&peer, BACKLOG).await;
    let mut recipients: Vec<String> = peer.messages().into_iter().flat_map(|m| m.rcpt_to).collect();
    recipients.sort_unstable();
    recipients.dedup();
    assert_eq!((recipients.len(), peer.messages().len()), (BACKLOG, BACKLOG), "each once");
}
