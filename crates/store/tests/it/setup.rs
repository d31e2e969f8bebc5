//! Accounts, servers, credentials and settings.

use std::time::Duration;

use postroad_model::{AccountId, CredentialId, DomainId, Scope, ServerId, ServerMode};
use postroad_store::{
    AccountCeilingsChange, AccountFilter, CredentialFilter, KeyHash, NewCredential, NewServer, SetBy,
    StoreError, UpdateResult,
};

use crate::by_operator;
use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    accounts_are_created_listed_and_suspended,
    account_names_must_be_unique_only_if_the_operator_sets_them,
    servers_are_created_listed_suspended_and_change_mode,
    credential_is_read_back_whole,
    credentials_are_found_by_a_part_of_their_name,
    suspension_of_server_or_account_reaches_its_keys,
    rotated_credential_is_valid_until_its_grace_period_ends,
    a_login_belongs_to_one_credential_at_a_time,
    revoking_a_credential_again_keeps_the_first_time,
    time_of_last_use_never_goes_back,
    settings_are_set_replaced_and_removed,
    missing_objects_are_not_found,
    a_deleted_server_retains_no_mail_once_it_cannot_be_restored,
    the_service_server_is_created_once_and_belongs_to_no_customer,
);

async fn the_service_server_is_created_once_and_belongs_to_no_customer(fixture: Fixture) {
    let store = &fixture.store;
    assert_eq!(store.find_service_server().await.expect("the store works"), None);
    // A customer's account and server of the same names are not used.
    let customer = store.create_account("postroad".into()).await.expect("the store works").id;
    let new =
        NewServer { account_id: customer, name: "operator".into(), mode: ServerMode::Live, pool_id: None };
    let theirs = store.create_server(new).await.expect("the store works").id;
    let made = futures_util::future::join_all((0..16).map(|_| store.find_or_create_service_server())).await;
    let mut made: Vec<ServerId> = made.into_iter().map(|id| id.expect("the store works")).collect();
    made.dedup();
    let [own] = made[..] else { panic!("made more than once: {made:?}") };
    assert_ne!(own, theirs);
    let server = store.find_server(own).await.expect("the store works").expect("it is there");
    assert_eq!((server.account_name.as_str(), server.name.as_str()), ("postroad 2", "operator"));
    assert_eq!(store.find_service_server().await.expect("the store works"), Some(own));
    // A deleted server sends nothing, so another one is created.
    store.set_server_deleted(own, Some(fixture.in_secs(60))).await.expect("the store works");
    assert_ne!(store.find_or_create_service_server().await.expect("the store works"), own);
}

async fn accounts_are_created_listed_and_suspended(fixture: Fixture) {
    let (store, begun) = (&fixture.store, fixture.now());
    let second = store.create_account("Bäckerei Müller".into()).await.expect("the store works");
    assert_eq!((second.name.as_str(), second.created_at), ("Bäckerei Müller", begun));
    assert!(matches!(store.create_account("Acme".into()).await, Err(StoreError::Conflict)));

    fixture.clock.advance(Duration::from_secs(5));
    store.set_account_suspended(second.id, Some("unpaid".into())).await.expect("the store works");
    let accounts = store.list_accounts().await.expect("the store works");
    let seen: Vec<_> =
        accounts.iter().map(|account| (account.id, account.suspended_reason.as_deref())).collect();
    assert_eq!(seen, [(fixture.account, None), (second.id, Some("unpaid"))]);
    assert_eq!((accounts[1].created_at, accounts[1].updated_at), (begun, fixture.now()));

    store.set_account_suspended(second.id, None).await.expect("the store works");
    assert_eq!(store.list_accounts().await.expect("the store works")[1].suspended_reason, None);
}

