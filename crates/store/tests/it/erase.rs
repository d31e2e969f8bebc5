//! An erased message leaves neither its text nor anything that identifies its recipient.

use std::fs;
use std::path::Path;

use postroad_model::MessageId;
use postroad_store::{Erased, IndexProgress, InitialState, WaitingFor};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(the_index_forgets_an_erased_message, a_message_with_many_events_is_erased_in_steps);

/// Random, so that it is stored as it is.
fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut text = vec![0; bytes];
    SmallRng::seed_from_u64(seed).fill_bytes(&mut text);
    text
}

async fn accept(fixture: &Fixture, address: &str, text: &[u8]) -> MessageId {
    let mut send = fixture.send(fixture.server, &[address], InitialState::Pending, text);
    "Your quarterly statement".clone_into(&mut send.info.subject);
    send.info.metadata.insert("customer".into(), "4711".into());
    fixture.accept(send).await[0]
}

async fn erase(fixture: &Fixture, id: MessageId) {
    let store = &fixture.store;
    store.cancel_if(fixture.server, id, WaitingFor::Anything).await.expect("the store works");
    assert_eq!(store.erase_message(fixture.server, id).await.expect("the store works"), Erased::Done);
}

/// Whether a file below the folder has 32 bytes of the text, looked for at many of its places.
fn is_left(folder: &Path, text: &[u8]) -> bool {
    let needles: Vec<&[u8]> = text.chunks_exact(32).step_by(8).collect();
    fs::read_dir(folder).expect("the folder is there").any(|entry| {
        let path = entry.expect("the folder is there").path();
        if path.is_dir() {
            return is_left(&path, text);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        needles.iter().any(|needle| memchr::memmem::find(&bytes, needle).is_some())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_has_a_part_of_an_erased_text() {
    let fixture = Fixture::sqlite().await;
    let mut messages = Vec::new();
    // In a row, in pages of its own, in a file.
    for (seed, bytes) in [(1, 700), (2, 3_000), (3, 40_000), (4, 90_000)] {
        let text = text(seed, bytes);
        messages.push((accept(&fixture, "ann@example.com", &text).await, text));
        accept(&fixture, "bob@example.com", b"Somebody else's text").await;
    }
    let folder = fixture.place.sqlite_path().parent().expect("a folder").to_owned();
    for (id, text) in &messages {
        assert!(is_left(&folder, text), "it is stored as it is, or this test shows nothing");
        erase(&fixture, *id).await;
    }
    fixture.store.truncate_log().await.expect("nobody reads");
    for (_, text) in &messages {
        assert!(!is_left(&folder, text), "{} bytes", text.len());
    }
}

async fn the_index_forgets_an_erased_message(fixture: Fixture) {
    let erased = accept(&fixture, "jane.doe@customer.example", b"x").await;
    accept(&fixture, "bob@example.com", b"x").await;
    fixture.clock.advance(std::time::Duration::from_mins(1));
    let indexed = fixture.store.index_next_block(fixture.server, 2).await.expect("the store works");
    assert_eq!(indexed, IndexProgress::Added);
    let tokens = "SELECT count(*) FROM search_postings";
    let before = fixture.query_int(tokens).await;
    erase(&fixture, erased).await;
    let after = fixture.query_int(tokens).await;
    // Every three letters of the address that the other one does not have; the other message has the same subject.
    let only_hers = "jane.doe@customer.".len() as i64 - 2;
    assert!(before - after >= only_hers, "{before} tokens, then {after}");
    let blocks = "SELECT count(*) FROM search_postings WHERE length(positions) > 1";
    assert!(fixture.query_int(blocks).await < 30, "the subject is the other's only");
}

async fn a_message_with_many_events_is_erased_in_steps(fixture: Fixture) {
    let id = accept(&fixture, "jane.doe@customer.example", b"x").await;
    // Its own events first: those below have ids and numbers that would be next.
    let cancelled = fixture.store.cancel_if(fixture.server, id, WaitingFor::Anything).await;
    assert!(cancelled.is_ok(), "{cancelled:?}");
    let events = if fixture.is_sqlite() {
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n FROM n"
    } else {
        "SELECT n FROM generate_series(1, 1000) AS n"
    };
    // Copies of the first event, as many opens would be.
    let text = format!(
        "INSERT INTO events (server_id, id, seq, message_id, kind, at, test, data)
         SELECT e.server_id, e.id - m.n, e.seq + 1000 + m.n, e.message_id, 'message.opened', e.at, e.test, '{{\"user_agent\":\"jane\"}}'
         FROM events e CROSS JOIN ({events}) AS m WHERE e.message_id = {id} AND e.kind = 'message.accepted'",
        id = id.0
    );
    fixture.execute(&text).await;
    erase(&fixture, id).await;
    let left = format!("SELECT count(*) FROM events WHERE message_id = {} AND data LIKE '%jane%'", id.0);
    assert_eq!(fixture.query_int(&left).await, 0);
    let kept = format!("SELECT count(*) FROM events WHERE message_id = {}", id.0);
    assert!(fixture.query_int(&kept).await > 1_000);
}
