//! Limits on the number of keys: of valid credentials of one server, and of rows that a command lists.

use futures_util::{StreamExt as _, stream};
use postroad_model::{AccountId, Clock as _, Scope, ServerId, SystemClock, Timestamp};
use postroad_store::{KeyHash, NewAccountKey, NewCredential, Store};
use serde_json::json;

use crate::accounts::{ACCOUNT, call, call_ok, create_customer};
use crate::world::{Engine, World, both_engines};

/// Maximum number of valid credentials of one server.
const CREDENTIALS_MAX: usize = 1_000;
/// Maximum number of rows that a command shows.
const LISTED_MAX: usize = 10_000;

both_engines!(a_server_has_at_most_a_thousand_valid_credentials);

/// A hash that no other number or kind of key has.
fn hash(number: usize, kind: u8) -> KeyHash {
    let mut hash = [kind; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    KeyHash(hash)
}

/// Adds credentials directly to the store, because the HTTP API would take long.
pub(crate) async fn add_credentials(
    store: &Store,
    server_id: ServerId,
    count: usize,
    expires_at: Option<Timestamp>,
) {
    let new = |number: usize| NewCredential {
        server_id,
        name: format!("key {number}"),
        key_hash: hash(number, if expires_at.is_some() { 1 } else { 2 }),
        secret_hash: hash(number, 3),
        scope: Scope::Send,
        allow: Vec::new(),
        hold: false,
        test: false,
        expires_at,
    };
    let adding = stream::iter(0..count).map(|number| store.create_credential(new(number)));
    let mut adding = adding.buffer_unordered(100);
    while let Some(added) = adding.next().await {
        added.expect("the keys are new");
    }
}

async fn a_server_has_at_most_a_thousand_valid_credentials(world: World) {
    let mut world = world;
    let one = create_customer(&world, "one").await;
    let server = ServerId(one.servers[0].as_i64().unwrap());
    let store = world.stopped_store().await;
    // The server has one already, and gets the last one below.
    add_credentials(&store, server, CREDENTIALS_MAX - 2, None).await;
    add_credentials(&store, server, 10, Some(SystemClock.now())).await;
    drop(store);
    world.restart();
    let account_key = (ACCOUNT, one.key.as_str());
    let new = json!({"server": server, "name": "one more"});
    let last = call_ok(&world, account_key, "credentials/create", &new).await;
    let refused = call(&world, account_key, "credentials/create", &new).await;
    assert_eq!(
        (&refused["status"], &refused["data"]["code"]),
        (&json!("parameter-error"), &json!("ValidationError"))
    );
    let problem = &refused["data"]["errors"][0];
    assert_eq!(problem["pointer"], "/server", "{refused}");
    assert!(problem["message"].as_str().unwrap().contains("1,000 credentials, the maximum"), "{refused}");
    let (success, _, error) = world.admin_output(&["key", "create", "--server", "one/shop"]);
    assert!(!success && error.contains("1,000 credentials, the maximum"), "{error}");
    // The other server has room, and so has this one after a key is revoked.
    call_ok(&world, account_key, "credentials/create", &json!({"server": one.servers[1], "name": "other"}))
        .await;
    call_ok(&world, account_key, "credentials/revoke", &json!({ "id": last["id"] })).await;
    call_ok(&world, account_key, "credentials/create", &new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_too_long_for_a_command_is_refused_and_the_paged_endpoint_is_named() {
    let mut world = World::start(Engine::Sqlite);
    let one = create_customer(&world, "one").await;
    let account_id = AccountId(one.id.as_i64().unwrap());
    let store = world.stopped_store().await;
    let new = |number: usize| NewAccountKey {
        account_id: Some(account_id),
        name: format!("key {number}"),
        key_hash: hash(number, 3),
        scopes: Vec::new(),
        allow: Vec::new(),
        expires_at: None,
    };
    // The account has one key already.
    let adding = stream::iter(1..LISTED_MAX).map(|number| store.create_account_key(new(number)));
    let mut adding = adding.buffer_unordered(100);
    while let Some(added) = adding.next().await {
        added.expect("the keys are new");
    }
    drop(adding);
    drop(store);
    world.restart();
    let list = ["account-key", "list", "--account", "one"];
    assert_eq!(world.admin(&list).as_array().unwrap().len(), LISTED_MAX);
    call_ok(&world, (ACCOUNT, one.key.as_str()), "account_keys/create", &json!({"name": "one more"})).await;
    let (success, out, error) = world.admin_output(&list);
    let expected = "there are more than 10000 keys: `postroad api account_keys/list` lists them in pages";
    assert!(!success && out.is_empty() && error.contains(expected), "{error}");
}