async fn account_names_must_be_unique_only_if_the_operator_sets_them(fixture: Fixture) {
    let store = &fixture.store;
    let made = futures_util::future::join_all((0..8).map(|_| store.create_account("Shop".into()))).await;
    let ids: Vec<AccountId> = made.iter().flatten().map(|account| account.id).collect();
    assert_eq!(ids.len(), 1, "{made:?}");
    assert!(made.iter().all(|made| matches!(made, Ok(_) | Err(StoreError::Conflict))), "{made:?}");
    let rename = async |by, name: &str| {
        store
            .update_account(
                by,
                fixture.account,
                None,
                Some(name.to_owned()),
                AccountCeilingsChange::default(),
            )
            .await
    };
    let taken = rename(SetBy::Operator, "Shop").await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    let own = rename(SetBy::Account, "Shop").await;
    assert!(matches!(&own, Ok(UpdateResult::Done(account)) if account.name == "Shop"), "{own:?}");
    let filter = AccountFilter { name: Some("Shop".into()), ..AccountFilter::default() };
    let found = store.list_accounts_page(filter, None, 10).await.expect("the store works");
    assert_eq!(found.iter().map(|account| account.id).collect::<Vec<_>>(), [fixture.account, ids[0]]);
    // The operator may keep the name that the account already has.
    assert!(rename(SetBy::Operator, "Shop").await.is_ok());
    assert!(matches!(store.create_account("Shop".into()).await, Err(StoreError::Conflict)));
}

async fn servers_are_created_listed_suspended_and_change_mode(fixture: Fixture) {
    let store = &fixture.store;
    let new = |account_id, name: &str| NewServer {
        account_id,
        name: name.to_owned(),
        mode: ServerMode::Development,
        pool_id: None,
    };
    let third = store.create_server(new(fixture.account, "Third")).await.expect("the store works");
    assert_eq!((third.account_name.as_str(), third.mode), ("Acme", ServerMode::Development));
    let taken = store.create_server(new(fixture.account, "Third")).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    // The same name under another account is another server.
    let other_account = store.create_account("Other".into()).await.expect("the store works").id;
    store.create_server(new(other_account, "Third")).await.expect("the store works");

    fixture.clock.advance(Duration::from_secs(1));
    by_operator::set_mode(store, third.id, ServerMode::Live).await.expect("the store works");
    store
        .set_server_suspended_by(SetBy::Operator, third.id, Some("abuse".into()))
        .await
        .expect("the store works");
    let servers = store.list_servers().await.expect("the store works");
    assert_eq!(servers.len(), 4);
    let found = servers.iter().find(|server| server.id == third.id).expect("it is listed");
    assert_eq!((found.mode, found.suspended_reason.as_deref()), (ServerMode::Live, Some("abuse")));
    assert_eq!(found.updated_at, fixture.now());
    store.set_server_suspended_by(SetBy::Operator, third.id, None).await.expect("the store works");
    let servers = store.list_servers().await.expect("the store works");
    assert!(servers.iter().all(|server| server.suspended_reason.is_none()));
}

fn new_credential(server_id: ServerId, name: &str, key: u8) -> NewCredential {
    NewCredential {
        server_id,
        name: name.to_owned(),
        key_hash: KeyHash([key; 32]),
        secret_hash: KeyHash([key ^ 0xff; 32]),
        scope: Scope::Send,
        allow: vec!["192.0.2.0/24".parse().expect("a network"), "2001:db8::/32".parse().expect("a network")],
        hold: true,
        test: false,
        expires_at: None,
    }
}

