//! Limits of an account's messages, for all its servers together: messages beyond them are held, and events warn once
//! at 90 % and once at 100 %. Also the ceiling on the number of an account's servers.

use std::time::Duration;

use postroad_model::{AccountId, Change, EventKind, LimitPeriod, LimitedObject, MessageId, ServerId, Status};
use postroad_store::{
    Accepted, AccountCeilingsChange, AccountLimits, InitialState, LimitOwner, NewSend, NewServer,
    RetryResult, SetBy, StoreError,
};
use serde_json::{Value, json};

use crate::fixture::{Fixture, create_server, on_both_engines, simulator_domain};

on_both_engines!(
    messages_beyond_a_limit_of_the_account_are_held_and_do_not_count,
    servers_of_an_account_share_its_limits,
    the_next_period_starts_from_zero,
    a_servers_own_limit_holds_messages_before_they_count_for_the_account,
    scheduled_messages_count_against_the_account_when_they_become_due,
    a_held_message_is_released_only_within_the_limit,
    concurrent_sends_keep_the_limit_of_the_account,
    every_server_of_the_account_is_notified_once_of_each_threshold,
    an_account_has_no_more_objects_than_its_ceiling,
);

/// Limits of ten messages an hour, and `month` messages a month.
fn limits(account_id: AccountId, month: u32) -> AccountLimits {
    AccountLimits { account_id, limits: [Some(10), None, Some(month)] }
}

