//! Pools, sources, gates and send rates: the setup of the delivery engine. Also pacing notes.

use std::time::Duration;

use postroad_model::{
    DomainName, GateAction, GateScope, PoolId, SendRate, ServerId, ServerMode, SourceId, Status, Timestamp,
};
use postroad_store::{
    NewGate, NewServer, NewSource, Outcome, PacingNote, SetBy, SourceCounts, StoreError, WarmupPause,
};

use crate::by_operator;
use crate::fixture::{EngineFiles, Fixture, connect, on_both_engines};

on_both_engines!(
    delivery_setup_is_read_whole,
    only_servers_that_changed_are_read_again,
    a_change_that_is_committed_during_a_read_comes_with_the_next_read,
    servers_of_a_pool_are_listed,
    pool_names_are_unique_and_only_one_pool_is_shared,
    pool_in_use_is_not_deleted,
    sources_are_added_warmed_up_and_removed,
    source_days_are_read_page_by_page,
    sources_are_counted_by_provider,
    days_of_a_pause_are_added_when_the_warm_up_resumes,
    resumed_warm_up_ignores_earlier_counts,
    gates_are_replaced_listed_and_end,
    hourly_limit_comes_with_the_credential,
    changes_of_the_setup_are_signalled,
    first_value_of_a_setting_wins,
    pacing_notes_are_kept_by_source_and_site,
);

fn new_source(pool_id: PoolId, address: &str) -> NewSource {
    NewSource {
        pool_id,
        address: address.parse().expect("an address"),
        helo: DomainName::parse("mail1.example.com").expect("a domain"),
        weight: 3,
        warmup_started_at: None,
    }
}

fn new_gate(scope: &str, automatic: bool) -> NewGate {
    NewGate {
        scope: GateScope::parse(scope).expect("a scope"),
        action: GateAction::Suspend,
        reason: "maintenance there".into(),
        automatic,
        ends_at: None,
    }
}

async fn delivery_setup_is_read_whole(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("main".into(), true).await.expect("the name is free");
    let source = store.add_source(new_source(pool.id, "192.0.2.1")).await.expect("the address is free");
    let rate = SendRate::parse("100/m");
    by_operator::set_pool(store, fixture.server, Some(pool.id)).await.expect("the store works");
    by_operator::set_send_rate(store, fixture.server, rate).await.expect("the store works");
    store.set_account_suspended(fixture.account, Some("unpaid".into())).await.expect("the store works");
    store
        .set_server_suspended_by(SetBy::Operator, fixture.other_server, Some("spam".into()))
        .await
        .expect("the store works");
    store.set_gate(new_gate("pool:main", false)).await.expect("the store works");
    let setup = store.delivery_setup(None).await.expect("the store works");
    assert_eq!(setup.servers.len(), 2);
    let server = &setup.servers[0];
    assert_eq!(server.id, fixture.server);
    assert_eq!((server.pool_id, server.send_rate), (Some(pool.id), rate));
    let reasons: Vec<_> = setup.servers.iter().map(|server| server.suspended_reason.as_deref()).collect();
    assert_eq!(reasons, [Some("unpaid"), Some("spam")]);
    assert_eq!((setup.pools, setup.sources), (vec![pool], vec![source]));
    assert_eq!((setup.gates.len(), setup.live_nodes), (1, 1));
    let servers = store.list_servers().await.expect("the store works");
    assert_eq!((servers[0].send_rate, servers[0].pool_id), (rate, server.pool_id));
    by_operator::set_send_rate(store, fixture.server, None).await.expect("the store works");
    assert_eq!(store.list_servers().await.expect("the store works")[0].send_rate, None);
    let unknown = by_operator::set_pool(store, fixture.server, Some(PoolId(99))).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
    let unknown = by_operator::set_hourly_limit(store, ServerId(99), Some(1)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
}

async fn only_servers_that_changed_are_read_again(fixture: Fixture) {
    let store = &fixture.store;
    let create = async |name: String| {
        let new = NewServer { account_id: fixture.account, name, mode: ServerMode::Live, pool_id: None };
        store.create_server(new).await.expect("the name is free").id
    };
    for number in 0..20 {
        create(format!("s{number}")).await;
    }
    let mut mark = None;
    let mut read = async || {
        let setup = store.delivery_setup(mark).await.expect("the store works");
        mark = Some(setup.mark);
        // Makes all changes old: on PostgreSQL a change is read again while an older transaction runs, even one of
        // another test.
        fixture.execute("UPDATE servers SET changed_xact = 0; UPDATE accounts SET changed_xact = 0").await;
        setup.servers.into_iter().map(|server| (server.id, server.suspended_reason)).collect::<Vec<_>>()
    };
    let all = read().await;
    assert_eq!(all.len(), 22);
    assert_eq!(read().await, []);
    let new = create("new".into()).await;
    assert_eq!(read().await, [(new, None)]);
    let set_suspension = async |reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        store.set_server_suspended_by(SetBy::Operator, new, reason).await.expect("it is there")
    };
    set_suspension(Some("spam")).await;
    assert_eq!(read().await, [(new, Some("spam".to_owned()))]);
    set_suspension(Some("spam")).await;
    assert_eq!(read().await, [], "it is suspended for the same reason");
    set_suspension(None).await;
    store.set_server_deleted(new, Some(fixture.in_secs(60))).await.expect("it is there");
    assert_eq!(read().await, [(new, Some("deleted".to_owned()))], "two changes are read once");
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    assert_eq!(read().await, [], "a pool is no server");
    by_operator::set_pool(store, fixture.server, Some(pool)).await.expect("the store works");
    assert_eq!(read().await, [(fixture.server, None)]);
    by_operator::set_send_rate(store, fixture.server, SendRate::parse("5/s")).await.expect("the store works");
    assert_eq!(read().await, [(fixture.server, None)]);
    by_operator::set_hourly_limit(store, fixture.server, Some(5)).await.expect("the store works");
    assert_eq!(read().await, [], "delivery does not use it");
    store.set_account_suspended(fixture.account, Some("unpaid".into())).await.expect("the store works");
    let of_account = read().await;
    assert_eq!(of_account.len(), all.len() + 1, "all servers of the account");
    assert!(of_account.iter().all(|(_, reason)| reason.is_some()), "{of_account:?}");
    assert_eq!(read().await, []);
}

