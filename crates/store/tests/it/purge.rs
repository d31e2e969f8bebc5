//! Deleted servers and accounts: after their grace period all their rows are removed in small steps, and nobody else's.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_model::{
    EventSet, GateAction, GateScope, LimitedObject, Scope, ServerId, SuppressionReason, WebhookFormat,
};
use postroad_store::{
    DomainOwner, DomainTracking, KeyAlgorithm, KeyHash, NewCredential, NewDomain, NewGate, NewSuppression,
    NewTemplate, NewUser, NewWebhook, StoreError, TemplateContent, TemplateKind, WebhookSecret,
};
use postroad_testkit::eventually;

use crate::by_operator::set_retention;
use crate::fixture::{EngineFiles, Fixture, connect, create_server, new_key, on_both_engines, open};

on_both_engines!(
    a_deleted_server_is_removed_with_its_rows_and_no_others,
    a_deleted_account_is_removed_and_its_name_is_free,
    links_in_mail_of_a_removed_server_work_for_a_while,
    servers_that_still_have_mail_do_not_delay_others
);

/// Tables in which a server has rows after `fill`.
const TABLES: [&str; 7] =
    ["credentials", "domains", "webhooks", "templates", "template_versions", "suppressions", "servers"];

/// Gives a server a credential, a domain, a webhook, a template, and as many suppressed addresses as `suppressions`.
async fn fill(fixture: &Fixture, server_id: ServerId, suppressions: usize) {
    let store = &fixture.store;
    let id = server_id.0 as u8;
    let credential = NewCredential {
        server_id,
        name: "web".into(),
        key_hash: KeyHash([id; 32]),
        secret_hash: KeyHash([id + 100; 32]),
        scope: Scope::Full,
        allow: Vec::new(),
        hold: false,
        test: false,
        expires_at: None,
    };
    store.create_credential(credential).await.expect("the store works");
    let mut domain = fixture.new_domain("example.com");
    domain.owner = DomainOwner::Server(server_id);
    domain.keys = vec![new_key("one", KeyAlgorithm::Rsa)];
    store.create_domain(domain).await.expect("the store works");
    let webhook = NewWebhook {
        server_id,
        url: "https://hooks.example/in".into(),
        events: EventSet::from_bits(1),
        format: WebhookFormat::Standard,
        enabled: true,
        secret: WebhookSecret("whsec_one".into()),
    };
    store.create_webhook(webhook).await.expect("the store works");
    let template = NewTemplate {
        server_id,
        alias: None,
        name: "Hello".into(),
        kind: TemplateKind::Standard,
        content: TemplateContent::default(),
    };
    store.create_template(template, 10).await.expect("the store works");
    let addresses = (0..suppressions).map(|number| NewSuppression {
        address: format!("{number}@example.com"),
        reason: SuppressionReason::Manual,
        details: String::new(),
        origin_message_id: None,
        expires_at: None,
    });
    store.add_suppressions(server_id, addresses.collect()).await.expect("the store works");
}

async fn counts(fixture: &Fixture) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for table in TABLES.into_iter().chain(["accounts", "users", "domain_keys"]) {
        let count = fixture.query_int(&format!("SELECT count(*) FROM {table}")).await;
        counts.insert(table, count);
    }
    counts
}

/// Checks that the stored counts of an account's servers, domains and so on equal its rows.
async fn assert_counts_equal_rows(fixture: &Fixture) {
    let account = fixture.account.0;
    for (object, rows) in [
        (LimitedObject::Servers, format!("servers WHERE account_id = {account}")),
        (LimitedObject::Domains, format!("domains WHERE account_id = {account}")),
        (
            LimitedObject::Webhooks,
            format!("webhooks WHERE server_id IN (SELECT id FROM servers WHERE account_id = {account})"),
        ),
        (LimitedObject::Users, format!("users WHERE account_id = {account}")),
    ] {
        let stored = fixture.store.count_objects(fixture.account, object).await.expect("the store works");
        let found = fixture.query_int(&format!("SELECT count(*) FROM {rows}")).await;
        assert_eq!(stored as i64, found, "{object:?}");
    }
}

async fn purge(fixture: &Fixture) -> usize {
    let mut steps = 0;
    while fixture.store.purge_deleted(fixture.in_secs(3_600)).await.expect("the store works") {
        steps += 1;
        assert!(steps < 100, "it ends");
    }
    steps
}

async fn a_deleted_server_is_removed_with_its_rows_and_no_others(fixture: Fixture) {
    let store = &fixture.store;
    fill(&fixture, fixture.other_server, 3).await;
    let before = counts(&fixture).await;
    let doomed = create_server(store, fixture.account, "Doomed").await;
    fill(&fixture, doomed, 1_200).await;
    assert_counts_equal_rows(&fixture).await;
    let gate = NewGate {
        scope: GateScope::Server(doomed),
        action: GateAction::Suspend,
        reason: "moving".into(),
        automatic: false,
        ends_at: None,
    };
    store.set_gate(gate).await.expect("the store works");
    let until = fixture.in_secs(7 * 24 * 3_600);
    store.set_server_deleted(doomed, Some(until)).await.expect("it works");
    assert_eq!(purge(&fixture).await, 0, "it can still be restored");
    fixture.clock.advance(Duration::from_hours(7 * 24));

    // The retention task must remove its mail first.
    let mail = fixture.send(doomed, &["ann@example.com"], postroad_store::InitialState::Pending, b"x");
    fixture.accept(mail).await;
    assert_eq!(purge(&fixture).await, 0);
    assert_eq!(store.cancel_mail_of_ended_servers(10).await.expect("it works"), 1, "it is never sent");
    assert_eq!(fixture.query_int(&format!("SELECT count(*) FROM queue WHERE server_id = {doomed}")).await, 0);
    for table in ["sends", "messages", "deliveries", "events"] {
        fixture.execute(&format!("DELETE FROM {table} WHERE server_id = {doomed}")).await;
    }
    let steps = purge(&fixture).await;
    assert!(steps >= 3 + 6, "1,200 addresses go in three steps, the rest one by one: {steps}");
    assert_eq!(counts(&fixture).await, before);
    assert_counts_equal_rows(&fixture).await;
    assert!(store.list_gates().await.expect("it works").is_empty());
    assert!(store.find_server(doomed).await.expect("it works").is_none());
    create_server(store, fixture.account, "Doomed").await;
}

