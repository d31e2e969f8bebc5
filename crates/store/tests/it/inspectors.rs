//! Request inspectors: limits in number, size and time, which one is replaced, and what clears and removes them.

use std::time::Duration;

use postroad_model::{AccountId, ServerId};
use postroad_store::{
    Audit, AuditFilter, AuditSubject, Inspector, KeyHash, NewInspector, NewInspectorRequest, Store,
    StoreError,
};

use crate::counting::rules;
use crate::fixture::{EngineFiles, Fixture, create_server, on_both_engines, open};

on_both_engines!(
    the_newest_fifty_requests_are_kept_as_they_came,
    requests_are_kept_up_to_one_mebibyte,
    an_expired_inspector_takes_nothing_and_begins_again_when_it_is_opened,
    expired_inspectors_are_removed_some_at_a_time,
    a_further_inspector_replaces_the_oldest_of_the_account_that_has_the_most,
    concurrent_requests_get_different_numbers,
    changes_are_counted_and_announced,
    opening_and_clearing_are_recorded,
    an_inspector_is_removed_with_its_server,
    an_erasure_removes_all_requests_of_the_server,
    one_request_is_found_by_its_number,
    an_inspector_whose_token_cannot_be_read_is_replaced,
);

/// Maximum number of open inspectors, in tests that do not reach it.
const INSPECTORS_MAX: usize = 200;
const VALID_FOR: Duration = Duration::from_hours(24);

fn token(number: u8) -> KeyHash {
    KeyHash([number; 32])
}

fn new_inspector(fixture: &Fixture, server_id: ServerId, number: u8) -> NewInspector {
    NewInspector {
        server_id,
        account_id: fixture.account,
        token_hash: token(number),
        sealed_token: vec![number],
        expires_at: fixture.now().plus(VALID_FOR),
        unreadable_token: None,
    }
}

async fn open_new(fixture: &Fixture, server_id: ServerId, number: u8) {
    let new = new_inspector(fixture, server_id, number);
    assert!(fixture.store.open_inspector(new, INSPECTORS_MAX).await.expect("the store works"), "it is new");
}

fn request(body: &str) -> NewInspectorRequest {
    NewInspectorRequest {
        method: "POST".into(),
        body: body.into(),
        status: 200,
        ..NewInspectorRequest::default()
    }
}

async fn take(store: &Store, number: u8, body: &str) {
    store.take_inspector_request(token(number), request(body)).await.expect("the inspector is open");
}

async fn find(fixture: &Fixture, server_id: ServerId) -> Option<Inspector> {
    fixture.store.find_inspector(server_id).await.expect("the store works")
}

/// Bodies of the kept requests, the newest first.
async fn bodies(fixture: &Fixture, server_id: ServerId) -> Vec<String> {
    let found = find(fixture, server_id).await.expect("the inspector is open");
    found.requests.into_iter().map(|kept| kept.request.body).collect()
}

async fn the_newest_fifty_requests_are_kept_as_they_came(fixture: Fixture) {
    let store = &fixture.store;
    assert!(find(&fixture, fixture.server).await.is_none());
    open_new(&fixture, fixture.server, 1).await;
    let again = store.open_inspector(new_inspector(&fixture, fixture.server, 2), INSPECTORS_MAX).await;
    assert!(!again.expect("the store works"), "it is open already");
    let unknown = store.take_inspector_request(token(2), request("x")).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
    for number in 0..60 {
        take(store, 1, &number.to_string()).await;
    }
    let found = find(&fixture, fixture.server).await.expect("it is open");
    assert_eq!((found.sealed_token, found.requests.len()), (vec![1], 50));
    let (newest, oldest) = (&found.requests[0], &found.requests[49]);
    assert_eq!((newest.number, newest.request.body.as_str()), (60, "59"));
    assert_eq!((oldest.number, oldest.request.body.as_str()), (11, "10"));

    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let full = NewInspectorRequest {
        method: "PUT".into(),
        query: "a=1&status=503".into(),
        headers: vec![header("x-note", "\"é\""), header("x-note", "")],
        body: "{\"type\":\"message.sent\"}\n".into(),
        is_cut: true,
        status: 503,
    };
    store.take_inspector_request(token(1), full.clone()).await.expect("it is open");
    let found = find(&fixture, fixture.server).await.expect("it is open");
    assert_eq!((found.requests[0].at, &found.requests[0].request), (fixture.now(), &full));
    assert_eq!(store.find_inspector_by_token(token(1)).await.expect("it works"), Some(fixture.server));
    assert_eq!(store.find_inspector_by_token(token(2)).await.expect("it works"), None);
    assert!(find(&fixture, fixture.other_server).await.is_none());
}