async fn credential_is_read_back_whole(fixture: Fixture) {
    let store = &fixture.store;
    let mut new = new_credential(fixture.server, "shop", 1);
    new.expires_at = Some(fixture.in_secs(60));
    let created = store.create_credential(new.clone()).await.expect("the store works");
    let id = created.id;
    let found = store.find_credential(id).await.expect("the store works").expect("it is there");
    assert_eq!(found, created);
    assert_eq!((found.id, found.server_id, found.name.as_str()), (id, fixture.server, "shop"));
    assert_eq!((found.key_hash, found.secret_hash), (new.key_hash, new.secret_hash));
    assert_eq!((found.scope, found.hold, found.test), (Scope::Send, true, false));
    assert_eq!((&found.allow, found.expires_at), (&new.allow, new.expires_at));
    assert_eq!((found.revoked_at, found.last_used_at), (None, None));
    assert_eq!(found.created_at, fixture.now());

    let same_key = store.create_credential(new_credential(fixture.other_server, "copy", 1)).await;
    assert!(matches!(same_key, Err(StoreError::Conflict)), "{same_key:?}");
    let second = store
        .create_credential(new_credential(fixture.other_server, "shop", 2))
        .await
        .expect("the store works")
        .id;
    let ids = |found: Vec<postroad_store::Credential>| found.iter().map(|found| found.id).collect::<Vec<_>>();
    assert_eq!(ids(store.list_credentials(None).await.expect("the store works")), [id, second]);
    assert_eq!(ids(store.list_credentials(Some(fixture.server)).await.expect("the store works")), [id]);

    let access =
        store.find_credential_access(KeyHash([1; 32])).await.expect("the store works").expect("it is there");
    assert_eq!((access.credential.id, access.mode), (id, ServerMode::Live));
    assert_eq!(access.credential.allow, new.allow);
    assert!(store.find_credential_access(KeyHash([9; 32])).await.expect("the store works").is_none());
}

