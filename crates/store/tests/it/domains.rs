//! Domains: owners, effects of checks, signing keys, and which node makes a check.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use postroad_model::{AccountId, DomainId, DomainKeyId, DomainName, EventKind, ServerId};
use postroad_store::{
    Domain, DomainCheck, DomainFilter, DomainOwner, DomainScope, DomainTracking, KeyAlgorithm, KeyState,
    NewDomain, NewSource, SourceScope, Store, StoreError, VerifiedBy,
};
use serde_json::{Value, json};

use crate::by_operator;
use crate::fixture::{EngineFiles, Fixture, create_server, new_key, on_both_engines, open};

on_both_engines! {
    domains_are_created_found_and_deleted,
    a_domain_of_an_account_is_usable_by_all_its_servers_and_by_no_others,
    domains_are_listed_in_pages,
    a_good_check_verifies_the_domain_and_adds_an_event,
    the_event_of_an_account_with_many_servers_is_written_in_steps,
    readers_of_events_learn_at_once_that_a_domain_fails,
    records_that_fail_stop_sending_after_72_hours,
    a_check_without_a_verdict_changes_only_its_own_time,
    verification_by_the_operator_is_independent_of_the_checks,
    a_rotated_key_signs_once_its_record_is_found,
    a_key_whose_record_is_gone_signs_for_72_hours_more,
    an_earlier_check_does_not_overwrite_the_result_of_a_later_one,
    a_key_added_during_a_check_is_checked_soon,
    tracking_hosts_are_served_for_verified_domains_and_for_a_while_after_deletion,
    sources_of_a_server_an_account_and_all_servers_are_listed,
    verified_domain_has_its_signing_keys,
    return_path_and_tracking_host_follow_their_aliases,
    a_domain_is_checked_by_one_node_only,
    due_checks_are_claimed_from_each_account_in_rounds,
    checks_by_hand_are_limited_in_frequency,
    domains_of_an_earlier_version_stay_verified_and_keep_their_keys,
}

/// Undoes migrations 28 and 29, and the indexes of reports by age.
pub(crate) const UNDO_DELIVERY_POLICY: &str =
    "DROP INDEX domain_reports_by_age; DROP INDEX domain_reports_by_domain_age;
    DROP INDEX servers_by_pool; DROP INDEX pools_by_account; ALTER TABLE pools DROP COLUMN account_id;
    ALTER TABLE deliveries DROP COLUMN tls_policy; ALTER TABLE deliveries DROP COLUMN dkim";

/// Undoes the migrations of accounts and of people, and parts of later ones.
pub(crate) const UNDO_ACCOUNTS: &str =
    "DROP INDEX accounts_by_name; DROP INDEX accounts_deleted; DROP INDEX accounts_suspended; DROP INDEX servers_by_name;
    DROP INDEX servers_deleted; DROP INDEX servers_deleted_by_account; DROP INDEX servers_suspended;
    DROP INDEX servers_suspended_by_account; DROP INDEX credentials_revoked; DROP INDEX credentials_revoked_by_account;
    DROP INDEX IF EXISTS credentials_revoked_by_server; DROP INDEX credentials_unrevoked;
    DROP INDEX credentials_unrevoked_by_account; DROP INDEX IF EXISTS credentials_unrevoked_by_server;
    ALTER TABLE webhooks DROP COLUMN version; DROP TABLE account_counts; DROP INDEX servers_by_account_pool; ALTER TABLE sources DROP COLUMN version;
    ALTER TABLE sources DROP COLUMN updated_at; ALTER TABLE pools DROP COLUMN updated_at;
    DROP TABLE domain_links; DROP TABLE saved_searches; DROP INDEX credentials_by_account; DROP INDEX credentials_by_address;
    ALTER TABLE credentials DROP COLUMN account_id; ALTER TABLE servers DROP COLUMN suspended_by;
    ALTER TABLE gates DROP COLUMN set_by; DROP TABLE user_recovery_codes; DROP TABLE user_addresses;
    DROP TABLE user_sessions; DROP TABLE user_tokens; DROP TABLE invitations; DROP TABLE sign_in_attempts;
    DROP TABLE users; DROP TABLE account_keys; DROP TABLE audit; DROP TABLE audit_heads;
    DROP TABLE creations; DROP INDEX servers_by_account; DROP INDEX servers_by_delete_at;
    DROP INDEX accounts_by_delete_at; ALTER TABLE accounts DROP COLUMN version;
    ALTER TABLE accounts DROP COLUMN delete_at; ALTER TABLE servers DROP COLUMN version;
    ALTER TABLE servers DROP COLUMN delete_at; ALTER TABLE credentials DROP COLUMN version;
    DROP TABLE account_periods; DROP TABLE account_notices; ALTER TABLE accounts DROP COLUMN hourly_limit;
    ALTER TABLE accounts DROP COLUMN daily_limit; ALTER TABLE accounts DROP COLUMN monthly_limit;
    ALTER TABLE accounts DROP COLUMN send_rate; ALTER TABLE accounts DROP COLUMN servers_max;
    ALTER TABLE accounts DROP COLUMN domains_max; ALTER TABLE accounts DROP COLUMN webhooks_max;
    ALTER TABLE accounts DROP COLUMN users_max; ALTER TABLE accounts DROP COLUMN retention_bodies;
    ALTER TABLE accounts DROP COLUMN retention_messages; ALTER TABLE servers DROP COLUMN account_mode_ceiling;
    ALTER TABLE servers DROP COLUMN account_send_rate_ceiling;
    ALTER TABLE servers DROP COLUMN account_hourly_limit_ceiling;
    ALTER TABLE servers DROP COLUMN account_retention_bodies_ceiling;
    ALTER TABLE servers DROP COLUMN account_retention_messages_ceiling";

