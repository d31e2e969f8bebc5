//! An erased message leaves neither its text nor anything that identifies its recipient.

use std::fs;
use std::path::Path;

use postroad_model::{MessageId, UserRole};
use postroad_store::{EraseResult, IndexProgress, InitialState, NewSavedSearch, NewUser, WaitingFor};
use postroad_testkit::eventually;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::counting::rules;
use crate::fixture::{Fixture, on_both_engines};
use crate::returns;

on_both_engines!(
    the_search_index_forgets_an_erased_message,
    a_search_block_that_is_being_written_is_written_again_without_an_erased_person,
    a_message_with_many_events_is_erased_in_steps,
    events_and_returned_mail_stored_during_an_erasure_are_erased_too,
    a_message_is_not_erased_while_another_copy_of_its_send_waits,
    saved_searches_for_an_erased_address_are_removed,
    concurrent_counting_cannot_bring_back_an_erased_tag,
);

/// Random bytes, which compression leaves as they are.
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
    assert_eq!(store.erase_message(fixture.server, id).await.expect("the store works"), EraseResult::Done);
}

/// A send with more recipients than are read at once, between messages of other sends.
async fn a_message_is_not_erased_while_another_copy_of_its_send_waits(fixture: Fixture) {
    for _ in 0..3 {
        accept(&fixture, "before@example.com", b"x").await;
    }
    let addresses: Vec<String> = (0..620).map(|number| format!("u{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let ids = fixture.accept(fixture.send(fixture.server, &addresses, InitialState::Pending, b"x")).await;
    for _ in 0..3 {
        accept(&fixture, "after@example.com", b"x").await;
    }
    for (waiting, other) in [(ids[0], ids[619]), (ids[619], ids[0])] {
        let text = format!(
            "UPDATE messages SET status = 'Sent'; UPDATE messages SET status = 'Pending' WHERE id = {}",
            waiting.0
        );
        fixture.execute(&text).await;
        let erased = fixture.store.erase_message(fixture.server, other).await.expect("the store works");
        assert_eq!(erased, EraseResult::StillNeeded);
    }
    fixture.execute("UPDATE messages SET status = 'Sent'").await;
    let erased = fixture.store.erase_message(fixture.server, ids[300]).await.expect("the store works");
    assert_eq!(erased, EraseResult::Done);
}

/// Whether a file below the folder contains one of many 32-byte samples of the text.
fn is_in_files(folder: &Path, text: &[u8]) -> bool {
    let needles: Vec<&[u8]> = text.chunks_exact(32).step_by(8).collect();
    fs::read_dir(folder).expect("the folder is there").any(|entry| {
        let path = entry.expect("the folder is there").path();
        if path.is_dir() {
            return is_in_files(&path, text);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        needles.iter().any(|needle| memchr::memmem::find(&bytes, needle).is_some())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_has_a_part_of_an_erased_text() {
    let fixture = Fixture::sqlite().await;
    let mut messages = Vec::new();
    // Sizes that are stored within a page, in overflow pages, and in a file.
    for (seed, bytes) in [(1, 700), (2, 3_000), (3, 40_000), (4, 90_000)] {
        let text = text(seed, bytes);
        messages.push((accept(&fixture, "ann@example.com", &text).await, text));
        accept(&fixture, "bob@example.com", b"Somebody else's text").await;
    }
    let folder = fixture.engine_files.sqlite_path().parent().expect("a folder").to_owned();
    for (id, text) in &messages {
        assert!(is_in_files(&folder, text), "it is stored as it is; otherwise this test proves nothing");
        erase(&fixture, *id).await;
    }
    fixture.store.truncate_log().await.expect("nobody reads");
    for (_, text) in &messages {
        assert!(!is_in_files(&folder, text), "{} bytes", text.len());
    }
}

async fn the_search_index_forgets_an_erased_message(fixture: Fixture) {
    let erased = accept(&fixture, "jane.doe@customer.example", b"x").await;
    accept(&fixture, "bob@example.com", b"x").await;
    fixture.clock.advance(std::time::Duration::from_mins(1));
    let indexed = fixture.store.index_next_block(fixture.server, 2).await.expect("the store works");
    assert_eq!(indexed, IndexProgress::Added);
    let tokens = "SELECT count(*) FROM search_postings";
    let before = fixture.query_int(tokens).await;
    erase(&fixture, erased).await;
    let after = fixture.query_int(tokens).await;
    // Trigrams of the address that the other address does not have. Both messages have the same subject.
    let only_hers = "jane.doe@customer.".len() as i64 - 2;
    assert!(before - after >= only_hers, "{before} tokens, then {after}");
    // A posting takes one byte per message, so longer postings still have both messages. The subject's tokens must
    // not be among them.
    let shared = "SELECT count(*) FROM search_postings WHERE length(positions) > 1";
    assert!(fixture.query_int(shared).await < 30, "the subject's tokens still point to the erased message");
}

async fn a_search_block_that_is_being_written_is_written_again_without_an_erased_person(fixture: Fixture) {
    let erased = accept(&fixture, "jane.doe@customer.example", b"x").await;
    let last = accept(&fixture, "bob@example.com", b"x").await;
    fixture.clock.advance(std::time::Duration::from_mins(1));
    // A writer that has read both messages, and written a posting that only the first one has.
    let until = fixture.in_secs(60).as_micros();
    let blob = if fixture.is_sqlite() { "x'00'" } else { "'\\x00'" };
    let server = fixture.server.0;
    for text in [
        format!(
            "INSERT INTO search_blocks (server_id, first_id, last_id, state, claimed_until, ids) VALUES ({server}, 0, {}, 0, {until}, {blob})",
            last.0
        ),
        format!(
            "INSERT INTO search_postings (server_id, block, token, positions) VALUES ({server}, 0, 7, {blob})"
        ),
    ] {
        fixture.execute(&text).await;
    }
    erase(&fixture, erased).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks WHERE claimed_until > 0").await, 0);
    let indexed = fixture.store.index_next_block(fixture.server, 2).await.expect("the store works");
    assert_eq!(indexed, IndexProgress::Added);
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_postings WHERE token = 7").await, 0);
    assert_eq!(fixture.query_int("SELECT count(*) FROM search_blocks WHERE state = 1").await, 1);
}

async fn saved_searches_for_an_erased_address_are_removed(fixture: Fixture) {
    let store = &fixture.store;
    let person = NewUser {
        account_id: fixture.account,
        email: "ann@example.com".into(),
        name: String::new(),
        role: UserRole::Member,
        operator: false,
        password_hash: None,
    };
    let user_id = store.create_user(person).await.expect("it works").id;
    for (name, query) in [
        ("hers", "q=to%3AJane%40B%C3%BCcher.example"),
        ("in DNS form", "to=jane%40xn--bcher-kva.example&tab=held"),
        ("jane@bücher.example", "q=tag%3Ax"),
        ("another", "q=to%3Abob%40example.com"),
    ] {
        let new =
            NewSavedSearch { user_id, server_id: fixture.server, name: name.into(), query: query.into() };
        store.save_search(new, 10).await.expect("it works");
    }
    store.erase_address(fixture.server, "jane@bücher.example".into(), &rules()).await.expect("it works");
    let kept = store.list_saved_searches(user_id, fixture.server, 10).await.expect("it works");
    assert_eq!(kept.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), ["another"]);
}

/// A concurrent `count_events` may have read the tag before it was erased. It counts only events that are not counted
/// yet, so the erasure counts all of them first; then the concurrent call writes nothing.
async fn concurrent_counting_cannot_bring_back_an_erased_tag(fixture: Fixture) {
    let store = &fixture.store;
    let mut send = fixture.send(fixture.server, &["jane@example.com"], InitialState::Pending, b"x");
    send.info.tag = Some("for jane@example.com".into());
    let id = fixture.accept(send).await[0];
    eventually(async || match store.list_uncounted_servers().await.expect("the store works").as_slice() {
        [] => Err("the event cannot be counted yet"),
        _ => Ok(()),
    })
    .await;
    erase(&fixture, id).await;
    store.erase_address(fixture.server, "jane@example.com".into(), &rules()).await.expect("it works");
    assert_eq!(fixture.query_int("SELECT count(*) FROM counter_marks WHERE event_id > 0").await, 1);
    let tags = "SELECT count(*) FROM counter_dimensions WHERE tag LIKE '%jane%'";
    assert_eq!(fixture.query_int(tags).await, 0);
}

async fn a_message_with_many_events_is_erased_in_steps(fixture: Fixture) {
    let id = accept(&fixture, "jane.doe@customer.example", b"x").await;
    // Cancel first: the events below are inserted without raising the message's `last_seq`, so a later cancellation
    // would get a lower `seq` than theirs.
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

/// While the events are erased, a trigger adds an event and returned mail, as an open and a bounce at that moment
/// would.
async fn events_and_returned_mail_stored_during_an_erasure_are_erased_too(fixture: Fixture) {
    let id = accept(&fixture, "jane.doe@customer.example", b"x").await;
    let cancelled = fixture.store.cancel_if(fixture.server, id, WaitingFor::Anything).await;
    assert!(cancelled.is_ok(), "{cancelled:?}");
    let mail = returns::mail_with_bytes(&fixture, id, "1@customer.example", None, b"Jane is on holiday.\r\n");
    let returned = mail.id;
    fixture.store.take_return(mail).await.expect("the store works");
    let hide = format!("UPDATE messages SET bounce_for_id = 0 WHERE id = {}", returned.0);
    fixture.execute(&hide).await;
    let news = format!(
        "INSERT INTO events (server_id, id, seq, message_id, kind, at, test, data)
         SELECT e.server_id, e.id - 1, 1000, e.message_id, 'message.opened', e.at, e.test, '{{\"user_agent\":\"jane\"}}'
         FROM events e WHERE e.message_id = {id} AND e.seq = 1
             AND NOT EXISTS (SELECT 1 FROM events o WHERE o.message_id = {id} AND o.seq = 1000);
         UPDATE messages SET bounce_for_id = {id} WHERE id = {returned};",
        id = id.0,
        returned = returned.0
    );
    let condition = format!("WHEN (NEW.message_id = {} AND NEW.seq = 1)", id.0);
    let trigger = if fixture.is_sqlite() {
        format!("CREATE TRIGGER news AFTER UPDATE ON events {condition} BEGIN {news} END")
    } else {
        format!(
            "CREATE FUNCTION news() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {news} RETURN NULL; END $$;
             CREATE TRIGGER news AFTER UPDATE ON events FOR EACH ROW {condition} EXECUTE FUNCTION news()"
        )
    };
    fixture.execute(&trigger).await;
    let erased = fixture.store.erase_message(fixture.server, id).await.expect("the store works");
    assert_eq!(erased, EraseResult::Done);
    assert_eq!(fixture.query_int("SELECT count(*) FROM events WHERE seq = 1000").await, 1);
    assert_eq!(fixture.query_int("SELECT count(*) FROM events WHERE data LIKE '%jane%'").await, 0);
    let addresses = "SELECT count(*) FROM messages WHERE rcpt_to <> 'erased@erased.invalid'";
    assert_eq!(fixture.query_int(addresses).await, 0);
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 0);
}