/// On PostgreSQL a transaction may begin before a read and be committed after it.
async fn a_change_that_is_committed_during_a_read_comes_with_the_next_read(fixture: Fixture) {
    let EngineFiles::Postgres(database) = &fixture.engine_files else { return };
    let mut client = connect(database.url()).await;
    let transaction = client.transaction().await.expect("a transaction");
    let text = "UPDATE servers SET suspended_reason = 'spam' WHERE id = $1";
    transaction.execute(text, &[&fixture.server.0]).await.expect("the server is there");
    let store = &fixture.store;
    // A transaction that begins later is committed first.
    by_operator::set_send_rate(store, fixture.other_server, SendRate::parse("5/s"))
        .await
        .expect("the store works");
    let before = store.delivery_setup(None).await.expect("the store works");
    assert_eq!(before.servers[0].suspended_reason, None);
    transaction.commit().await.expect("it can be committed");
    let after = store.delivery_setup(Some(before.mark)).await.expect("the store works");
    assert_eq!(after.servers[0].id, fixture.server);
    assert_eq!(after.servers[0].suspended_reason.as_deref(), Some("spam"));
}

async fn servers_of_a_pool_are_listed(fixture: Fixture) {
    let store = &fixture.store;
    let shared = store.create_pool("shared".into(), true).await.expect("the name is free").id;
    let own = store.create_pool("own".into(), false).await.expect("the name is free").id;
    by_operator::set_pool(store, fixture.server, Some(own)).await.expect("the store works");
    let list = async |pool| store.list_servers_of_pool(pool, 10).await.expect("the store works");
    assert_eq!((list(own).await, list(shared).await), (vec![fixture.server], vec![fixture.other_server]));
    by_operator::set_pool(store, fixture.server, None).await.expect("the store works");
    assert_eq!(list(own).await, []);
    assert_eq!(store.list_servers_of_pool(shared, 1).await.expect("the store works"), [fixture.server]);
}

async fn pool_names_are_unique_and_only_one_pool_is_shared(fixture: Fixture) {
    let store = &fixture.store;
    let main = store.create_pool("main".into(), true).await.expect("the name is free");
    assert!(matches!(store.create_pool("main".into(), false).await, Err(StoreError::Conflict)));
    assert!(matches!(store.create_pool("other".into(), true).await, Err(StoreError::Conflict)));
    let other = store.create_pool("other".into(), false).await.expect("the name is free");
    store.create_pool("third".into(), false).await.expect("several are not shared");
    assert_eq!(store.list_pools().await.expect("the store works")[..2], [main, other]);
}