async fn requests_are_kept_up_to_one_mebibyte(fixture: Fixture) {
    open_new(&fixture, fixture.server, 1).await;
    for _ in 0..5 {
        take(&fixture.store, 1, &"x".repeat(300 << 10)).await;
    }
    assert_eq!(bodies(&fixture, fixture.server).await.len(), 3);
    take(&fixture.store, 1, &"y".repeat(2 << 20)).await;
    assert_eq!(bodies(&fixture, fixture.server).await.len(), 1, "the large one alone");
    take(&fixture.store, 1, "small").await;
    assert_eq!(bodies(&fixture, fixture.server).await, ["small"]);
}

async fn an_expired_inspector_takes_nothing_and_begins_again_when_it_is_opened(fixture: Fixture) {
    let store = &fixture.store;
    open_new(&fixture, fixture.server, 1).await;
    take(store, 1, "old").await;
    fixture.clock.advance(VALID_FOR);
    let late = store.take_inspector_request(token(1), request("late")).await;
    assert!(matches!(late, Err(StoreError::NotFound)), "{late:?}");
    assert!(find(&fixture, fixture.server).await.is_none());
    assert_eq!(store.find_inspector_by_token(token(1)).await.expect("it works"), None);
    assert_eq!(store.count_inspector_changes(fixture.server).await.expect("it works"), None);

    open_new(&fixture, fixture.server, 2).await;
    assert!(bodies(&fixture, fixture.server).await.is_empty());
    take(store, 2, "new").await;
    let found = find(&fixture, fixture.server).await.expect("it is open");
    assert_eq!((found.requests.len(), found.requests[0].number), (1, 1));
    let former = store.take_inspector_request(token(1), request("x")).await;
    assert!(matches!(former, Err(StoreError::NotFound)), "the former URL: {former:?}");
}