async fn links_in_mail_of_a_removed_server_work_for_a_while(fixture: Fixture) {
    let store = &fixture.store;
    let doomed = create_server(store, fixture.account, "Doomed").await;
    let owner = DomainOwner::Server(doomed);
    let new = NewDomain { owner, is_verified: true, ..fixture.new_domain("shop.example") };
    let domain = store.create_domain(new).await.expect("the name is free");
    let tracking = DomainTracking { host: Some("links.shop.example".into()), ..DomainTracking::default() };
    store.set_domain_tracking(domain.id, tracking, fixture.now()).await.expect("it is there");
    store.set_server_deleted(doomed, Some(fixture.in_secs(60))).await.expect("it works");
    fixture.clock.advance(Duration::from_mins(1));
    assert!(purge(&fixture).await > 0);
    assert!(store.find_domain_by_id(domain.id).await.expect("the store works").is_none());
    assert_eq!(store.list_tracking_hosts().await.expect("the store works"), ["links.shop.example"]);
    fixture.clock.advance(Duration::from_hours(1));
    assert!(store.list_tracking_hosts().await.expect("the store works").is_empty());
}

async fn servers_that_still_have_mail_do_not_delay_others(fixture: Fixture) {
    let store = &fixture.store;
    let (sooner, later) = (fixture.in_secs(60), fixture.in_secs(61));
    for number in 0..101 {
        let server = create_server(store, fixture.account, &format!("With mail {number}")).await;
        let mail = fixture.send(server, &["ann@example.com"], postroad_store::InitialState::Pending, b"x");
        fixture.accept(mail).await;
        store.set_server_deleted(server, Some(sooner)).await.expect("it works");
    }
    let empty = create_server(store, fixture.account, "Empty").await;
    store.set_server_deleted(empty, Some(later)).await.expect("it works");
    fixture.clock.advance(Duration::from_mins(2));
    assert!(purge(&fixture).await > 0);
    assert!(store.find_server(empty).await.expect("it works").is_none());
}

async fn a_deleted_account_is_removed_and_its_name_is_free(fixture: Fixture) {
    let store = &fixture.store;
    fill(&fixture, fixture.server, 3).await;
    let before = counts(&fixture).await;
    let account = store.create_account("Gone".into()).await.expect("it works").id;
    let server = create_server(store, account, "Live").await;
    fill(&fixture, server, 3).await;
    // A server whose customer keeps no mail is removed like the other.
    let without_retention = create_server(store, account, "Without retention").await;
    set_retention(store, without_retention, Some(0), Some(0)).await.expect("it works");
    let person = NewUser {
        account_id: account,
        email: "ann@example.com".into(),
        name: String::new(),
        role: postroad_model::UserRole::Owner,
        operator: false,
        password_hash: None,
    };
    store.create_user(person).await.expect("it works");
    store.set_account_deleted(account, Some(fixture.in_secs(60))).await.expect("it works");
    fixture.clock.advance(Duration::from_mins(2));
    assert_eq!(purge(&fixture).await, 0, "its servers are not ended yet");
    assert_eq!(store.end_deleted_servers(10).await.expect("it works"), 2);
    assert_eq!(store.end_deleted_servers(10).await.expect("it works"), 0, "once is enough");
    assert!(purge(&fixture).await > 0);
    assert_eq!(counts(&fixture).await, before);
    let restored = store.set_account_deleted(account, None).await;
    assert!(matches!(restored, Err(StoreError::NotFound)), "{restored:?}");
    store.create_account("Gone".into()).await.expect("the name is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_two_nodes_remove_at_once_is_counted_once() {
    let fixture = Fixture::postgres().await;
    let EngineFiles::Postgres(database) = &fixture.engine_files else { panic!("this is PostgreSQL") };
    let other =
        open(fixture.engine_files.database(), "another node", &fixture.clock).await.expect("it opens");
    let doomed = create_server(&fixture.store, fixture.account, "Doomed").await;
    fixture.store.set_server_deleted(doomed, Some(fixture.in_secs(60))).await.expect("it works");
    fixture.clock.advance(Duration::from_mins(2));

    // Both nodes have found the server before either has removed it.
    let mut blocker = connect(database.url()).await;
    let lock = blocker.transaction().await.expect("it begins");
    lock.execute("SELECT id FROM servers WHERE id = $1 FOR UPDATE", &[&doomed.0])
        .await
        .expect("it is locked");
    let (one, two) = (fixture.store.clone(), other.clone());
    let until = fixture.in_secs(3_600);
    let purges = [
        tokio::spawn(async move { one.purge_deleted(until).await }),
        tokio::spawn(async move { two.purge_deleted(until).await }),
    ];
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually(async || match fixture.query_int(waiting).await {
        count @ ..2 => Err(format!("{count} of 2 removals wait for the lock")),
        _ => Ok(()),
    })
    .await;
    lock.rollback().await.expect("it ends");
    for purge in purges {
        assert!(purge.await.expect("it ends").expect("the store works"));
    }
    assert!(fixture.store.find_server(doomed).await.expect("it works").is_none());
    assert_counts_equal_rows(&fixture).await;
}