/// Undoes migration 22, and the migration of releases and reschedules.
pub(crate) const UNDO_BATCHES: &str =
    "DROP INDEX IF EXISTS queue_free_by_server; DROP INDEX queue_scheduled_by_server_due;
    ALTER TABLE queue DROP COLUMN released_at; ALTER TABLE messages DROP COLUMN rescheduled; DROP INDEX sends_by_batch; ALTER TABLE sends DROP COLUMN batch_id;
    ALTER TABLE messages DROP COLUMN send_at";

/// Undoes migrations 40 and 41.
pub(crate) async fn undo_setup_changes(fixture: &Fixture) {
    let of_engine = if fixture.is_sqlite() {
        "DROP TRIGGER servers_added; DROP TRIGGER servers_changed; DROP TRIGGER accounts_changed; DROP TABLE setup_changes"
    } else {
        "DROP FUNCTION note_setup_change CASCADE"
    };
    fixture.execute(of_engine).await;
    fixture.execute("DROP TABLE inspector_requests; DROP TABLE inspectors").await;
    fixture
        .execute("ALTER TABLE webhooks DROP COLUMN last_failure_at; DROP INDEX queue_scheduled_by_server")
        .await;
    let of_both = "DROP INDEX audit_by_actor_id; DROP INDEX credentials_by_name; DROP INDEX credentials_by_account_name;
        DROP INDEX credentials_by_server_name; DROP INDEX credentials_by_revocation; DROP INDEX servers_by_change; DROP INDEX accounts_by_change;
        ALTER TABLE servers DROP COLUMN changed_xact; ALTER TABLE accounts DROP COLUMN changed_xact";
    fixture.execute(of_both).await;
}

/// Undoes the migrations of search and jobs.
pub(crate) const UNDO_SEARCH: &str = "DROP TABLE jobs; DROP INDEX messages_by_rare_status; DROP TABLE search_postings; DROP TABLE search_blocks";

/// Replaces the tables of domains by the one of version 19.
pub(crate) const DOMAINS_V19_SQLITE: &str = "DROP TABLE former_tracking_hosts; DROP TABLE domain_keys; DROP TABLE domains;
    CREATE TABLE domains (id INTEGER PRIMARY KEY AUTOINCREMENT, server_id INTEGER NOT NULL REFERENCES servers (id),
        name TEXT NOT NULL, verified_at INTEGER, dkim_selector TEXT NOT NULL, dkim_private_key BLOB NOT NULL,
        dkim_public_key BLOB NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        dkim_ed25519_selector TEXT, dkim_ed25519_private_key BLOB, dkim_ed25519_public_key BLOB,
        track_opens INTEGER, track_clicks INTEGER, track_host TEXT, UNIQUE (server_id, name));
    CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL";

/// Undoes the migration that added dimensions of attempts to the counters.
const UNDO_ATTEMPT_DIMENSIONS: &str = "DROP INDEX counter_dimensions_by_value;
    ALTER TABLE counter_dimensions DROP COLUMN bounce_class;
    ALTER TABLE counter_dimensions DROP COLUMN source_ip;
    ALTER TABLE counter_dimensions DROP COLUMN tls_version;
    CREATE UNIQUE INDEX counter_dimensions_by_value ON counter_dimensions (server_id, shape, domain)";

/// `DOMAINS_V19_SQLITE` for PostgreSQL; also restores the unique names of accounts.
pub(crate) const DOMAINS_V19_POSTGRES: &str =
    "ALTER TABLE accounts ADD CONSTRAINT accounts_name_key UNIQUE (name); DROP TABLE former_tracking_hosts; DROP TABLE domain_keys; DROP TABLE domains;
    CREATE TABLE domains (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        server_id BIGINT NOT NULL REFERENCES servers (id),
        name TEXT NOT NULL, verified_at BIGINT, dkim_selector TEXT NOT NULL, dkim_private_key BYTEA NOT NULL,
        dkim_public_key BYTEA NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
        dkim_ed25519_selector TEXT, dkim_ed25519_private_key BYTEA, dkim_ed25519_public_key BYTEA,
        track_opens BIGINT, track_clicks BIGINT, track_host TEXT, UNIQUE (server_id, name));
    CREATE INDEX domains_by_track_host ON domains (track_host) WHERE track_host IS NOT NULL";

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect("a domain")
}

async fn find(fixture: &Fixture, server: ServerId, text: &str) -> Option<Domain> {
    fixture.store.find_domain(server, name(text)).await.expect("the store works")
}

async fn by_id(fixture: &Fixture, id: DomainId) -> Domain {
    fixture.store.find_domain_by_id(id).await.expect("the store works").expect("it is there")
}

