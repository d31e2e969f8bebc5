//! Events about holds, limits, warm-ups and domains, and atomic changes of a server's settings.

use std::time::Duration;

use postroad_model::{
    Change, DomainName, EventKind, EventSet, HoldReason, MessageId, SendRate, ServerId, ServerMode,
    SuppressionReason, WebhookFormat,
};
use postroad_store::{
    Ceiling, InitialState, NewEvent, NewSend, NewSource, NewSuppression, NewWebhook, Server, ServerChange,
    ServerUpdateResult, SetBy, StoreError, WarmupPause, WebhookSecret,
};
use serde_json::{Value, json};

use crate::by_operator;
use crate::fixture::{Fixture, on_both_engines, simulator_domain};

on_both_engines!(
    holds_are_reported_with_their_reason,
    releases_and_expired_holds_are_reported_with_the_new_status,
    hourly_limit_is_reported_once_at_nine_tenths_and_once_when_used_up,
    hourly_limit_is_reported_once_by_concurrent_sends,
    concurrent_events_of_a_server_have_distinct_numbers,
    paused_warm_up_is_reported_once_to_the_servers_that_use_the_address,
    domain_is_reported_when_it_becomes_verified,
    settings_of_a_server_are_changed_all_or_none,
    changes_by_a_server_cannot_exceed_its_ceilings,
);

fn parse_event(kind: EventKind, data: &str) -> (EventKind, Value) {
    (kind, serde_json::from_str(data).expect("it is JSON"))
}

/// The last event of a message.
async fn last_event(fixture: &Fixture, id: MessageId) -> (EventKind, Value) {
    let events = fixture.events(id).await;
    let last = events.last().expect("it has events");
    parse_event(last.kind, &last.data)
}

/// The events of a server in order; their `seq` has no gap.
async fn server_events(fixture: &Fixture, server: ServerId) -> Vec<(EventKind, Value)> {
    let events = fixture.store.list_events(server, MessageId(0)).await.expect("the store works");
    let seqs: Vec<i64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as i64).collect::<Vec<_>>());
    events.iter().map(|event| parse_event(event.kind, &event.data)).collect()
}

fn limited_send(fixture: &Fixture, recipients: usize, limit: u32) -> NewSend {
    let addresses: Vec<String> = (0..recipients).map(|n| format!("r{n}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    NewSend { hourly_limit: Some(limit), ..fixture.send_to(&addresses) }
}

async fn holds_are_reported_with_their_reason(fixture: Fixture) {
    let new = NewSuppression {
        address: "ann@example.com".into(),
        reason: SuppressionReason::Complaint,
        details: String::new(),
        origin_message_id: None,
        expires_at: None,
    };
    fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let expected = json!({
        "status": "Held",
        "details": "The address is suppressed: complaint since 2026-11-15T00:00:00Z",
        "reason": "suppressed",
        "suppression": { "reason": "complaint", "since": "2026-11-15T00:00:00Z" },
    });
    assert_eq!(last_event(&fixture, id).await, (EventKind::Held, expected));

    let id = fixture.accept(limited_send(&fixture, 1, 0)).await[0];
    let details = "The hourly limit of 0 messages is reached";
    let expected = json!({ "status": "Held", "details": details, "reason": "hourly_limit" });
    assert_eq!(last_event(&fixture, id).await, (EventKind::Held, expected));

    for (reason, name) in [(HoldReason::Development, "development"), (HoldReason::Credential, "credential")] {
        let state = InitialState::Held { reason, details: "why".into(), expiry: fixture.in_secs(60) };
        let id = fixture.accept(fixture.send(fixture.server, &["bob@example.com"], state, b"x")).await[0];
        let expected = json!({ "status": "Held", "details": "why", "reason": name });
        assert_eq!(last_event(&fixture, id).await, (EventKind::Held, expected));
    }
    let state = InitialState::TestSent { details: "a test".into() };
    let id = fixture.accept(fixture.send(fixture.server, &["bob@example.com"], state, b"x")).await[0];
    let expected = json!({ "status": "Sent", "details": "a test" });
    assert_eq!(last_event(&fixture, id).await, (EventKind::Delivered, expected));
    let events = fixture.events(id).await;
    assert_eq!((events[0].kind, events[0].data.as_str()), (EventKind::Accepted, "{}"));
}

async fn releases_and_expired_holds_are_reported_with_the_new_status(fixture: Fixture) {
    let held = async || {
        let expiry = fixture.in_secs(60);
        let state = InitialState::Held { reason: HoldReason::Development, details: "held".into(), expiry };
        fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"x")).await[0]
    };
    let id = held().await;
    fixture.store.retry(fixture.server, id, simulator_domain()).await.expect("the store works");
    assert_eq!(last_event(&fixture, id).await, (EventKind::Released, json!({ "status": "Pending" })));
    fixture.store.cancel(fixture.server, id).await.expect("the store works");
    let expected =
        json!({ "status": "Cancelled", "details": "The message was cancelled before it was sent" });
    assert_eq!(last_event(&fixture, id).await, (EventKind::Cancelled, expected));
    let id = held().await;
    fixture.clock.set(fixture.in_secs(61));
    assert_eq!(fixture.store.expire_holds(5).await.expect("the store works"), 1);
    let expected = json!({ "status": "HoldCancelled", "details": "The hold ended without a release" });
    assert_eq!(last_event(&fixture, id).await, (EventKind::Cancelled, expected));
}