async fn credentials_are_found_by_a_part_of_their_name(fixture: Fixture) {
    let store = &fixture.store;
    let names = ["Shop 50%_off", "shop", "billing", r"back\slash"];
    for (number, name) in names.into_iter().enumerate() {
        let new = new_credential(fixture.server, name, 1 + number as u8);
        store.create_credential(new).await.expect("the store works");
    }
    let new = new_credential(fixture.other_server, "the other shop", 9);
    store.create_credential(new).await.expect("the store works");
    let of_server = CredentialFilter { server_id: Some(fixture.server), ..CredentialFilter::default() };
    let of_account = CredentialFilter { account_id: Some(fixture.account), ..CredentialFilter::default() };
    let found = async |filter: &CredentialFilter, part: &str| {
        let filter = CredentialFilter { name_part: Some(part.to_owned()), ..filter.clone() };
        let page = store.list_credentials_page(filter, None, 10).await.expect("the store works");
        page.into_iter().map(|found| found.name).collect::<Vec<_>>()
    };
    assert_eq!(found(&of_server, "SHOP").await, ["Shop 50%_off", "shop"]);
    assert_eq!(found(&of_account, "shop").await, ["Shop 50%_off", "shop", "the other shop"]);
    assert_eq!(found(&CredentialFilter::default(), "other").await, ["the other shop"]);
    assert_eq!(found(&of_server, "%_").await, ["Shop 50%_off"]);
    assert_eq!(found(&of_server, r"\").await, [r"back\slash"]);
    for revoked in [true, false] {
        let filter = CredentialFilter { revoked: Some(revoked), ..of_server.clone() };
        let expected: &[&str] = if revoked { &[] } else { &["billing"] };
        assert_eq!(found(&filter, "bill").await, expected);
    }
}

async fn suspension_of_server_or_account_reaches_its_keys(fixture: Fixture) {
    let store = &fixture.store;
    store.create_credential(new_credential(fixture.server, "shop", 1)).await.expect("the store works");
    let reason = async || {
        store
            .find_credential_access(KeyHash([1; 32]))
            .await
            .expect("the store works")
            .expect("it is there")
            .suspended_reason
    };
    assert_eq!(reason().await, None);
    store.set_account_suspended(fixture.account, Some("unpaid".into())).await.expect("the store works");
    assert_eq!(reason().await.as_deref(), Some("unpaid"));
    store
        .set_server_suspended_by(SetBy::Operator, fixture.server, Some("abuse".into()))
        .await
        .expect("the store works");
    assert_eq!(reason().await.as_deref(), Some("abuse"));
    store.set_account_suspended(fixture.account, None).await.expect("the store works");
    store.set_server_suspended_by(SetBy::Operator, fixture.server, None).await.expect("the store works");
    assert_eq!(reason().await, None);
}

async fn rotated_credential_is_valid_until_its_grace_period_ends(fixture: Fixture) {
    let store = &fixture.store;
    let old =
        store.create_credential(new_credential(fixture.server, "shop", 1)).await.expect("the store works").id;
    let find = async |id| store.find_credential(id).await.expect("the store works").expect("it is there");
    let end = fixture.in_secs(3_600);
    let new = store
        .rotate_credential(old, end, new_credential(fixture.server, "shop", 2))
        .await
        .expect("the store works");
    assert_eq!(find(new.id).await, new);
    let new = new.id;
    assert_eq!((find(old).await.expires_at, find(old).await.replaced_by), (Some(end), Some(new)));
    assert_eq!((find(new).await.expires_at, find(new).await.replaced_by), (None, None));

    // A credential is replaced once, and a failed rotation leaves no new credential.
    let later = fixture.in_secs(7_200);
    let again = store.rotate_credential(old, later, new_credential(fixture.server, "shop", 3)).await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");
    let taken = store.rotate_credential(new, later, new_credential(fixture.server, "shop", 1)).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    assert_eq!((find(new).await.expires_at, find(new).await.replaced_by), (None, None));
    store.revoke_credential(new).await.expect("the store works");
    let revoked = store.rotate_credential(new, later, new_credential(fixture.server, "shop", 4)).await;
    assert!(matches!(revoked, Err(StoreError::NotFound)), "{revoked:?}");
    assert_eq!(store.list_credentials(None).await.expect("the store works").len(), 2);

    // An earlier expiry stays.
    let mut ending = new_credential(fixture.server, "shop", 5);
    ending.expires_at = Some(end);
    let ending = store.create_credential(ending).await.expect("the store works").id;
    store
        .rotate_credential(ending, later, new_credential(fixture.server, "shop", 6))
        .await
        .expect("the store works");
    assert_eq!(find(ending).await.expires_at, Some(end));
    // Neither the revoked credential nor expired ones count.
    let count = async |max| store.count_credentials(fixture.server, max).await.expect("the store works");
    assert_eq!((count(10).await, count(2).await), (3, 2));
    fixture.clock.advance(Duration::from_hours(1));
    assert_eq!(count(10).await, 1);
}

async fn a_login_belongs_to_one_credential_at_a_time(fixture: Fixture) {
    let store = &fixture.store;
    let new = |key| new_credential(fixture.server, "shop", key);
    let create = async |key| store.create_credential_with_login(new(key), "a@example.com".into()).await;
    let hashes = |keys: &[u8]| -> Vec<(KeyHash, KeyHash)> {
        keys.iter().map(|key| (KeyHash([*key; 32]), KeyHash([key ^ 0xff; 32]))).collect()
    };
    let find = async || store.list_hashes_of_login("a@example.com".into()).await.expect("the store works");
    assert_eq!(find().await, []);
    let first = create(1).await.expect("the store works").id;
    assert_eq!(find().await, hashes(&[1]));
    let taken = create(2).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    assert_eq!(
        store.list_credentials(None).await.expect("the store works").len(),
        1,
        "nothing is left of it"
    );
    let end = fixture.in_secs(60);
    let second = store.rotate_credential(first, end, new(3)).await.expect("the store works").id;
    assert_eq!(find().await, hashes(&[3, 1]), "the old secret too, while it is valid");
    let logins = store.list_logins().await.expect("the store works");
    assert_eq!(logins, [(second, "a@example.com".to_owned())]);
    let login_of = async |id| store.find_login_of(id).await.expect("the store works");
    assert_eq!((login_of(first).await, login_of(second).await), (None, Some("a@example.com".to_owned())));
    store.revoke_credential(second).await.expect("the store works");
    assert_eq!(find().await, []);
    create(4).await.expect("a revoked credential frees its login");
}

async fn revoking_a_credential_again_keeps_the_first_time(fixture: Fixture) {
    let store = &fixture.store;
    let id =
        store.create_credential(new_credential(fixture.server, "shop", 1)).await.expect("the store works").id;
    let first = fixture.now();
    store.revoke_credential(id).await.expect("the store works");
    fixture.clock.advance(Duration::from_secs(9));
    store.revoke_credential(id).await.expect("the store works");
    assert_eq!(
        store.find_credential(id).await.expect("the store works").expect("it is there").revoked_at,
        Some(first)
    );
    let access =
        store.find_credential_access(KeyHash([1; 32])).await.expect("the store works").expect("it is there");
    assert_eq!(access.credential.revoked_at, Some(first));
}

async fn time_of_last_use_never_goes_back(fixture: Fixture) {
    let store = &fixture.store;
    let first = store
        .create_credential(new_credential(fixture.server, "first", 1))
        .await
        .expect("the store works")
        .id;
    let second = store
        .create_credential(new_credential(fixture.server, "second", 2))
        .await
        .expect("the store works")
        .id;
    let (early, late) = (fixture.now(), fixture.in_secs(10));
    store
        .touch_credentials(vec![(second, early), (first, late), (CredentialId(999), late)])
        .await
        .expect("the store works");
    store.touch_credentials(vec![(first, early)]).await.expect("the store works");
    store.touch_credentials(Vec::new()).await.expect("the store works");
    let used = async |id| {
        store.find_credential(id).await.expect("the store works").expect("it is there").last_used_at
    };
    assert_eq!((used(first).await, used(second).await), (Some(late), Some(early)));
}

async fn settings_are_set_replaced_and_removed(fixture: Fixture) {
    let store = &fixture.store;
    assert_eq!(store.find_setting("maintenance").await.expect("the store works"), None);
    for value in ["on", "off"] {
        store.set_setting("maintenance", Some(value.into())).await.expect("the store works");
        assert_eq!(store.find_setting("maintenance").await.expect("the store works").as_deref(), Some(value));
    }
    assert_eq!(store.find_setting("another").await.expect("the store works"), None);
    store.set_setting("maintenance", None).await.expect("the store works");
    store.set_setting("maintenance", None).await.expect("the store works");
    assert_eq!(store.find_setting("maintenance").await.expect("the store works"), None);
}

async fn missing_objects_are_not_found(fixture: Fixture) {
    let store = &fixture.store;
    let unknown_account =
        NewServer { account_id: AccountId(99), name: "x".into(), mode: ServerMode::Live, pool_id: None };
    let results = [
        store.set_account_suspended(AccountId(99), None).await,
        store.set_server_suspended_by(SetBy::Operator, ServerId(99), None).await.map(drop),
        by_operator::set_mode(store, ServerId(99), ServerMode::Live).await,
        store.revoke_credential(CredentialId(99)).await,
        store.set_domain_verified(DomainId(99), None, fixture.now()).await,
        store.create_server(unknown_account).await.map(drop),
        store.create_credential(new_credential(ServerId(99), "x", 1)).await.map(drop),
        store
            .rotate_credential(CredentialId(99), fixture.now(), new_credential(fixture.server, "x", 1))
            .await
            .map(drop),
    ];
    for (number, result) in results.iter().enumerate() {
        assert!(matches!(result, Err(StoreError::NotFound)), "{number}: {result:?}");
    }
    assert!(store.find_credential(CredentialId(99)).await.expect("the store works").is_none());
    assert!(store.list_credentials(None).await.expect("the store works").is_empty());
    // A failed operation leaves the store in working order.
    store.create_account("Next".into()).await.expect("the store works");
}

async fn a_deleted_server_retains_no_mail_once_it_cannot_be_restored(fixture: Fixture) {
    let (store, id) = (&fixture.store, fixture.server);
    let week = Duration::from_hours(7 * 24);
    let deleted = store.set_server_deleted(id, Some(fixture.now().plus(week))).await.expect("it is there");
    assert!(deleted.delete_at.is_some() && deleted.version > 1);
    assert_eq!(store.end_deleted_servers(10).await.expect("the store works"), 0);
    fixture.clock.advance(week);
    assert!(store.set_server_deleted(id, None).await.is_err(), "too late");
    assert_eq!(store.end_deleted_servers(10).await.expect("the store works"), 1);
    assert_eq!(store.end_deleted_servers(10).await.expect("the store works"), 0, "once is enough");
    let server = store.find_server(id).await.expect("the store works").expect("it is there");
    assert_eq!((server.retention.bodies_days, server.retention.messages_days), (Some(0), Some(0)));
}