/// A check of the domain. `is_good` is also the result for the records of all its keys.
fn check(domain: &Domain, is_good: Option<bool>) -> DomainCheck {
    let keys = is_good.map(|is_good| domain.keys.iter().map(|key| (key.id, is_good)).collect());
    DomainCheck {
        id: domain.id,
        begun_at: domain.result_begun_at.unwrap_or(domain.created_at),
        records: r#"[{"purpose":"spf"}]"#.to_owned(),
        event_records: r#"[{"purpose":"spf","status":"missing"}]"#.to_owned(),
        is_good,
        keys: keys.unwrap_or_default(),
        has_return_path: None,
        has_track_alias: None,
        has_track_host: None,
        next_check_at: domain.next_check_at.plus(Duration::from_hours(6)),
    }
}

async fn record(fixture: &Fixture, check: DomainCheck) -> Domain {
    let id = check.id;
    fixture.store.record_domain_check(check).await.expect("it is there");
    by_id(fixture, id).await
}

/// Events of the server about its domains.
async fn domain_events(fixture: &Fixture, server: ServerId) -> Vec<(EventKind, Value)> {
    let events =
        fixture.store.list_events(server, postroad_model::MessageId(0)).await.expect("the store works");
    let read = |event: &postroad_store::Event| {
        (event.kind, serde_json::from_str(&event.data).expect("data is JSON"))
    };
    events.iter().map(read).collect()
}

async fn domains_are_created_found_and_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("shop.example")).await.expect("the name is free");
    assert_eq!((domain.server_name.as_deref(), domain.verified_by), (Some("Live"), None));
    assert_eq!(domain.owner(), DomainOwner::Server(fixture.server));
    assert_eq!((&domain.keys[0].selector[..], domain.keys[0].state), ("pr1", KeyState::Pending));
    assert_eq!((domain.records.as_str(), domain.checked_at), ("[]", None));
    let again = store.create_domain(fixture.new_domain("shop.example")).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    let elsewhere =
        NewDomain { owner: DomainOwner::Server(fixture.other_server), ..fixture.new_domain("shop.example") };
    let other = store.create_domain(elsewhere).await.expect("the name is free there");
    assert_eq!(find(&fixture, fixture.server, "Shop.Example").await.map(|found| found.id), Some(domain.id));
    assert_eq!(
        find(&fixture, fixture.other_server, "shop.example").await.map(|found| found.id),
        Some(other.id)
    );
    assert!(find(&fixture, fixture.server, "unknown.example").await.is_none());
    let named = store.find_domains_named(name("shop.example"), 10).await.expect("the store works");
    assert_eq!(named.iter().map(|found| found.id).collect::<Vec<_>>(), [domain.id, other.id]);

    store.delete_domain(domain.id, fixture.now()).await.expect("it is there");
    assert!(find(&fixture, fixture.server, "shop.example").await.is_none());
    assert!(matches!(store.delete_domain(domain.id, fixture.now()).await, Err(StoreError::NotFound)));
    assert_eq!(
        find(&fixture, fixture.other_server, "shop.example").await.map(|found| found.keys.len()),
        Some(1)
    );
    for owner in [DomainOwner::Server(ServerId(99)), DomainOwner::Account(AccountId(99))] {
        let nobodys = store.create_domain(NewDomain { owner, ..fixture.new_domain("x.example") }).await;
        assert!(matches!(nobodys, Err(StoreError::NotFound)), "{nobodys:?}");
    }
}

async fn a_domain_of_an_account_is_usable_by_all_its_servers_and_by_no_others(fixture: Fixture) {
    let store = &fixture.store;
    let stranger = store.create_account("Stranger".into()).await.expect("the name is free").id;
    let new = postroad_store::NewServer {
        account_id: stranger,
        name: "Foreign".into(),
        mode: postroad_model::ServerMode::Live,
        pool_id: None,
    };
    let foreign = store.create_server(new).await.expect("the name is free").id;
    let owner = DomainOwner::Account(fixture.account);
    let new = || NewDomain { owner, is_verified: true, ..fixture.new_domain("acme.example") };
    let of_account = store.create_domain(new()).await.expect("the name is free");
    assert_eq!((of_account.owner(), of_account.server_name.as_deref()), (owner, None));
    assert!(matches!(store.create_domain(new()).await, Err(StoreError::Conflict)));

    for server in [fixture.server, fixture.other_server] {
        let sending = store.find_sending_domain(server, name("acme.example")).await.expect("the store works");
        assert!(sending.is_some());
        assert_eq!(find(&fixture, server, "acme.example").await.map(|found| found.id), Some(of_account.id));
    }
    assert!(find(&fixture, foreign, "acme.example").await.is_none());
    let sending = store.find_sending_domain(foreign, name("acme.example")).await.expect("the store works");
    assert!(sending.is_none());
    let delivery = store.find_domain_delivery(foreign, name("acme.example")).await.expect("the store works");
    assert!(delivery.is_none());

    // The server's own domain goes first, even unverified: it is the one that the server's key sees and changes. But
    // until it is verified, mail uses the account's domain.
    let own = store.create_domain(fixture.new_domain("acme.example")).await.expect("another owner");
    assert_eq!(find(&fixture, fixture.server, "acme.example").await.map(|found| found.id), Some(own.id));
    let sending = store.find_sending_domain(fixture.server, name("acme.example")).await;
    assert!(sending.expect("the store works").is_some());
    let delivery = store.find_domain_delivery(fixture.server, name("acme.example")).await;
    assert!(delivery.expect("the store works").is_some());
    let usable = async |server| {
        let found = store
            .list_domains(DomainScope::UsableBy(server).into(), None, 10)
            .await
            .expect("the store works");
        found.iter().map(|found| found.id).collect::<Vec<_>>()
    };
    assert_eq!(usable(fixture.server).await, [own.id]);
    assert_eq!(usable(fixture.other_server).await, [of_account.id]);
    assert_eq!(usable(foreign).await, []);
    let owned = async |owner, text: &str| {
        let owned = store.read_owner_domains(owner, name(text), 5).await.expect("the store works");
        (owned.account_id == fixture.account, owned.count, owned.has_name)
    };
    assert_eq!(owned(owner, "acme.example").await, (true, 1, true));
    assert_eq!(owned(DomainOwner::Server(fixture.server), "acme.example").await, (true, 1, true));
    assert_eq!(owned(DomainOwner::Server(fixture.server), "other.example").await, (true, 1, false));
    assert_eq!(owned(DomainOwner::Server(foreign), "acme.example").await, (false, 0, false));
    let nobody = store.read_owner_domains(DomainOwner::Server(ServerId(99)), name("x.example"), 5).await;
    assert!(matches!(nobody, Err(StoreError::NotFound)));
}