async fn hourly_limit_is_reported_once_at_nine_tenths_and_once_when_used_up(fixture: Fixture) {
    let wants = [EventKind::SendLimitApproaching, EventKind::SendLimitExceeded].into_iter().collect();
    let webhook = fixture.store.create_webhook(new_webhook(fixture.server, wants)).await.expect("works");
    let hour = "2026-11-15T00:00:00Z";
    let server = json!({ "id": fixture.server.0, "name": "Live" });
    let event = |kind, messages: i64, hour: &str| {
        (kind, json!({ "server": server, "limit": 20, "volume": messages, "hour": hour }))
    };
    for (recipients, expected) in [(17, 0), (1, 1), (1, 1), (1, 2), (1, 2), (5, 2)] {
        fixture.accept(limited_send(&fixture, recipients, 20)).await;
        assert_eq!(server_events(&fixture, fixture.server).await.len(), expected);
    }
    fixture.clock.advance(Duration::from_hours(1));
    fixture.accept(limited_send(&fixture, 30, 20)).await;
    let expected = [
        event(EventKind::SendLimitApproaching, 18, hour),
        event(EventKind::SendLimitExceeded, 20, hour),
        event(EventKind::SendLimitApproaching, 30, "2026-11-15T01:00:00Z"),
        event(EventKind::SendLimitExceeded, 30, "2026-11-15T01:00:00Z"),
    ];
    assert_eq!(server_events(&fixture, fixture.server).await, expected);
    assert_eq!(server_events(&fixture, fixture.other_server).await, []);
    let work = fixture.store.claim_webhook_work(fixture.server, webhook.id, 10, Vec::new()).await;
    let work: Vec<(EventKind, Value)> = work
        .expect("the store works")
        .iter()
        .map(|work| parse_event(work.event.kind, &work.event.data))
        .collect();
    assert_eq!(work, expected, "webhooks get them, too");
}

fn new_webhook(server_id: ServerId, events: EventSet) -> NewWebhook {
    NewWebhook {
        server_id,
        url: "https://hooks.example/in".into(),
        events,
        format: WebhookFormat::Standard,
        enabled: true,
        secret: WebhookSecret("whsec_one".into()),
    }
}

async fn hourly_limit_is_reported_once_by_concurrent_sends(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let mut send = limited_send(&fixture, 3, 50);
        if n % 2 == 0 {
            // PostgreSQL accepts sends with an idempotency key in another way.
            send.idempotency = fixture.send_with_key(&format!("k{n}"), 1, "a").idempotency;
        }
        let store = fixture.store.clone();
        tasks.spawn(async move { store.accept(send).await.expect("the store works") });
    }
    tasks.join_all().await;
    let kinds: Vec<EventKind> =
        server_events(&fixture, fixture.server).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [EventKind::SendLimitApproaching, EventKind::SendLimitExceeded]);
}