async fn pool_in_use_is_not_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    let source = store.add_source(new_source(pool, "192.0.2.1")).await.expect("the address is free").id;
    assert!(matches!(store.delete_pool(pool).await, Err(StoreError::InUse)));
    store.remove_source(source).await.expect("it is there");
    by_operator::set_pool(store, fixture.server, Some(pool)).await.expect("the store works");
    assert!(matches!(store.delete_pool(pool).await, Err(StoreError::InUse)));
    by_operator::set_pool(store, fixture.server, None).await.expect("the store works");
    store.delete_pool(pool).await.expect("nobody uses it");
    assert!(matches!(store.delete_pool(pool).await, Err(StoreError::NotFound)));
}

async fn sources_are_added_warmed_up_and_removed(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    let source = store.add_source(new_source(pool, "2001:db8::1")).await.expect("the address is free");
    assert_eq!((source.pool_id, source.weight, source.helo.as_str()), (pool, 3, "mail1.example.com"));
    assert_eq!((source.warmup_started_at, source.warmup_paused_reason), (None, None));
    assert!(matches!(store.add_source(new_source(pool, "2001:db8::1")).await, Err(StoreError::Conflict)));
    let nowhere = new_source(PoolId(99), "192.0.2.7");
    assert!(matches!(store.add_source(nowhere).await, Err(StoreError::NotFound)));
    let started = Some(fixture.now());
    store.set_source_warmup(source.id, started).await.expect("it is there");
    let found = store.list_sources().await.expect("the store works");
    assert_eq!((found[0].warmup_started_at, &found[0].warmup_paused_reason), (started, &None));
    store.remove_source(source.id).await.expect("it is there");
    assert!(store.list_sources().await.expect("the store works").is_empty());
    assert!(matches!(store.remove_source(source.id).await, Err(StoreError::NotFound)));
    let gone = store.set_source_warmup(source.id, None).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
}

async fn source_days_are_read_page_by_page(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    let source = store.add_source(new_source(pool, "192.0.2.1")).await.expect("the address is free").id;
    for status in [Status::Sent, Status::HardFail] {
        let id = fixture.accept_and_claim().await;
        assert!(fixture.finish(Outcome { source_id: Some(source), ..fixture.outcome(id, status) }).await);
        fixture.clock.advance(Duration::from_hours(24));
    }
    let days = store.list_source_days(source, None, 10).await.expect("the store works");
    let counts: Vec<_> =
        days.iter().map(|day| (day.day.to_rfc3339(), day.counts.sent, day.counts.bounced)).collect();
    assert_eq!(
        counts,
        [("2026-11-16T00:00:00Z".to_owned(), 0, 1), ("2026-11-15T00:00:00Z".to_owned(), 1, 0)]
    );
    let first = store.list_source_days(source, None, 1).await.expect("the store works");
    assert_eq!(first, days[..1]);
    let after = Some((days[0].day, days[0].provider.clone()));
    assert_eq!(store.list_source_days(source, after, 10).await.expect("the store works"), days[1..]);
    fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
    let today = &store.delivery_setup(None).await.expect("the store works").sources[0];
    assert_eq!((today.sent_today, today.bounced_today), (0, 1));
    assert!(store.list_source_days(SourceId(99), None, 10).await.expect("the store works").is_empty());
}

async fn sources_are_counted_by_provider(fixture: Fixture) {
    let store = &fixture.store;
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    let source = store.add_source(new_source(pool, "192.0.2.1")).await.expect("the address is free").id;
    let counted = [
        ("google", Status::Sent),
        ("google", Status::Sent),
        ("other", Status::Sent),
        ("google", Status::HardFail),
        ("other", Status::SoftFail),
    ];
    for (provider, status) in counted {
        let id = fixture.accept_and_claim().await;
        let provider = provider.into();
        let outcome = Outcome { source_id: Some(source), provider, ..fixture.outcome(id, status) };
        assert!(fixture.finish(outcome).await);
    }
    let counts = |sent, bounced| SourceCounts { sent, bounced, complained: 0 };
    let by_provider = vec![("google".to_owned(), counts(2, 1)), ("other".to_owned(), counts(1, 0))];
    let today = &store.delivery_setup(None).await.expect("the store works").sources[0];
    assert_eq!((today.sent_today, today.bounced_today), (3, 1));
    assert_eq!(today.today_by_provider, by_provider);
    let days = store.list_source_days(source, None, 10).await.expect("the store works");
    let days: Vec<_> = days.into_iter().map(|day| (day.provider, day.counts)).collect();
    assert_eq!(days, by_provider);
}

