//! Another sender's backlog does not delay small urgent mail.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::limits::{send_many, write_providers_file};
use super::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

/// Maximum number of backlog messages that may arrive between the API's answer to the second server and the arrival
/// of that server's message: those that connections had already taken, and a few turns.
const BACKLOG_FIRST_MAX: usize = 10;

/// Creates another server with a verified domain; returns its key.
pub(crate) fn create_second_server(world: &World) -> String {
    world.admin(&["account", "create", "Second"]);
    world.admin(&["server", "create", "second", "--account", "Second"]);
    world.admin(&["domain", "create", "second.test", "--server", "second"]);
    world.admin(&["domain", "set-verified", "second.test", "--server", "second"]);
    let made = world.admin(&["key", "create", "--server", "second"]);
    made["api_key"].as_str().expect("a key").to_owned()
}

both_engines!(one_message_does_not_wait_behind_thousands_of_another_server);

async fn one_message_does_not_wait_behind_thousands_of_another_server(engine: Engine) {
    const BACKLOG: usize = 3_000;
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 taken").after(Duration::from_millis(15));
    let peer = outside.site("slow.example", Script::new().on(Stage::Message, slow));
    let file = write_providers_file("[slow]\nmx = [\"slow.example\"]\nconnections_max = 2\n");
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(engine, &envs);
    let key = create_second_server(&world);
    send_many(&world, &world.key, "slow.example", BACKLOG).await;
    for number in 0..5 {
        let address = format!("reset-{number}@slow.example");
        let body = good_but(json!({"from": "security@second.test", "to": [address]}));
        let answer = world.call_as(&key, SEND, &body).await;
        assert_eq!(answer["status"], "success", "{answer}");
        let before = peer.look(|record| record.messages.len());
        peer.wait_until(|record| record.messages.iter().any(|m| m.rcpt_to[0] == address)).await;
        let position =
            peer.look(|record| record.messages.iter().position(|m| m.rcpt_to[0] == address)).unwrap();
        let backlog_first = position.saturating_sub(before);
        assert!(
            backlog_first <= BACKLOG_FIRST_MAX,
            "it waited for {backlog_first} messages of the other sender"
        );
        assert!(position < BACKLOG, "the other sender had nothing waiting any more");
    }
}