async fn concurrent_events_of_a_server_have_distinct_numbers(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (store, server) = (fixture.store.clone(), fixture.server);
        let event = NewEvent { kind: EventKind::WebhookDisabled, data: "{}".into() };
        tasks.spawn(async move { store.add_server_event(server, event).await.expect("the store works") });
    }
    tasks.join_all().await;
    assert_eq!(server_events(&fixture, fixture.server).await.len(), 40);
}

async fn paused_warm_up_is_reported_once_to_the_servers_that_use_the_address(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("fresh".into(), false).await.expect("the name is free");
    let source = store
        .add_source(NewSource {
            pool_id: pool.id,
            address: "192.0.2.1".parse().expect("an address"),
            helo: DomainName::parse("mail1.example.com").expect("a domain"),
            weight: 1,
            warmup_started_at: Some(fixture.now()),
        })
        .await
        .expect("the address is free");
    let pause = WarmupPause {
        source_id: source.id,
        reason: "too many bounces".into(),
        pool: "fresh".into(),
        servers: vec![fixture.server],
    };
    assert!(store.pause_warmup(pause.clone()).await.expect("the store works"));
    assert!(!store.pause_warmup(pause.clone()).await.expect("the store works"), "it is paused");
    let found = store.list_sources().await.expect("the store works").remove(0);
    assert_eq!(found.warmup_paused_reason.as_deref(), Some("too many bounces"));
    assert_eq!(found.warmup_started_at, Some(fixture.now()));
    let data = json!({ "address": "192.0.2.1", "pool": "fresh", "reason": "too many bounces" });
    assert_eq!(server_events(&fixture, fixture.server).await, [(EventKind::IpWarmupPaused, data)]);
    assert_eq!(server_events(&fixture, fixture.other_server).await, []);
    store.set_source_warmup(source.id, None).await.expect("it is there");
    assert!(!store.pause_warmup(pause).await.expect("the store works"), "it is over");
}

async fn domain_is_reported_when_it_becomes_verified(fixture: Fixture) {
    let store = &fixture.store;
    let id = store.create_domain(fixture.new_domain("shop.example")).await.expect("the name is free").id;
    let set = async |verified_at| {
        store.set_domain_verified(id, verified_at, fixture.now()).await.expect("it is there");
    };
    set(None).await;
    assert_eq!(server_events(&fixture, fixture.server).await, []);
    set(Some(fixture.now())).await;
    set(Some(fixture.in_secs(5))).await;
    let data = json!({ "domain": { "name": "shop.example" }, "verified_at": "2026-11-15T00:00:00Z" });
    assert_eq!(server_events(&fixture, fixture.server).await, [(EventKind::DomainVerified, data)]);
    set(None).await;
    set(Some(fixture.now())).await;
    assert_eq!(server_events(&fixture, fixture.server).await.len(), 2, "it is verified again");
    let unknown =
        store.set_domain_verified(postroad_model::DomainId(4711), Some(fixture.now()), fixture.now()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
}

async fn settings_of_a_server_are_changed_all_or_none(fixture: Fixture) {
    let store = &fixture.store;
    let update = async |change| match store.update_server(fixture.server, None, change).await? {
        ServerUpdateResult::Done(server) => Ok(*server),
        refused => panic!("nothing forbids it: {refused:?}"),
    };
    let before = store.find_server(fixture.server).await.expect("the store works").expect("it is there");
    fixture.clock.set(fixture.in_secs(5));
    let changed = update(ServerChange {
        name: Some("Shop".into()),
        mode: Some(ServerMode::Development),
        send_rate: Change::Set(SendRate::parse("10/s").expect("a rate")),
        hourly_limit: Change::Set(7),
        track_opens: Some(true),
        track_clicks: None,
        track_excluded_hosts: Some(vec!["example.com".into()]),
        bodies_days: Change::Set(7),
        messages_days: Change::Set(30),
        pool: None,
    });
    let changed = changed.await.expect("the store works");
    assert_eq!((changed.name.as_str(), changed.mode), ("Shop", ServerMode::Development));
    assert_eq!((changed.send_rate, changed.hourly_limit), (SendRate::parse("10/s"), Some(7)));
    assert_eq!((changed.tracking.opens, changed.tracking.clicks), (true, false));
    assert_eq!(changed.tracking.excluded_hosts, ["example.com"]);
    let days = |server: &Server| (server.retention.bodies_days, server.retention.messages_days);
    assert_eq!(days(&changed), (Some(7), Some(30)));
    assert_eq!((changed.created_at, changed.updated_at), (before.created_at, fixture.now()));
    let clearing =
        ServerChange { send_rate: Change::Clear, bodies_days: Change::Clear, ..ServerChange::default() };
    let cleared = update(clearing).await;
    let cleared = cleared.expect("the store works");
    assert_eq!((cleared.send_rate, cleared.hourly_limit), (None, Some(7)), "other settings stay");
    assert_eq!(days(&cleared), (None, Some(30)));
    assert_eq!((cleared.name.as_str(), cleared.tracking.opens), ("Shop", true));
    let other = store.find_server(fixture.other_server).await.expect("the store works").expect("it is there");
    let taken = update(ServerChange {
        name: Some(other.name),
        hourly_limit: Change::Clear,
        ..ServerChange::default()
    });
    assert!(matches!(taken.await, Err(StoreError::Conflict)));
    let after = store.find_server(fixture.server).await.expect("the store works").expect("it is there");
    assert_eq!(after.hourly_limit, Some(7));
    let unknown = store.update_server(ServerId(4711), None, ServerChange::default()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)));
}