/// Creates a source whose warm-up begins now.
async fn create_warming_source(fixture: &Fixture) -> SourceId {
    let store = &fixture.store;
    let pool = store.create_pool("fresh".into(), false).await.expect("the name is free").id;
    let new = NewSource { warmup_started_at: Some(fixture.now()), ..new_source(pool, "192.0.2.1") };
    store.add_source(new).await.expect("the address is free").id
}

async fn pause(fixture: &Fixture, source_id: SourceId) {
    let pause = WarmupPause { source_id, reason: "bounces".into(), pool: "fresh".into(), servers: vec![] };
    assert!(fixture.store.pause_warmup(pause).await.expect("the store works"));
}

async fn days_of_a_pause_are_added_when_the_warm_up_resumes(fixture: Fixture) {
    let store = &fixture.store;
    let id = create_warming_source(&fixture).await;
    let source = async || store.list_sources().await.expect("the store works").remove(0);
    for (days, days_in_total) in [(3, 3), (20, 23)] {
        fixture.clock.advance(Duration::from_hours(48));
        pause(&fixture, id).await;
        assert_eq!(source().await.warmup_paused_at, Some(fixture.now()));
        fixture.clock.advance(Duration::from_hours(24 * days));
        store.resume_warmup(id).await.expect("it is there");
        // Resuming a second time changes nothing.
        store.resume_warmup(id).await.expect("it is there");
        let resumed = source().await;
        assert_eq!((resumed.warmup_paused_at, resumed.warmup_paused_reason), (None, None));
        assert_eq!(resumed.warmup_days_paused, days_in_total);
    }
    store.set_source_warmup(id, Some(fixture.now())).await.expect("it is there");
    assert_eq!(source().await.warmup_days_paused, 0, "a new plan begins at its first day");
    let unknown = store.resume_warmup(SourceId(99)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
}

async fn resumed_warm_up_ignores_earlier_counts(fixture: Fixture) {
    let store = &fixture.store;
    let id = create_warming_source(&fixture).await;
    let settle = async |status| {
        let message = fixture.accept_and_claim().await;
        assert!(fixture.finish(Outcome { source_id: Some(id), ..fixture.outcome(message, status) }).await);
    };
    settle(Status::Sent).await;
    settle(Status::HardFail).await;
    pause(&fixture, id).await;
    store.resume_warmup(id).await.expect("it is there");
    settle(Status::Sent).await;
    let source = store.list_sources().await.expect("the store works").remove(0);
    assert_eq!((source.sent_today, source.bounced_today), (2, 1), "the quota counts the whole day");
    assert_eq!(source.warmup_counts, SourceCounts { sent: 1, bounced: 0, complained: 0 });
}

async fn gates_are_replaced_listed_and_end(fixture: Fixture) {
    let store = &fixture.store;
    store.set_gate(new_gate("domain:example.com", false)).await.expect("the store works");
    store.set_gate(new_gate("domain:example.com", true)).await.expect("the store works");
    let slower = NewGate {
        action: GateAction::Slow { per_minute: 30 },
        reason: "451 slow down".into(),
        ends_at: Some(fixture.in_secs(60)),
        ..new_gate("domain:example.com", true)
    };
    fixture.clock.advance(Duration::from_secs(1));
    store.set_gate(slower.clone()).await.expect("the store works");
    store.set_gate(new_gate("everything", false)).await.expect("the store works");
    let gates = store.list_gates().await.expect("the store works");
    assert_eq!(gates.len(), 3);
    let automatic = gates.iter().find(|gate| gate.automatic).expect("it is there");
    assert_eq!((automatic.action, &automatic.reason), (slower.action, &slower.reason));
    assert_eq!((automatic.created_at, automatic.ends_at), (fixture.now(), slower.ends_at));
    assert_eq!(store.purge_gates().await.expect("the store works"), 0);
    fixture.clock.advance(Duration::from_mins(1));
    assert_eq!(store.list_gates().await.expect("the store works").len(), 2, "one has ended");
    assert_eq!(store.purge_gates().await.expect("the store works"), 1);
    let scope = GateScope::Domain(DomainName::parse("example.com").expect("a domain"));
    // An account can neither replace nor remove the operator's gate, but can do both with its own.
    let of_account = || store.set_gate_by(SetBy::Account, new_gate("domain:example.com", false));
    assert!(!of_account().await.expect("the store works"));
    assert!(!store.remove_gate_of_account(scope.clone()).await.expect("the store works"));
    assert!(store.remove_gate(scope.clone()).await.expect("the store works"));
    for _ in 0..2 {
        assert!(of_account().await.expect("the store works"));
    }
    assert!(store.remove_gate_of_account(scope.clone()).await.expect("the store works"));
    assert!(!store.remove_gate(scope).await.expect("the store works"));
    assert_eq!(store.list_gates().await.expect("the store works")[0].scope, GateScope::Everything);
}

async fn hourly_limit_comes_with_the_credential(fixture: Fixture) {
    let store = &fixture.store;
    let key = postroad_store::KeyHash([7; 32]);
    let new = postroad_store::NewCredential {
        server_id: fixture.server,
        name: "key".into(),
        key_hash: key,
        secret_hash: postroad_store::KeyHash([8; 32]),
        scope: postroad_model::Scope::Full,
        allow: Vec::new(),
        hold: false,
        test: false,
        expires_at: None,
    };
    store.create_credential(new).await.expect("the key is new");
    let limit = async || {
        let access = store.find_credential_access(key).await.expect("the store works");
        access.expect("it is there").hourly_limit
    };
    assert_eq!(limit().await, None);
    by_operator::set_hourly_limit(store, fixture.server, Some(500)).await.expect("the store works");
    assert_eq!(limit().await, Some(500));
}

async fn changes_of_the_setup_are_signalled(fixture: Fixture) {
    let store = &fixture.store;
    let mut changes = store.changes();
    changes.mark_unchanged();
    store.set_setting("maintenance", None).await.expect("the store works");
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    assert!(!changes.has_changed().expect("the store is open"), "delivery does not use these");
    let pool = store.create_pool("main".into(), false).await.expect("the name is free").id;
    assert!(changes.has_changed().expect("the store is open"));
    changes.mark_unchanged();
    let taken = store.create_pool("main".into(), false).await;
    assert!(taken.is_err() && !changes.has_changed().expect("the store is open"), "nothing was changed");
    store.set_gate(new_gate("everything", true)).await.expect("the store works");
    store.delete_pool(pool).await.expect("nobody uses it");
    assert!(changes.has_changed().expect("the store is open"));
}

async fn first_value_of_a_setting_wins(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..10 {
        let store = fixture.store.clone();
        tasks.spawn(async move {
            store.find_or_insert_setting("secret", format!("s{n}")).await.expect("it works")
        });
    }
    let values = tasks.join_all().await;
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    assert_eq!(fixture.store.find_setting("secret").await.expect("the store works"), Some(values[0].clone()));
}

async fn pacing_notes_are_kept_by_source_and_site(fixture: Fixture) {
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let note = |site: &str, per_minute, learned_at| PacingNote {
        source: "192.0.2.1".parse().expect("an address"),
        site: site.to_owned(),
        per_minute,
        connections: Some(3),
        greylist_secs: None,
        reason: "421 slow down".to_owned(),
        learned_at,
    };
    let store = &fixture.store;
    let first = vec![note("mx.one.example", Some(90), at(100)), note("mx.two.example", None, at(50))];
    store.save_pacing_notes(first).await.expect("saving works");
    let newer = note("mx.one.example", Some(120), at(200));
    store.save_pacing_notes(vec![newer.clone()]).await.expect("saving works");
    // An older note of another node does not replace a newer one.
    store.save_pacing_notes(vec![note("mx.one.example", Some(60), at(150))]).await.expect("saving works");
    let listed = store.list_pacing_notes(at(0), 10).await.expect("reading works");
    assert_eq!(listed, [newer.clone(), note("mx.two.example", None, at(50))]);
    let since = store.list_pacing_notes(at(101), 10).await.expect("reading works");
    assert_eq!(since, std::slice::from_ref(&newer));
    assert_eq!(store.purge_pacing_notes(at(51)).await.expect("removing works"), 1);
    assert_eq!(store.list_pacing_notes(at(0), 10).await.expect("reading works"), [newer]);
}