async fn expired_inspectors_are_removed_some_at_a_time(fixture: Fixture) {
    let store = &fixture.store;
    for number in 1..=11 {
        let server = create_server(store, fixture.account, &format!("Expired {number}")).await;
        open_new(&fixture, server, number).await;
        take(store, number, "x").await;
    }
    fixture.clock.advance(VALID_FOR);
    open_new(&fixture, fixture.server, 12).await;
    take(store, 12, "kept").await;
    let mut steps = Vec::new();
    for _ in 0..3 {
        let removed = store.remove_expired_inspectors().await.expect("the store works");
        steps.push((removed.rows, removed.has_more));
    }
    assert_eq!(steps, [(10, true), (1, false), (0, false)]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM inspectors").await, 1);
    assert_eq!(fixture.query_int("SELECT count(*) FROM inspector_requests").await, 1);
    assert_eq!(bodies(&fixture, fixture.server).await, ["kept"]);
}

async fn a_further_inspector_replaces_the_oldest_of_the_account_that_has_the_most(fixture: Fixture) {
    let store = &fixture.store;
    let small = store.create_account("Small".into()).await.expect("the name is free").id;
    let of_small = create_server(store, small, "Live").await;
    let third = create_server(store, fixture.account, "Third").await;
    let open_of = async |account_id: AccountId, server_id: ServerId, number: u8| {
        let new = NewInspector { account_id, ..new_inspector(&fixture, server_id, number) };
        assert!(store.open_inspector(new, 3).await.expect("the store works"), "it is new");
        fixture.clock.advance(Duration::from_secs(1));
    };
    let all = [of_small, fixture.server, fixture.other_server, third];
    let find_open = async || {
        let mut open = Vec::new();
        for server_id in all {
            if find(&fixture, server_id).await.is_some() {
                open.push(server_id);
            }
        }
        open
    };
    open_of(small, of_small, 1).await;
    open_of(fixture.account, fixture.server, 2).await;
    take(store, 2, "x").await;
    open_of(fixture.account, fixture.other_server, 3).await;
    assert_eq!(find_open().await, [of_small, fixture.server, fixture.other_server]);
    open_of(fixture.account, third, 4).await;
    assert_eq!(find_open().await, [of_small, fixture.other_server, third], "an account replaces its own");
    assert_eq!(fixture.query_int("SELECT count(*) FROM inspector_requests").await, 0, "with its requests");
    // An expired inspector does not count.
    fixture.clock.advance(VALID_FOR.saturating_sub(Duration::from_secs(4)));
    assert_eq!(find_open().await, [fixture.other_server, third]);
    open_of(fixture.account, fixture.server, 5).await;
    assert_eq!(find_open().await, [fixture.server, fixture.other_server, third]);
}

async fn concurrent_requests_get_different_numbers(fixture: Fixture) {
    open_new(&fixture, fixture.server, 1).await;
    let other = match &fixture.engine_files {
        EngineFiles::Sqlite(_) => fixture.store.clone(),
        EngineFiles::Postgres(_) => {
            open(fixture.engine_files.database(), "another node", &fixture.clock).await.expect("it opens")
        }
    };
    let takes: Vec<_> = (0..40)
        .map(|number| {
            let store = if number % 2 == 0 { fixture.store.clone() } else { other.clone() };
            tokio::spawn(async move { store.take_inspector_request(token(1), request("x")).await })
        })
        .collect();
    for take in takes {
        take.await.expect("it ends").expect("the store works");
    }
    let found = find(&fixture, fixture.server).await.expect("it is open");
    let numbers: Vec<u64> = found.requests.iter().map(|kept| kept.number).collect();
    assert_eq!(numbers, (1..=40).rev().collect::<Vec<_>>());
}

async fn changes_are_counted_and_announced(fixture: Fixture) {
    let store = &fixture.store;
    let count = async || store.count_inspector_changes(fixture.server).await.expect("the store works");
    assert_eq!(count().await, None);
    open_new(&fixture, fixture.server, 1).await;
    let opened = count().await.expect("it is open");
    let mut notices = store.inspector_notices(fixture.server);
    take(store, 1, "x").await;
    assert_eq!(count().await, Some(opened + 1));
    assert!(notices.has_changed().expect("the store is open"));
    notices.mark_unchanged();
    store.clear_inspector(fixture.server).await.expect("the store works");
    assert_eq!(count().await, Some(opened + 2));
    assert!(notices.has_changed().expect("the store is open"));
    assert!(bodies(&fixture, fixture.server).await.is_empty());
    take(store, 1, "y").await;
    let found = find(&fixture, fixture.server).await.expect("it is open");
    assert_eq!(found.requests[0].number, 2, "numbers continue");
    store.clear_inspector(fixture.other_server).await.expect("there is nothing to clear");
}

async fn opening_and_clearing_are_recorded(fixture: Fixture) {
    let audited = |operation: &'static str| {
        fixture.store.audited(Audit {
            actor: ("user", Some(1)),
            address: None,
            operation,
            subject: AuditSubject::Inspector(fixture.server),
            creation: None,
        })
    };
    let (open, clear) = (audited("webhooks/open_inspector"), audited("webhooks/clear_inspector"));
    clear.clear_inspector(fixture.server).await.expect("there is nothing to clear");
    for number in 1..=2 {
        let new = new_inspector(&fixture, fixture.server, number);
        open.open_inspector(new, INSPECTORS_MAX).await.expect("the store works");
    }
    clear.clear_inspector(fixture.server).await.expect("the store works");
    let page = fixture.store.list_audit(fixture.account, AuditFilter::default(), None, 10).await;
    let entries = page.expect("the store works").entries;
    let operations: Vec<&str> = entries.iter().map(|entry| entry.operation.as_str()).collect();
    assert_eq!(operations, ["webhooks/clear_inspector", "webhooks/open_inspector"], "each once");
    let after = entries[1].after.as_ref().expect("it says what was done");
    assert_eq!(after["inspector"], "opened");
}