fn limited_send(fixture: &Fixture, server: ServerId, recipients: usize, limits: AccountLimits) -> NewSend {
    let addresses: Vec<String> = (0..recipients).map(|n| format!("r{n}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let send = fixture.send(server, &addresses, InitialState::Pending, b"x");
    NewSend { account_limits: Some(limits), ..send }
}

async fn count_held(fixture: &Fixture, server: ServerId, ids: &[MessageId]) -> usize {
    let mut held = 0;
    for id in ids {
        let message = fixture.store.find_message(server, *id).await.expect("the store works");
        held += usize::from(message.expect("it is there").status == Status::Held);
    }
    held
}

async fn period_counts(fixture: &Fixture, account_id: AccountId) -> [Option<i64>; 3] {
    fixture.store.account_period_counts(account_id).await.expect("the store works")
}

async fn set_ceilings(fixture: &Fixture, account_id: AccountId, ceilings: AccountCeilingsChange) {
    fixture
        .store
        .update_account(SetBy::Operator, account_id, None, None, ceilings)
        .await
        .expect("the store works");
}

async fn messages_beyond_a_limit_of_the_account_are_held_and_do_not_count(fixture: Fixture) {
    let account = fixture.account;
    let first = fixture.accept(limited_send(&fixture, fixture.server, 8, limits(account, 100))).await;
    assert_eq!(count_held(&fixture, fixture.server, &first).await, 0);
    let second = fixture.accept(limited_send(&fixture, fixture.server, 5, limits(account, 100))).await;
    assert_eq!(count_held(&fixture, fixture.server, &second).await, 3);
    let deliveries = fixture.deliveries(second[4]).await;
    assert_eq!(deliveries[0].record.details, "The account's limit of 10 messages an hour is reached");
    let event = &fixture.events(second[4]).await[1];
    assert_eq!(serde_json::from_str::<Value>(&event.data).expect("JSON")["reason"], "account_limit");
    assert_eq!(
        period_counts(&fixture, account).await,
        [Some(10), None, Some(10)],
        "held messages do not count"
    );
    let full = limited_send(&fixture, fixture.server, 1, limits(account, 100));
    let Accepted::Stored(uses) = fixture.store.accept(full).await.expect("the store works") else {
        panic!("it is new")
    };
    let uses: Vec<_> = uses.iter().map(|used| (used.owner, used.period, used.limit, used.used)).collect();
    let of = |period, limit| (LimitOwner::Account, period, limit, 10);
    assert_eq!(uses, [of(LimitPeriod::Hour, 10), of(LimitPeriod::Month, 100)]);
}

async fn servers_of_an_account_share_its_limits(fixture: Fixture) {
    let account = fixture.account;
    let sister = create_server(&fixture.store, account, "sister").await;
    fixture.accept(limited_send(&fixture, fixture.server, 7, limits(account, 9))).await;
    let ids = fixture.accept(limited_send(&fixture, sister, 7, limits(account, 9))).await;
    assert_eq!(count_held(&fixture, sister, &ids).await, 5);
    let stranger = fixture.store.create_account("stranger".into()).await.expect("the store works").id;
    let other = create_server(&fixture.store, stranger, "other").await;
    let ids = fixture.accept(limited_send(&fixture, other, 7, limits(stranger, 9))).await;
    assert_eq!(count_held(&fixture, other, &ids).await, 0, "another account has its own limits");
}

async fn the_next_period_starts_from_zero(fixture: Fixture) {
    let account = fixture.account;
    for hour in 0..3 {
        let ids = fixture.accept(limited_send(&fixture, fixture.server, 11, limits(account, 100))).await;
        assert_eq!(count_held(&fixture, fixture.server, &ids).await, 1, "in hour {hour}");
        fixture.clock.advance(Duration::from_hours(2));
    }
    assert_eq!(period_counts(&fixture, account).await, [None, None, Some(30)]);
    let rows = "SELECT count(*) FROM account_periods";
    assert_eq!(fixture.query_int(rows).await, 2, "old hours are forgotten");
}

async fn a_servers_own_limit_holds_messages_before_they_count_for_the_account(fixture: Fixture) {
    let account = fixture.account;
    let send = limited_send(&fixture, fixture.server, 6, limits(account, 3));
    let ids = fixture.accept(NewSend { hourly_limit: Some(4), ..send }).await;
    let mut details = Vec::new();
    for id in &ids[3..] {
        details.push(fixture.deliveries(*id).await[0].record.details.clone());
    }
    let (server, month) =
        ("The hourly limit of 4 messages is reached", "The account's limit of 3 messages a month is reached");
    assert_eq!(details, [month, server, server]);
    assert_eq!(period_counts(&fixture, account).await, [Some(3), None, Some(3)]);
}

async fn scheduled_messages_count_against_the_account_when_they_become_due(fixture: Fixture) {
    let account = fixture.account;
    set_ceilings(
        &fixture,
        account,
        AccountCeilingsChange { daily_limit: Change::Set(2), ..AccountCeilingsChange::default() },
    )
    .await;
    let due = fixture.in_secs(60);
    let addresses = ["a@example.com", "b@example.com", "c@example.com"];
    let later = fixture.send(fixture.server, &addresses, InitialState::Scheduled(due), b"x");
    let later = fixture.accept(later).await;
    assert_eq!(period_counts(&fixture, account).await, [None; 3], "nothing is due yet");
    fixture.clock.advance(Duration::from_mins(1));
    assert_eq!(fixture.claim_due().await.len(), 2);
    assert_eq!(count_held(&fixture, fixture.server, &later).await, 1);
    assert_eq!(period_counts(&fixture, account).await, [None, Some(2), None]);
}

async fn a_held_message_is_released_only_within_the_limit(fixture: Fixture) {
    let account = fixture.account;
    set_ceilings(
        &fixture,
        account,
        AccountCeilingsChange { daily_limit: Change::Set(1), ..AccountCeilingsChange::default() },
    )
    .await;
    let day = AccountLimits { account_id: account, limits: [None, Some(1), None] };
    let ids = fixture.accept(limited_send(&fixture, fixture.server, 2, day)).await;
    let release = async || {
        fixture.store.retry(fixture.server, ids[1], simulator_domain()).await.expect("the store works")
    };
    let full = RetryResult::OverAccountLimit { limit: 1, period: LimitPeriod::Day };
    assert_eq!((release().await, release().await), (full, full));
    assert_eq!(period_counts(&fixture, account).await, [None, Some(1), None]);
    fixture.clock.advance(Duration::from_hours(24));
    assert_eq!(release().await, RetryResult::Released);
    assert_eq!(
        period_counts(&fixture, account).await,
        [None, Some(1), None],
        "it counts on the day it is released"
    );
    assert_eq!(release().await, RetryResult::Now, "it is queued, and counts once");
    assert_eq!(period_counts(&fixture, account).await, [None, Some(1), None]);
}

async fn concurrent_sends_keep_the_limit_of_the_account(fixture: Fixture) {
    let account = fixture.account;
    let sister = create_server(&fixture.store, account, "sister").await;
    let all = AccountLimits { account_id: account, limits: [None, Some(37), Some(1_000)] };
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..60 {
        let server = if n % 3 == 0 { sister } else { fixture.server };
        let mut send = limited_send(&fixture, server, 2, all);
        send.hourly_limit = (n % 5 == 0).then_some(1_000);
        if n % 2 == 0 {
            // PostgreSQL accepts sends with an idempotency key in another way.
            send.idempotency = fixture.send_with_key(&format!("k{n}"), 1, "a").idempotency;
        }
        let store = fixture.store.clone();
        tasks.spawn(async move { store.accept(send).await.expect("the store works") });
    }
    tasks.join_all().await;
    assert_eq!(fixture.claim_due().await.len(), 37);
    assert_eq!(fixture.query_int("SELECT count(*) FROM messages WHERE status = 'Held'").await, 120 - 37);
    assert_eq!(period_counts(&fixture, account).await, [None, Some(37), Some(37)]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM account_notices").await, 2, "each threshold once");
}

async fn every_server_of_the_account_is_notified_once_of_each_threshold(fixture: Fixture) {
    let account = fixture.account;
    let mut servers = vec![fixture.server];
    for n in 0..55 {
        servers.push(create_server(&fixture.store, account, &format!("server{n}")).await);
    }
    for recipients in [8, 1, 1, 1] {
        let month = AccountLimits { account_id: account, limits: [None, None, Some(10)] };
        fixture.accept(limited_send(&fixture, fixture.server, recipients, month)).await;
    }
    let mut steps = 0;
    while fixture.store.write_account_notices().await.expect("the store works") {
        steps += 1;
    }
    assert_eq!(steps, 4, "two notices, fifty servers at a time");
    for server in servers {
        let events = fixture.store.list_events(server, MessageId(0)).await.expect("the store works");
        let found: Vec<(EventKind, Value)> = events
            .iter()
            .map(|event| (event.kind, serde_json::from_str(&event.data).expect("JSON")))
            .collect();
        let expected = [(EventKind::SendLimitApproaching, 9), (EventKind::SendLimitExceeded, 10)];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((kind, data), (expected, volume)) in found.iter().zip(expected) {
            assert_eq!(*kind, expected);
            assert_eq!(
                (&data["server"]["id"], &data["account"]["id"]),
                (&json!(server.0), &json!(account.0))
            );
            assert_eq!((&data["limit"], &data["volume"]), (&json!(10), &json!(volume)));
            assert_eq!((&data["period"], &data["since"]), (&json!("month"), &json!("2026-11-01T00:00:00Z")));
        }
    }
}

async fn an_account_has_no_more_objects_than_its_ceiling(fixture: Fixture) {
    let account = fixture.store.create_account("new".into()).await.expect("the store works").id;
    set_ceilings(
        &fixture,
        account,
        AccountCeilingsChange { servers: Change::Set(3), ..AccountCeilingsChange::default() },
    )
    .await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = fixture.store.clone();
        let new = NewServer {
            account_id: account,
            name: format!("server{n}"),
            mode: postroad_model::ServerMode::Live,
            pool_id: None,
        };
        tasks.spawn(async move { store.create_server(new).await });
    }
    let made = tasks.join_all().await;
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 3);
    for refused in made.iter().filter_map(|made| made.as_ref().err()) {
        let expected = StoreError::CeilingReached { object: LimitedObject::Servers, ceiling: 3 };
        assert_eq!(refused.to_string(), expected.to_string());
    }
    let count = fixture.store.count_objects(account, LimitedObject::Servers).await;
    assert_eq!(count.expect("the store works"), 3);
}