async fn domains_are_listed_in_pages(fixture: Fixture) {
    let store = &fixture.store;
    let mut ids = Vec::new();
    for number in 0..5 {
        let new = fixture.new_domain(&format!("d{number}.example"));
        ids.push(store.create_domain(new).await.expect("the name is free").id);
    }
    let filter = DomainFilter::from(DomainScope::UsableBy(fixture.server));
    let page = async |after, limit| {
        let found = store.list_domains(filter.clone(), after, limit).await.expect("the store works");
        assert!(found.iter().all(|found| found.keys.len() == 1));
        found.iter().map(|found| found.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2).await, ids[..2]);
    assert_eq!(page(Some(ids[1]), 10).await, ids[2..]);
    let all = store.list_domains(DomainScope::All.into(), Some(ids[3]), 10).await.expect("the store works");
    assert_eq!(all.len(), 1);
    let of_account = DomainFilter::from(DomainScope::OfAccount(fixture.account));
    assert!(store.list_domains(of_account, None, 10).await.expect("the store works").is_empty());
}

async fn a_good_check_verifies_the_domain_and_adds_an_event(fixture: Fixture) {
    let owner = DomainOwner::Account(fixture.account);
    let new = NewDomain { owner, ..fixture.new_domain("acme.example") };
    let domain = fixture.store.create_domain(new).await.expect("the name is free");
    let missing = record(&fixture, check(&domain, Some(false))).await;
    assert_eq!((missing.verified_by, missing.failing_since), (None, None), "it was never good");
    assert_eq!(
        (missing.checked_at, missing.records.as_str()),
        (Some(fixture.now()), r#"[{"purpose":"spf"}]"#)
    );
    assert_eq!(domain_events(&fixture, fixture.server).await, []);

    let verified = record(&fixture, check(&missing, Some(true))).await;
    assert_eq!((verified.verified_by, verified.verified_at), (Some(VerifiedBy::Dns), Some(fixture.now())));
    assert_eq!(verified.keys[0].state, KeyState::Active);
    record(&fixture, check(&verified, Some(true))).await;
    let data = json!({ "domain": { "name": "acme.example" }, "verified_at": "2026-11-15T00:00:00Z" });
    for server in [fixture.server, fixture.other_server] {
        assert_eq!(domain_events(&fixture, server).await, [(EventKind::DomainVerified, data.clone())]);
    }
}

async fn the_event_of_an_account_with_many_servers_is_written_in_steps(fixture: Fixture) {
    for number in 0..248 {
        create_server(&fixture.store, fixture.account, &format!("S{number}")).await;
    }
    let owner = DomainOwner::Account(fixture.account);
    let new = NewDomain { owner, ..fixture.new_domain("acme.example") };
    let domain = fixture.store.create_domain(new).await.expect("the name is free");
    let events = async |kind: &str| {
        let text = format!("SELECT count(DISTINCT server_id) FROM events WHERE kind = '{kind}'");
        let all = format!("SELECT count(*) FROM events WHERE kind = '{kind}'");
        (fixture.query_int(&text).await, fixture.query_int(&all).await)
    };
    let domain = record(&fixture, check(&domain, Some(true))).await;
    assert_eq!(events("domain.verified").await, (200, 200), "accepts do not wait for all");
    // The next event follows the first one at every server.
    record(&fixture, check(&domain, Some(false))).await;
    fixture.store.write_domain_events().await.expect("the store works");
    assert_eq!(events("domain.verified").await, (250, 250));
    assert_eq!(events("domain.failing").await, (250, 250));
    let wrong_order = "SELECT count(*) FROM events WHERE (kind = 'domain.verified') <> (seq = 1)";
    assert_eq!(fixture.query_int(wrong_order).await, 0);
    assert_eq!(fixture.query_int("SELECT count(*) FROM domains WHERE untold IS NOT NULL").await, 0);
}

async fn readers_of_events_learn_at_once_that_a_domain_fails(fixture: Fixture) {
    let domain = fixture.store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let domain = record(&fixture, check(&domain, Some(true))).await;
    let mut notices = fixture.store.server_event_notices(fixture.server);
    notices.mark_unchanged();
    // The check has no results for keys, so it does not affect sending yet.
    record(&fixture, DomainCheck { keys: Vec::new(), ..check(&domain, Some(false)) }).await;
    assert_eq!(domain_events(&fixture, fixture.server).await[1].0, EventKind::DomainFailing);
    assert!(notices.has_changed().expect("the store is open"));
}

async fn records_that_fail_stop_sending_after_72_hours(fixture: Fixture) {
    let domain = fixture.store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let sends = async || {
        let found = fixture.store.find_sending_domain(fixture.server, name("acme.example")).await;
        found.expect("the store works").is_some()
    };
    let domain = record(&fixture, check(&domain, Some(true))).await;
    fixture.clock.advance(Duration::from_hours(1));
    let domain = record(&fixture, check(&domain, Some(false))).await;
    assert_eq!(domain.failing_since, Some(fixture.now()));
    assert!(sends().await, "one failing check stops nothing");
    fixture.clock.advance(Duration::from_hours(71));
    let domain = record(&fixture, check(&domain, Some(false))).await;
    assert!(sends().await);
    fixture.clock.advance(Duration::from_hours(1));
    let domain = record(&fixture, check(&domain, Some(false))).await;
    assert!(!sends().await && domain.verified_at.is_none());
    let events = domain_events(&fixture, fixture.server).await;
    let failing = json!({
        "domain": { "name": "acme.example" },
        "failing_since": "2026-11-15T01:00:00Z",
        "sending_stops_at": "2026-11-18T01:00:00Z",
        "checked_at": "2026-11-15T01:00:00Z",
        "records": [{ "purpose": "spf", "status": "missing" }],
        "server": { "id": fixture.server.0, "name": "Live", "account": "Acme" },
    });
    assert_eq!(events[1..], [(EventKind::DomainFailing, failing)]);
    let domain = record(&fixture, check(&domain, Some(true))).await;
    assert!(sends().await && domain.failing_since.is_none());
    assert_eq!(domain_events(&fixture, fixture.server).await[2].0, EventKind::DomainVerified);
}

async fn a_check_without_a_verdict_changes_only_its_own_time(fixture: Fixture) {
    let domain = fixture.store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let new = record(&fixture, check(&domain, None)).await;
    assert_eq!((new.checked_at, new.verified_by), (Some(fixture.now()), None));
    let good = DomainCheck {
        has_return_path: Some(true),
        has_track_alias: Some(true),
        has_track_host: Some(true),
        ..check(&new, Some(true))
    };
    let good = record(&fixture, good).await;
    fixture.clock.advance(Duration::from_hours(1_000));
    let after = record(&fixture, check(&good, None)).await;
    assert_eq!(after.checked_at, Some(fixture.now()));
    assert_eq!(
        (after.verified_by, after.good_since, after.failing_since, after.return_path, after.track_host),
        (good.verified_by, good.good_since, None, good.return_path, good.track_host)
    );
    assert_eq!(after.keys, good.keys);
    assert_eq!(domain_events(&fixture, fixture.server).await.len(), 1);
}

async fn verification_by_the_operator_is_independent_of_the_checks(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    store.set_domain_verified(domain.id, Some(fixture.now()), fixture.now()).await.expect("it is there");
    let verified = by_id(&fixture, domain.id).await;
    assert_eq!(
        (verified.verified_by, verified.keys[0].state),
        (Some(VerifiedBy::Operator), KeyState::Active)
    );
    let failing = record(&fixture, check(&verified, Some(false))).await;
    assert_eq!(failing.verified_by, Some(VerifiedBy::Operator));
    fixture.clock.advance(Duration::from_hours(100));
    let good = record(&fixture, check(&failing, Some(true))).await;
    assert_eq!(good.verified_by, Some(VerifiedBy::Operator), "the operator's verification is shown");
    store.set_domain_verified(domain.id, None, fixture.now()).await.expect("it is there");
    let withdrawn = by_id(&fixture, domain.id).await;
    assert_eq!((withdrawn.verified_by, withdrawn.verified_at), (Some(VerifiedBy::Dns), Some(fixture.now())));
}

/// Selectors of the keys that sign for the domain; `None` if it is not verified.
async fn signers(fixture: &Fixture, text: &str) -> Option<Vec<String>> {
    let found =
        fixture.store.find_domain_delivery(fixture.server, name(text)).await.expect("the store works");
    found.map(|found| found.keys.into_iter().map(|key| key.selector).collect())
}

async fn a_rotated_key_signs_once_its_record_is_found(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let domain = record(&fixture, check(&domain, Some(true))).await;
    let old = domain.keys[0].id;
    let rotate = async |selector: &str| {
        store.rotate_domain_key(domain.id, new_key(selector, KeyAlgorithm::Rsa), fixture.in_secs(60)).await
    };
    rotate("pr2").await.expect("the selector is free");
    rotate("pr3").await.expect("a pending key is replaced");
    let again = rotate("pr1").await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    let rotated = by_id(&fixture, domain.id).await;
    let states =
        |domain: &Domain| domain.keys.iter().map(|key| (key.selector.clone(), key.state)).collect::<Vec<_>>();
    let of = |selector: &str, state| (selector.to_owned(), state);
    assert_eq!(states(&rotated), [of("pr1", KeyState::Active), of("pr3", KeyState::Pending)]);
    assert_eq!(rotated.next_check_at, fixture.in_secs(60));
    assert_eq!(signers(&fixture, "acme.example").await, Some(vec!["pr1".to_owned()]));

    let only_old =
        DomainCheck { keys: vec![(old, true), (rotated.keys[1].id, false)], ..check(&rotated, Some(true)) };
    assert_eq!(states(&record(&fixture, only_old).await), states(&rotated));
    let both = record(&fixture, check(&rotated, Some(true))).await;
    assert_eq!(states(&both), [of("pr1", KeyState::Retiring), of("pr3", KeyState::Active)]);
    assert_eq!(signers(&fixture, "acme.example").await, Some(vec!["pr3".to_owned()]));
    fixture.clock.advance(Duration::from_hours(7 * 24 - 1));
    assert_eq!(record(&fixture, check(&both, Some(true))).await.keys.len(), 2);
    fixture.clock.advance(Duration::from_hours(1));
    assert_eq!(states(&record(&fixture, check(&both, None)).await), [of("pr3", KeyState::Active)]);
}

async fn a_key_whose_record_is_gone_signs_for_72_hours_more(fixture: Fixture) {
    let domain = fixture.store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let verified = fixture.store.set_domain_verified(domain.id, Some(fixture.now()), fixture.now()).await;
    verified.expect("it is there");
    let domain = record(&fixture, check(&by_id(&fixture, domain.id).await, Some(true))).await;
    let domain = record(&fixture, check(&domain, Some(false))).await;
    let gone_at = fixture.now();
    assert_eq!(domain.keys[0].fails_since, Some(gone_at));
    let own = Some(vec!["pr1".to_owned()]);
    assert_eq!(signers(&fixture, "acme.example").await, own, "one bad answer changes nothing");
    fixture.clock.advance(Duration::from_hours(71));
    let domain = record(&fixture, check(&domain, Some(false))).await;
    assert_eq!(
        (domain.keys[0].fails_since, signers(&fixture, "acme.example").await),
        (Some(gone_at), own.clone())
    );
    fixture.clock.advance(Duration::from_hours(1));
    assert_eq!(signers(&fixture, "acme.example").await, Some(Vec::new()));
    record(&fixture, check(&domain, Some(true))).await;
    assert_eq!(signers(&fixture, "acme.example").await, own);
}

async fn an_earlier_check_does_not_overwrite_the_result_of_a_later_one(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let slow = DomainCheck { begun_at: fixture.now(), ..check(&domain, Some(false)) };
    fixture.clock.advance(Duration::from_secs(20));
    let quick = DomainCheck { begun_at: fixture.now(), ..check(&domain, Some(true)) };
    let good = record(&fixture, quick).await;
    fixture.clock.advance(Duration::from_secs(5));
    let after = record(&fixture, slow).await;
    assert_eq!((after.verified_by, after.failing_since), (Some(VerifiedBy::Dns), None));
    assert_eq!((after.checked_at, after.next_check_at), (good.checked_at, good.next_check_at));
    assert_eq!(domain_events(&fixture, fixture.server).await.len(), 1);
    // After the clock was set back, a check that began in the future does not hide the result of one that begins now.
    let future = DomainCheck { begun_at: fixture.in_secs(3_600), ..check(&after, Some(true)) };
    record(&fixture, future).await;
    let now = DomainCheck { begun_at: fixture.now(), ..check(&after, Some(false)) };
    assert_eq!(record(&fixture, now).await.failing_since, Some(fixture.now()));
}

async fn a_key_added_during_a_check_is_checked_soon(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let running = DomainCheck { begun_at: fixture.now(), ..check(&domain, Some(true)) };
    fixture.clock.advance(Duration::from_secs(10));
    let soon = fixture.in_secs(60);
    store.rotate_domain_key(domain.id, new_key("pr2", KeyAlgorithm::Rsa), soon).await.expect("it is free");
    assert_eq!(record(&fixture, running).await.next_check_at, soon);
}

async fn verified_domain_has_its_signing_keys(fixture: Fixture) {
    let keys = vec![new_key("ed", KeyAlgorithm::Ed25519), new_key("rsa", KeyAlgorithm::Rsa)];
    let new = NewDomain { keys, ..fixture.new_domain("example.com") };
    let domain = fixture.store.create_domain(new).await.expect("the name is free");
    assert_eq!(signers(&fixture, "example.com").await, None, "it is not verified");
    fixture
        .store
        .set_domain_verified(domain.id, Some(fixture.now()), fixture.now())
        .await
        .expect("it is there");
    let found = fixture.store.find_domain_delivery(fixture.server, name("example.com")).await;
    let found = found.expect("the store works").expect("it is verified");
    assert_eq!(found.keys[0].private_pkcs8, b"private rsa");
    assert_eq!((found.keys[1].algorithm, found.has_return_path), (KeyAlgorithm::Ed25519, false));
    assert!(!format!("{found:?}").contains("112, 114"), "no private key is printed");
    let elsewhere = fixture.store.find_domain_delivery(fixture.other_server, name("example.com")).await;
    assert!(elsewhere.expect("the store works").is_none(), "it is another server's");
}

async fn return_path_and_tracking_host_follow_their_aliases(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let aliases = |is_there: bool, domain: &Domain| DomainCheck {
        has_return_path: Some(is_there),
        has_track_alias: Some(is_there),
        has_track_host: Some(is_there),
        ..check(domain, Some(true))
    };
    let uses = async || {
        let delivery = store.find_domain_delivery(fixture.server, name("acme.example")).await;
        let sending = store.find_sending_domain(fixture.server, name("acme.example")).await;
        let sending = sending.expect("the store works").expect("it is verified");
        (delivery.expect("the store works").expect("it is verified").has_return_path, sending.has_track_host)
    };
    let domain = record(&fixture, aliases(true, &domain)).await;
    assert_eq!(uses().await, (true, false), "other nodes do not serve the host yet");
    fixture.clock.advance(Duration::from_secs(5));
    assert_eq!(uses().await, (true, true));
    for minutes in [0, 1, 28] {
        fixture.clock.advance(Duration::from_mins(minutes));
        record(&fixture, aliases(false, &domain)).await;
        assert_eq!(uses().await, (true, true), "a bad answer now and then changes nothing");
    }
    fixture.clock.advance(Duration::from_mins(1));
    record(&fixture, aliases(false, &domain)).await;
    assert_eq!(uses().await, (false, false));
    let hosts = store.list_tracking_hosts().await.expect("the store works");
    assert_eq!(hosts, ["track.acme.example"], "earlier links still lead here");
}

async fn tracking_hosts_are_served_for_verified_domains_and_for_a_while_after_deletion(fixture: Fixture) {
    let store = &fixture.store;
    let hosts = async || store.list_tracking_hosts().await.expect("the store works");
    let version = async || store.tracking_hosts_version().await.expect("the store works");
    let domain = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new");
    let alias = |domain: &Domain, is_good| DomainCheck {
        has_track_alias: Some(true),
        ..check(domain, Some(is_good))
    };
    let domain = record(&fixture, alias(&domain, false)).await;
    let own = DomainTracking { host: Some("links.acme.example".into()), ..DomainTracking::default() };
    store.set_domain_tracking(domain.id, own, fixture.in_secs(60)).await.expect("it is there");
    assert!(hosts().await.is_empty(), "anybody can point a name here");
    let unverified = version().await;
    let domain = record(&fixture, alias(&domain, true)).await;
    let both = ["links.acme.example".to_owned(), "track.acme.example".to_owned()];
    assert_eq!(hosts().await, both);
    assert_ne!(version().await, unverified, "nodes read the names again");

    store
        .set_domain_tracking(domain.id, DomainTracking::default(), fixture.in_secs(60))
        .await
        .expect("it is there");
    assert_eq!(hosts().await, both, "links with the earlier name work");
    store.delete_domain(domain.id, fixture.in_secs(120)).await.expect("it is there");
    assert_eq!(hosts().await, both);
    fixture.clock.advance(Duration::from_mins(1));
    assert_eq!(hosts().await, both[1..]);
    fixture.clock.advance(Duration::from_mins(1));
    assert!(hosts().await.is_empty());
}

async fn sources_of_a_server_an_account_and_all_servers_are_listed(fixture: Fixture) {
    let store = &fixture.store;
    let addresses = async |of| {
        let senders = store.list_sources_of(of).await.expect("the store works");
        let sources = senders.sources.iter().map(|source| source.address.to_string()).collect::<Vec<_>>();
        (sources.join(" "), senders.uses_system_address)
    };
    let (server, other) = (SourceScope::Server(fixture.server), SourceScope::Server(fixture.other_server));
    assert_eq!(addresses(server).await, (String::new(), true));
    let pool = async |pool: &str, shared, address: &str| {
        let id = store.create_pool(pool.into(), shared).await.expect("the name is free").id;
        let source = NewSource {
            pool_id: id,
            address: address.parse().expect("an address"),
            helo: name("out.example"),
            weight: 1,
            warmup_started_at: None,
        };
        store.add_source(source).await.expect("it is new");
        id
    };
    let own = pool("own", false, "192.0.2.1").await;
    pool("foreign", false, "192.0.2.9").await;
    by_operator::set_pool(store, fixture.server, Some(own)).await.expect("it is there");
    assert_eq!(addresses(server).await, ("192.0.2.1".to_owned(), false));
    assert_eq!(addresses(other).await, (String::new(), true));
    assert_eq!(addresses(SourceScope::Account(fixture.account)).await, ("192.0.2.1".to_owned(), true));
    pool("shared", true, "192.0.2.2").await;
    assert_eq!(addresses(server).await, ("192.0.2.1 192.0.2.2".to_owned(), false));
    assert_eq!(addresses(other).await, ("192.0.2.2".to_owned(), false));
    assert_eq!(addresses(SourceScope::All).await, ("192.0.2.1 192.0.2.2".to_owned(), false));
}

type Claimed = Result<Vec<(DomainId, AccountId)>, StoreError>;

async fn claim(store: &Store, limit: usize) -> Claimed {
    store.claim_due_domain_checks(limit, HashMap::new()).await
}

async fn claim_all(store: &Store) -> usize {
    let mut count = 0;
    loop {
        match claim(store, 50).await.expect("the store works").len() {
            0 => return count,
            claimed => count += claimed,
        }
    }
}

async fn a_domain_is_checked_by_one_node_only(fixture: Fixture) {
    for number in 0..20 {
        let new = fixture.new_domain(&format!("d{number}.example"));
        fixture.store.create_domain(new).await.expect("it is new");
    }
    // SQLite has only one node, so two calls of that node compete.
    let second = match &fixture.engine_files {
        EngineFiles::Sqlite(_) => fixture.store.clone(),
        EngineFiles::Postgres(_) => {
            open(fixture.engine_files.database(), "another node", &fixture.clock).await.expect("it opens")
        }
    };
    let mut claimed = Vec::new();
    loop {
        let (one, two) = tokio::join!(claim(&fixture.store, 3), claim(&second, 3));
        let (one, two) = (one.expect("the store works"), two.expect("the store works"));
        let count = one.len() + two.len();
        claimed.extend(one.into_iter().chain(two));
        if count == 0 {
            break;
        }
    }
    assert_eq!(claimed.len(), 20);
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), 20);
    // Checks that a dead node claimed are due again later.
    fixture.clock.advance(Duration::from_mins(10));
    assert_eq!(claim_all(&second).await, 20);
}

