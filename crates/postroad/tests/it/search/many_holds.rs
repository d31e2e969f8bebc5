//! A job on many messages shows its progress, and new messages are accepted beside it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{find_all, query};
use crate::batch::{BATCH, batch_to};
use crate::world::{SEND, World, both_engines, good};

const BATCHES: usize = 6;
const HELD_MESSAGES: u64 = 3_000;

both_engines!(a_job_on_many_held_messages_shows_progress_and_delays_no_send);

async fn a_job_on_many_held_messages_shows_progress_and_delays_no_send(world: World) {
    let (_, hold_key) = world.new_key(&["--hold"]);
    for batch in 0..BATCHES {
        let request = batch_to((0..500).map(|number| format!("u{batch}.{number}@example.com")));
        let answer = world.call_as(&hold_key, BATCH, &request).await;
        assert_eq!(answer["data"]["accepted"], 500, "{answer}");
    }
    let begun = Instant::now();
    let started = world.call("/api/v1/messages/cancel_hold", &json!({"query": "status:held"})).await;
    // Counting has its own time limit, so it may stop early.
    let counted_all = started["data"]["matched_all"] == true;
    assert!(!counted_all || started["data"]["matched"] == HELD_MESSAGES, "{started}");
    assert!(begun.elapsed() < Duration::from_secs(8), "the call waits for no message: {:?}", begun.elapsed());
    let polling_begun = Instant::now();
    let (mut progress, mut accept_times): (Vec<u64>, Vec<Duration>) = (Vec::new(), Vec::new());
    let job = loop {
        let begun = Instant::now();
        let sent = world.call(SEND, &good()).await;
        assert_eq!(sent["status"], "success", "{sent}");
        accept_times.push(begun.elapsed());
        let job =
            world.call("/api/v1/jobs/get", &json!({"id": started["data"]["job_id"]})).await["data"].clone();
        progress.push(job["done"].as_u64().unwrap());
        if job["state"] != "running" {
            break job;
        }
        assert!(polling_begun.elapsed() < Duration::from_mins(2), "the job does not end: {job}");
    };
    let expected = json!({"state": "done", "done": HELD_MESSAGES, "total": HELD_MESSAGES, "failed": 0});
    let ended =
        json!({"state": job["state"], "done": job["done"], "total": job["total"], "failed": job["failed"]});
    assert_eq!(ended, expected, "{job}");
    assert!(progress.is_sorted(), "{progress:?}");
    assert!(progress.iter().any(|done| (1..HELD_MESSAGES).contains(done)), "progress is shown: {progress:?}");
    accept_times.sort_unstable();
    let (median, longest) = (accept_times[accept_times.len() / 2], accept_times[accept_times.len() - 1]);
    assert!(
        median < Duration::from_millis(500) && longest < Duration::from_secs(3),
        "{median:?} {longest:?}"
    );
    assert_eq!(find_all(&world, &query("status:held")).await, Vec::<i64>::new());
    let cancelled = find_all(&world, &json!({"status": "hold_cancelled", "limit": 500})).await;
    assert_eq!(cancelled.len() as u64, HELD_MESSAGES);
    let again: Value = world.call("/api/v1/messages/cancel_hold", &json!({"query": "status:held"})).await;
    assert_eq!(again["data"]["matched"], 0);
}
