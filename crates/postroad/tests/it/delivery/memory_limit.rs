//! More messages than may wait in memory: the rest waits in the store, nothing is lost or sent twice, and other servers
//! notice nothing.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::fairness::create_second_server;
use super::limits::until_received;
use super::outside::Outside;
use crate::world::{Engine, SEND, both_engines, good_but};

both_engines!(a_backlog_beyond_the_memory_limit_waits_in_the_store);

async fn a_backlog_beyond_the_memory_limit_waits_in_the_store(engine: Engine) {
    const BACKLOG: usize = 1_000;
    const RECIPIENTS_PER_SEND: usize = 50;
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(60));
    let peer = outside.site("slow.example", Script::new().on(Stage::Message, slow));
    let quick = outside.site("quick.example", Script::new());
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_MESSAGES_IN_MEMORY", "100")]);
    let key = create_second_server(&world);
    // One send after the other: whether memory has room is checked before a send is stored.
    for first in (0..BACKLOG).step_by(RECIPIENTS_PER_SEND) {
        let to: Vec<String> = (first..first + RECIPIENTS_PER_SEND)
            .map(|number| format!("user-{number}@slow.example"))
            .collect();
        let answer = world.call(SEND, &good_but(json!({ "to": to }))).await;
        assert_eq!(answer["status"], "success", "{answer}");
    }
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