async fn due_checks_are_claimed_from_each_account_in_rounds(fixture: Fixture) {
    let store = &fixture.store;
    for number in 0..30 {
        let new = fixture.new_domain(&format!("d{number}.example"));
        store.create_domain(new).await.expect("it is new");
    }
    fixture.clock.advance(Duration::from_secs(10));
    let small = store.create_account("Small".into()).await.expect("the name is free").id;
    let new = NewDomain { owner: DomainOwner::Account(small), ..fixture.new_domain("small.example") };
    let late = store.create_domain(new).await.expect("it is new").id;
    let first = claim(store, 2).await.expect("the store works");
    assert!(first.iter().any(|(id, _)| *id == late), "{first:?}");
    let account = first.iter().map(|(_, account)| *account).find(|account| *account != small).expect("two");
    // An account with five unfinished checks gets no more.
    let busy = HashMap::from([(account, 5)]);
    assert_eq!(store.claim_due_domain_checks(50, busy).await.expect("the store works"), []);
    assert_eq!(claim(store, 50).await.expect("the store works").len(), 5);
}

async fn checks_by_hand_are_limited_in_frequency(fixture: Fixture) {
    let store = &fixture.store;
    let id = store.create_domain(fixture.new_domain("acme.example")).await.expect("it is new").id;
    let claim =
        async || store.claim_domain_check(id, Duration::from_secs(10)).await.expect("the store works");
    assert!(claim().await);
    assert!(!claim().await);
    fixture.clock.advance(Duration::from_secs(10));
    assert!(claim().await);
    let unknown = store.claim_domain_check(DomainId(99), Duration::ZERO).await.expect("the store works");
    assert!(!unknown);
}