async fn changes_by_a_server_cannot_exceed_its_ceilings(fixture: Fixture) {
    let store = &fixture.store;
    let rate = |text: &str| SendRate::parse(text);
    let server =
        async || store.find_server(fixture.server).await.expect("the store works").expect("it is there");
    by_operator::set_hourly_limit(store, fixture.server, Some(100)).await.expect("the store works");
    by_operator::set_send_rate(store, fixture.server, rate("60/m")).await.expect("the store works");
    by_operator::set_retention(store, fixture.server, Some(7), None).await.expect("the store works");
    let limited = server().await;
    assert_eq!((limited.hourly_limit, limited.send_rate), (Some(100), rate("60/m")));
    assert_eq!((limited.retention.bodies_days, limited.retention.messages_days), (Some(7), None));
    let change =
        ServerChange { name: Some("free".into()), hourly_limit: Change::Clear, ..ServerChange::default() };
    let refused = store.update_server(fixture.server, None, change).await.expect("the store works");
    assert!(
        matches!(refused, ServerUpdateResult::Exceeds(found) if found == [(Ceiling::HourlyLimit(100), SetBy::Operator)])
    );
    assert_eq!(
        (server().await.name, server().await.hourly_limit),
        (limited.name, Some(100)),
        "nothing changed"
    );
    let change = ServerChange { hourly_limit: Change::Set(10), ..ServerChange::default() };
    let done = store.update_server(fixture.server, None, change).await.expect("the store works");
    assert!(matches!(done, ServerUpdateResult::Done(server) if server.hourly_limit == Some(10)));
    by_operator::set_hourly_limit(store, fixture.server, Some(5)).await.expect("the store works");
    by_operator::set_send_rate(store, fixture.server, None).await.expect("the store works");
    let cut = server().await;
    assert_eq!((cut.hourly_limit, cut.ceilings.hourly_limit), (Some(5), Some(5)));
    assert_eq!((cut.send_rate, cut.ceilings.send_rate), (None, None));
    by_operator::set_mode(store, fixture.server, ServerMode::Development).await.expect("the store works");
    assert_eq!(server().await.ceilings.mode, Some(ServerMode::Development));
    by_operator::set_mode(store, fixture.server, ServerMode::Live).await.expect("the store works");
    assert_eq!((server().await.mode, server().await.ceilings.mode), (ServerMode::Live, None));
    let unknown = by_operator::set_retention(store, ServerId(4711), None, None).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
}
