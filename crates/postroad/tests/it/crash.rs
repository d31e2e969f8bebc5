//! kill -9 during a load: every acknowledged message is stored.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postroad_testkit::http::Client;
use rand::Rng;
use serde_json::json;

use crate::world::{MESSAGE, SEND, World, both_engines, good_but};

const CONNECTIONS: usize = 64;
const REQUESTS: usize = 5_000;

both_engines!(every_acknowledged_message_survives_kill_9);

async fn every_acknowledged_message_survives_kill_9(world: World) {
    let mut world = world;
    let acknowledged: Arc<Mutex<Vec<(i64, String)>>> = Arc::default();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CONNECTIONS {
        // Each caller has its own client, and so its own connection.
        let client = Client::new(world.daemon.ready()["url"].as_str().unwrap());
        let (key, acknowledged) = (world.key.clone(), Arc::clone(&acknowledged));
        callers.spawn(async move {
            for number in 0..REQUESTS / CONNECTIONS {
                let subject = format!("message {caller}/{number}");
                let body = good_but(json!({"subject": subject, "plain_body": "x".repeat(2_000)}));
                let Ok(reply) = client.post_json(SEND, Some(&key), &body).await else { return };
                if reply.status == 200 {
                    let id = reply.json()["data"]["messages"]["someone@example.com"]["id"].as_i64().unwrap();
                    acknowledged.lock().unwrap().push((id, subject));
                }
            }
        });
    }
    // The kill comes after a number of answers, not after a time, so that it also hits a slow machine in the middle of
    // its work.
    let answers_before_kill = rand::rng().random_range(300..1_500);
    while acknowledged.lock().unwrap().len() < answers_before_kill && !callers.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.daemon.kill9();
    callers.join_all().await;
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    assert!(
        acknowledged.len() >= answers_before_kill && acknowledged.len() < REQUESTS,
        "{}",
        acknowledged.len()
    );
    world.restart();
    let highest = acknowledged.iter().map(|(id, _)| *id).max().unwrap();
    for chunk in acknowledged.chunks(CONNECTIONS) {
        let checks = chunk.iter().map(async |(id, subject)| {
            let body = json!({"id": id, "_expansions": ["status", "details", "plain_body"]});
            let read = world.call(MESSAGE, &body).await;
            assert_eq!(
                read["status"], "success",
                "message {id} is lost (killed after {answers_before_kill} answers)"
            );
            assert_eq!(read["data"]["details"]["subject"], *subject);
            let status = &read["data"]["status"];
            let is_queued = status["next_attempt"].is_f64();
            assert!(
                is_queued || status["status"] == "Sent",
                "message {id} is neither queued nor sent: {status}"
            );
            assert_eq!(read["data"]["plain_body"].as_str().unwrap().trim_end().len(), 2_000);
        });
        futures_util::future::join_all(checks).await;
    }
    // New ids are higher than all ids given out before the crash.
    assert!(world.accepted_id(&crate::world::good()).await > highest);
}
