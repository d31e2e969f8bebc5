//! kill -9 in the middle of batches: each is stored whole or not at all, and its idempotency key gives
//! the same answer.

use std::collections::BTreeSet;
use std::time::Duration;

use postroad_testkit::http::Client;
use serde_json::{Value, json};

use super::{BATCH, batch_to, id_of};
use crate::world::{MESSAGE, World, both_engines};

const BATCHES: usize = 20;
const MESSAGES: usize = 100;

fn batch(number: usize, mode: &str) -> Value {
    let mut batch = batch_to((0..MESSAGES).map(|at| format!("r{at}@example.net")));
    batch["mode"] = json!(mode);
    batch["idempotency_key"] = json!(format!("batch {number}"));
    batch["defaults"]["tag"] = json!(format!("batch {number}"));
    batch
}

/// Number of stored messages of a batch.
async fn count_stored(world: &World, number: usize) -> usize {
    let (mut count, mut cursor) = (0, Value::Null);
    loop {
        let request = json!({"tag": format!("batch {number}"), "limit": 500, "cursor": cursor});
        let page = world.call("/api/v1/messages/search", &request).await;
        count += page["data"]["items"].as_array().unwrap_or_else(|| panic!("{page}")).len();
        cursor = page["flags"]["pagination"]["next_cursor"].clone();
        if cursor.is_null() {
            return count;
        }
    }
}

both_engines!(
    a_batch_survives_kill_9_whole_or_not_at_all,
    an_atomic_batch_survives_kill_9_whole_or_not_at_all
);

async fn a_batch_survives_kill_9_whole_or_not_at_all(world: World) {
    kill_in_the_middle(world, "independent").await;
}

async fn an_atomic_batch_survives_kill_9_whole_or_not_at_all(world: World) {
    kill_in_the_middle(world, "atomic").await;
}

async fn kill_in_the_middle(mut world: World, mode: &'static str) {
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let (answer_sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..4 {
        let (client, key, answer_sender) = (Client::new(&url), world.key.clone(), answer_sender.clone());
        callers.spawn(async move {
            for number in (caller..BATCHES).step_by(4) {
                let Ok(reply) = client.post_json(BATCH, Some(&key), &batch(number, mode)).await else {
                    return;
                };
                if reply.status == 200 {
                    let _ = answer_sender.send((number, reply.json()));
                }
            }
        });
    }
    drop(answer_sender);
    let mut acknowledged: Vec<(usize, Value)> = Vec::new();
    while acknowledged.len() < 6 {
        acknowledged.extend(tokio::time::timeout(Duration::from_mins(1), answers.recv()).await.unwrap());
    }
    world.daemon.kill9();
    callers.join_all().await;
    while let Ok(more) = answers.try_recv() {
        acknowledged.push(more);
    }
    assert!(acknowledged.len() < BATCHES, "it was killed too late");
    world.restart();
    let mut stored = BTreeSet::new();
    for number in 0..BATCHES {
        let count = count_stored(&world, number).await;
        assert!(count == 0 || count == MESSAGES, "{count} messages of batch {number} are stored");
        if count == MESSAGES {
            stored.insert(number);
        }
        let is_answered = acknowledged.iter().any(|(known, _)| *known == number);
        assert!(count == MESSAGES || !is_answered, "batch {number} is lost");
    }
    for (number, answer) in &acknowledged {
        let again = world.call(BATCH, &batch(*number, mode)).await;
        assert_eq!(again["data"], answer["data"], "the same answer");
        assert_eq!(again["flags"], json!({"idempotent_replay": true}));
    }
    // Now every batch gets complete: either it was stored before the kill and its answer is replayed, or this call
    // accepts it.
    for number in 0..BATCHES {
        let again = world.call(BATCH, &batch(number, mode)).await;
        assert_eq!(
            (&again["status"], &again["data"]["accepted"]),
            (&json!("success"), &json!(MESSAGES)),
            "{again}"
        );
        assert_eq!(
            again["flags"]["idempotent_replay"] == true,
            stored.contains(&number),
            "batch {number}: {again}"
        );
        assert_eq!(count_stored(&world, number).await, MESSAGES, "batch {number}");
        if number % 8 == 0 || !acknowledged.iter().any(|(known, _)| *known == number) {
            for at in [0, MESSAGES / 2, MESSAGES - 1] {
                let id = id_of(&again["data"]["results"][at]);
                let found =
                    world.call(MESSAGE, &json!({"id": id, "_expansions": ["status", "details"]})).await;
                assert_eq!(found["status"], "success", "batch {number}, message {at}: {found}");
                assert_eq!(found["data"]["details"]["tag"], format!("batch {number}"));
                let status = &found["data"]["status"];
                assert!(status["next_attempt"].is_f64() || status["status"] == "Sent", "{status}");
            }
        }
    }
}