async fn an_inspector_is_removed_with_its_server(fixture: Fixture) {
    let store = &fixture.store;
    let doomed = create_server(store, fixture.account, "Doomed").await;
    for (server_id, number) in [(doomed, 1), (fixture.server, 2)] {
        open_new(&fixture, server_id, number).await;
        take(store, number, "x").await;
    }
    store.set_server_deleted(doomed, Some(fixture.in_secs(60))).await.expect("it works");
    fixture.clock.advance(Duration::from_mins(2));
    while store.purge_deleted(fixture.now()).await.expect("the store works") {}
    assert!(store.find_server(doomed).await.expect("it works").is_none());
    let of_doomed = format!("SELECT count(*) FROM inspector_requests WHERE server_id = {doomed}");
    assert_eq!(fixture.query_int(&of_doomed).await, 0);
    assert_eq!(bodies(&fixture, fixture.server).await, ["x"]);
    let gone = store.open_inspector(new_inspector(&fixture, doomed, 3), INSPECTORS_MAX).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
}

async fn an_erasure_removes_all_requests_of_the_server(fixture: Fixture) {
    let store = &fixture.store;
    let body = format!("{{\"rcpt_to\":\"jane@example.com\",\"subject\":\"{}\"}}", "secret text ".repeat(500));
    for (server_id, number) in [(fixture.server, 1), (fixture.other_server, 2)] {
        open_new(&fixture, server_id, number).await;
        take(store, number, if server_id == fixture.server { &body } else { "of another server" }).await;
    }
    let before = store.count_inspector_changes(fixture.server).await.expect("it works");
    store.erase_address(fixture.server, "jane@example.com".into(), &rules()).await.expect("it works");
    assert!(bodies(&fixture, fixture.server).await.is_empty());
    assert_eq!(bodies(&fixture, fixture.other_server).await, ["of another server"]);
    assert_ne!(store.count_inspector_changes(fixture.server).await.expect("it works"), before);
    if fixture.is_sqlite() {
        store.truncate_log().await.expect("nobody reads");
        let file = std::fs::read(fixture.engine_files.sqlite_path()).expect("the file is there");
        assert!(memchr::memmem::find(&file, b"secret text").is_none(), "it is overwritten");
    }
}

async fn one_request_is_found_by_its_number(fixture: Fixture) {
    let find = async |server_id, number| {
        let found = fixture.store.find_inspector_request(server_id, number).await.expect("the store works");
        found.map(|found| (found.number, found.request.body))
    };
    assert_eq!(find(fixture.server, 1).await, None);
    open_new(&fixture, fixture.server, 1).await;
    take(&fixture.store, 1, "first").await;
    take(&fixture.store, 1, "second").await;
    assert_eq!(find(fixture.server, 2).await, Some((2, "second".to_owned())));
    assert_eq!(find(fixture.server, 1).await, Some((1, "first".to_owned())));
    assert_eq!((find(fixture.server, 3).await, find(fixture.server, u64::MAX).await), (None, None));
    assert_eq!(find(fixture.other_server, 1).await, None);
    fixture.clock.advance(VALID_FOR);
    assert_eq!(find(fixture.server, 1).await, None, "it has expired");
}

async fn an_inspector_whose_token_cannot_be_read_is_replaced(fixture: Fixture) {
    let store = &fixture.store;
    open_new(&fixture, fixture.server, 1).await;
    take(store, 1, "old").await;
    let before = store.count_inspector_changes(fixture.server).await.expect("it works").expect("it is open");
    let other =
        NewInspector { unreadable_token: Some(vec![9]), ..new_inspector(&fixture, fixture.server, 2) };
    assert!(
        !store.open_inspector(other, INSPECTORS_MAX).await.expect("it works"),
        "somebody replaced it meanwhile"
    );
    let new = NewInspector { unreadable_token: Some(vec![1]), ..new_inspector(&fixture, fixture.server, 2) };
    assert!(store.open_inspector(new, INSPECTORS_MAX).await.expect("the store works"));
    let found = find(&fixture, fixture.server).await.expect("it is open");
    assert_eq!((found.sealed_token, found.requests.len()), (vec![2], 0));
    let after = store.count_inspector_changes(fixture.server).await.expect("it works");
    assert!(after > Some(before), "open pages notice it");
    let former = store.take_inspector_request(token(1), request("x")).await;
    assert!(matches!(former, Err(StoreError::NotFound)), "the former URL: {former:?}");
}
