//! Idempotency keys: sends with the same key are stored once.

use std::time::Duration;

use postroad_store::{Accepted, StoredAnswer};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    repeated_key_gives_the_first_answer_and_writes_nothing,
    another_fingerprint_gets_the_first_answer,
    expired_key_is_free_again,
    concurrent_sends_with_one_key_make_one_send,
    same_key_on_two_servers_is_two_keys,
    old_keys_are_purged_and_young_ones_kept,
    key_survives_a_restart,
    failed_send_does_not_use_up_its_key,
);

fn repeated(fingerprint: u8, answer: &str) -> Accepted {
    Accepted::Repeated(StoredAnswer { fingerprint: [fingerprint; 32], answer: answer.to_owned() })
}

async fn repeated_key_gives_the_first_answer_and_writes_nothing(fixture: Fixture) {
    fixture.accept(fixture.send_with_key("k", 1, "first")).await;
    let before = fixture.row_counts().await;
    let again = fixture.store.accept(fixture.send_with_key("k", 1, "second")).await.expect("the store works");
    assert_eq!(again, repeated(1, "first"));
    // A repetition with the very same answer makes no second send either.
    let again = fixture.store.accept(fixture.send_with_key("k", 1, "first")).await.expect("the store works");
    assert_eq!(again, repeated(1, "first"));
    assert_eq!(fixture.row_counts().await, before);
    let found =
        fixture.store.find_idempotent_answer(fixture.server, "k".into()).await.expect("the store works");
    assert_eq!(found.map(Accepted::Repeated), Some(repeated(1, "first")));
    let unknown =
        fixture.store.find_idempotent_answer(fixture.server, "K".into()).await.expect("the store works");
    assert_eq!(unknown, None);
}

async fn another_fingerprint_gets_the_first_answer(fixture: Fixture) {
    fixture.accept(fixture.send_with_key("k", 1, "first")).await;
    let other = fixture.store.accept(fixture.send_with_key("k", 2, "other")).await.expect("the store works");
    assert_eq!(other, repeated(1, "first"));
    assert_eq!(fixture.row_counts().await["sends"], 1);
}

async fn expired_key_is_free_again(fixture: Fixture) {
    fixture.accept(fixture.send_with_key("k", 1, "first")).await;
    fixture.clock.advance(Duration::from_hours(24) - Duration::from_micros(1));
    let still = fixture.store.accept(fixture.send_with_key("k", 2, "second")).await.expect("the store works");
    assert_eq!(still, repeated(1, "first"));
    fixture.clock.advance(Duration::from_micros(1));
    let found =
        fixture.store.find_idempotent_answer(fixture.server, "k".into()).await.expect("the store works");
    assert_eq!(found, None);
    fixture.accept(fixture.send_with_key("k", 2, "second")).await;
    let third = fixture.store.accept(fixture.send_with_key("k", 3, "third")).await.expect("the store works");
    assert_eq!(third, repeated(2, "second"));
}

async fn concurrent_sends_with_one_key_make_one_send(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let send = fixture.send_with_key("k", n as u8, &format!("answer {n}"));
        let store = fixture.store.clone();
        tasks.spawn(async move { (n, store.accept(send).await.expect("the store works")) });
    }
    let answers = tasks.join_all().await;
    let stored: Vec<_> =
        answers.iter().filter(|(_, answer)| *answer == Accepted::Stored(Vec::new())).collect();
    assert_eq!(stored.len(), 1);
    let first = stored[0].0;
    let expected = repeated(first as u8, &format!("answer {first}"));
    assert!(answers.iter().all(|(n, answer)| *n == first || *answer == expected));
    let counts = fixture.row_counts().await;
    assert_eq!((counts["sends"], counts["messages"], counts["queue"]), (1, 1, 1));
    assert_eq!((counts["bodies"], counts["events"], counts["idempotency_keys"]), (1, 1, 1));
}

async fn same_key_on_two_servers_is_two_keys(fixture: Fixture) {
    fixture.accept(fixture.send_with_key("k", 1, "first")).await;
    let mut send = fixture.send_with_key("k", 1, "other server");
    send.info.server_id = fixture.other_server;
    fixture.accept(send).await;
    for (server, answer) in [(fixture.server, "first"), (fixture.other_server, "other server")] {
        let found = fixture.store.find_idempotent_answer(server, "k".into()).await.expect("the store works");
        assert_eq!(found.map(|found| found.answer).as_deref(), Some(answer));
    }
}

async fn old_keys_are_purged_and_young_ones_kept(fixture: Fixture) {
    for n in 0..5 {
        fixture.accept(fixture.send_with_key(&format!("old {n}"), 1, "a")).await;
    }
    fixture.clock.advance(Duration::from_hours(1));
    fixture.accept(fixture.send_with_key("young", 1, "b")).await;
    assert_eq!(fixture.store.purge_idempotency_keys(100).await.expect("the store works"), 0);
    fixture.clock.advance(Duration::from_hours(23));
    assert_eq!(fixture.store.purge_idempotency_keys(3).await.expect("the store works"), 3);
    assert_eq!(fixture.store.purge_idempotency_keys(3).await.expect("the store works"), 2);
    assert_eq!(fixture.store.purge_idempotency_keys(3).await.expect("the store works"), 0);
    let young = fixture.store.accept(fixture.send_with_key("young", 1, "c")).await.expect("the store works");
    assert_eq!(young, repeated(1, "b"));
}

async fn key_survives_a_restart(fixture: Fixture) {
    fixture.accept(fixture.send_with_key("schlüssel 鍵 '\"", 1, "first")).await;
    let fixture = fixture.reopen().await;
    let again = fixture
        .store
        .accept(fixture.send_with_key("schlüssel 鍵 '\"", 1, "second"))
        .await
        .expect("the store works");
    assert_eq!(again, repeated(1, "first"));
}

/// A message id that exists already is a bug of the caller. It must neither use up the key nor fail other sends of the
/// batch.
async fn failed_send_does_not_use_up_its_key(fixture: Fixture) {
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let before = fixture.row_counts().await;
    let mut broken = fixture.send_with_key("k", 1, "broken");
    broken.recipients[0].id = id;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (store, send) = (fixture.store.clone(), fixture.send_with_key(&format!("good {n}"), 1, "a"));
        tasks.spawn(async move { store.accept(send).await });
    }
    assert!(fixture.store.accept(broken).await.is_err());
    for other in tasks.join_all().await {
        assert_eq!(other.expect("it is accepted"), Accepted::Stored(Vec::new()));
    }
    assert_eq!(fixture.row_counts().await["sends"], before["sends"] + 20);
    fixture.accept(fixture.send_with_key("k", 1, "whole")).await;
}