async fn domains_of_an_earlier_version_stay_verified_and_keep_their_keys(fixture: Fixture) {
    let server = fixture.server.0;
    let is_sqlite = matches!(fixture.engine_files, EngineFiles::Sqlite(_));
    undo_setup_changes(&fixture).await;
    fixture.execute(UNDO_SEARCH).await;
    fixture.execute(UNDO_BATCHES).await;
    fixture.execute("DROP TABLE template_versions; DROP TABLE templates").await;
    fixture.execute(UNDO_ATTEMPT_DIMENSIONS).await;
    fixture.execute(UNDO_DELIVERY_POLICY).await;
    fixture.execute(UNDO_ACCOUNTS).await;
    fixture.execute(if is_sqlite { DOMAINS_V19_SQLITE } else { DOMAINS_V19_POSTGRES }).await;
    let blob = |hex: &str| if is_sqlite { format!("x'{hex}'") } else { format!("'\\x{hex}'") };
    let insert = format!(
        "INSERT INTO domains (server_id, name, verified_at, dkim_selector, dkim_private_key, dkim_public_key, created_at,
            updated_at, dkim_ed25519_selector, dkim_ed25519_private_key, dkim_ed25519_public_key, track_host)
         VALUES ({server}, 'old.example', 7, 'one', {a}, {b}, 5, 6, 'two', {c}, {d}, 'track.old.example'),
                ({server}, 'new.example', NULL, 'three', {a}, {b}, 5, 6, NULL, NULL, NULL, NULL)",
        a = blob("01"),
        b = blob("02"),
        c = blob("03"),
        d = blob("04"),
    );
    fixture.execute(&insert).await;
    let back =
        if is_sqlite { "PRAGMA user_version = 19" } else { "DELETE FROM schema_version WHERE version > 19" };
    fixture.execute(back).await;
    let fixture = fixture.reopen().await;
    let old = find(&fixture, fixture.server, "old.example").await.expect("it is kept");
    assert_eq!((old.verified_by, old.account_id), (Some(VerifiedBy::Operator), fixture.account));
    assert_eq!(old.tracking.host.as_deref(), Some("track.old.example"));
    assert!(old.keys.iter().all(|key| key.state == KeyState::Active));
    assert_eq!(signers(&fixture, "old.example").await, Some(vec!["one".to_owned(), "two".to_owned()]));
    let new = find(&fixture, fixture.server, "new.example").await.expect("it is kept");
    assert_eq!((new.verified_by, new.keys.len(), new.keys[0].id > DomainKeyId(0)), (None, 1, true));
    // The first checks of migrated domains are spread over the next hours.
    let now = fixture.now();
    for domain in [&old, &new] {
        assert!(
            (now..now.plus(Duration::from_hours(6))).contains(&domain.next_check_at),
            "by the service's clock"
        );
    }
    assert_ne!(old.next_check_at, new.next_check_at);
}
