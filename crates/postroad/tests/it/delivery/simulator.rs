//! Simulator recipients: each ends as the documentation says, through the real pipeline.

use serde_json::Value;

use super::outside::to;
use crate::world::{Engine, World, both_engines};

/// Statuses and classes of a message's deliveries, in their order.
fn course(deliveries: &[Value]) -> String {
    let words = deliveries.iter().map(|delivery| {
        let status = delivery["status"].as_str().expect("a status");
        delivery["bounce_class"].as_str().map_or(status.to_owned(), |class| format!("{status}/{class}"))
    });
    words.collect::<Vec<_>>().join(" ")
}

both_engines! {
    async fn recipients_end_as_documented(world: World) {
        let final_ones = [
            ("delivered", "Sent", "Sent"),
            ("defer", "Sent", "SoftFail/policy SoftFail/policy Sent"),
            ("greylist", "Sent", "SoftFail/policy Sent"),
            ("missing", "HardFail", "HardFail/bad_mailbox"),
            ("missing+order-7", "HardFail", "HardFail/bad_mailbox"),
            ("blocked", "HardFail", "HardFail/spam_block"),
            ("bounce-later", "Sent", "Sent"),
            ("complaint", "Sent", "Sent"),
            ("open", "Sent", "Sent"),
            ("click", "Sent", "Sent"),
            ("smtp-554-5.6.0", "HardFail", "HardFail/content"),
            ("smtp-250-2.1.5", "Sent", "Sent"),
            ("nobody-knows", "HardFail", "HardFail/bad_mailbox"),
        ];
        let waiting_ones =
            [("full", "SoftFail/full"), ("timeout", "SoftFail/timeout"), ("smtp-421-4.3.2", "SoftFail/other")];
        let mut ids = Vec::new();
        for name in final_ones.map(|(name, ..)| name).into_iter().chain(waiting_ones.map(|(name, _)| name)) {
            ids.push(world.accepted_id(&to(&format!("{name}@sim.postroad.test"))).await);
        }
        let mut ids = ids.into_iter();
        for ((name, status, expected), id) in final_ones.into_iter().zip(&mut ids) {
            assert_eq!(course(&world.until_status(id, status).await), expected, "{name}");
        }
        for ((name, expected), id) in waiting_ones.into_iter().zip(&mut ids) {
            let deliveries = world.until_deliveries(id, 1).await;
            assert_eq!(course(&deliveries[..1]), expected, "{name}");
            let pause = deliveries[0]["next_attempt_at"].as_f64().expect("it is tried again")
                - deliveries[0]["timestamp"].as_f64().unwrap();
            assert!(pause < 10.0, "{name}: retries of the simulator take seconds, not {pause}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulated_bounce_suppresses_nobody() {
    let world = World::start(Engine::Sqlite);
    for _ in 0..2 {
        let id = world.accepted_id(&to("missing@sim.postroad.test")).await;
        let deliveries = world.until_status(id, "HardFail").await;
        assert_eq!(course(&deliveries), "HardFail/bad_mailbox");
        assert_eq!(deliveries[0]["mx"], "simulator.localhost");
    }
}
