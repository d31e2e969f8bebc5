//! SIGTERM: no new work, what is past its end may finish, the rest is given back as if it had never been touched.

use std::time::{Duration, Instant};

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::limits::providers;
use super::outside::Outside;
use crate::world::{both_engines, good_but};

const COUNT: usize = 20;

both_engines! {
    async fn messages_past_their_end_finish_and_the_rest_is_released(engine: Engine) {
        let outside = Outside::new();
        let late = Answer::reply("250 2.0.0 taken after all").after(Duration::from_secs(1));
        let peer = outside.site("slow.example", Script::new().on(Stage::Message, late));
        let file = providers("[slow]\nmx = [\"slow.example\"]\nconnections_max = 2\nconnections_per_minute = 6000\n");
        let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
        let mut world = outside.start(engine, &envs);
        let addresses: Vec<String> = (0..COUNT).map(|number| format!("user-{number}@slow.example")).collect();
        let data = world.accepted(&good_but(json!({ "to": addresses }))).await;
        peer.wait_until(|record| record.messages.len() == 2).await;
        let start = Instant::now();
        assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        let messages = peer.messages();
        assert_eq!(messages.len(), 2, "nothing new was begun");
        assert!(messages.iter().all(postroad_testkit::smtp_peer::ReceivedMessage::is_acknowledged));
        let finished: Vec<String> = messages.into_iter().map(|message| message.rcpt_to[0].clone()).collect();

        peer.set_script(Script::new());
        world.restart();
        for address in &addresses {
            let id = data["messages"][address]["id"].as_i64().unwrap();
            let deliveries = world.until_status(id, "Sent").await;
            assert_eq!(deliveries.len(), 1, "no attempt was counted: {deliveries:#?}");
            let said = deliveries[0]["output"].as_str().unwrap();
            let is_from_before = said == "250 2.0.0 taken after all";
            assert_eq!(is_from_before, finished.contains(address), "{address}: {said}");
        }
        assert_eq!(peer.messages().len(), COUNT, "each arrived once");
    }

    async fn a_stop_in_the_middle_of_a_transaction_costs_no_attempt(engine: Engine) {
        let outside = Outside::new();
        let peer = outside.site("tarpit.example", Script::new().on(Stage::RcptTo, Answer::stall()));
        let mut world = outside.start(engine, &[]);
        let id = world.accepted_id(&good_but(json!({"to": ["ann@tarpit.example"]}))).await;
        let is_asking = |line: &String| line.starts_with("RCPT");
        peer.wait_until(|record| record.connections.iter().any(|c| c.commands.iter().any(is_asking))).await;
        let start = Instant::now();
        assert!(world.daemon.terminate().success());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        peer.set_script(Script::new());
        world.restart();
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(peer.messages().len(), 1);
    }
}
