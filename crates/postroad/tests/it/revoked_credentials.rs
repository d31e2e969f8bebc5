//! Revoked credentials are removed after 90 days; the audit log keeps them.

use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use postroad_model::{Clock as _, DomainName, Limits, ServerId, SystemClock};
use postroad_testkit::ManualClock;
use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, call_ok, create_customer, error_code};
use crate::world::{World, both_engines};

/// More credentials than are removed in one step.
const REVOKED_KEYS: usize = 501;
const DAY: Duration = Duration::from_hours(24);

both_engines!(revoked_credentials_are_removed_after_90_days);

async fn revoked_credentials_are_removed_after_90_days(world: World) {
    let mut world = world;
    let one = create_customer(&world, "one").await;
    let account_key = (ACCOUNT, one.key.as_str());
    let new = json!({"server": one.servers[0], "name": "old"});
    let revoked = call_ok(&world, account_key, "credentials/create", &new).await["id"].clone();
    call_ok(&world, account_key, "credentials/revoke", &json!({ "id": revoked })).await;
    let rotated =
        call_ok(&world, account_key, "credentials/rotate", &json!({"id": one.credentials[1], "grace_s": 60}))
            .await;

    let clock = ManualClock::at(SystemClock.now());
    let store = world.stopped_store_at(clock.clone()).await;
    let server = ServerId(one.servers[0].as_i64().unwrap());
    crate::credential_numbers::add_credentials(&store, server, REVOKED_KEYS, None).await;
    let count = async || store.list_credentials(Some(server)).await.unwrap().len();
    for credential in store.list_credentials(Some(server)).await.unwrap() {
        if credential.name.starts_with("key ") {
            store.revoke_credential(credential.id).await.unwrap();
        }
    }
    let host = DomainName::parse("mail.example.test").unwrap();
    let app = App::new(store.clone(), Arc::new(clock.clone()), Limits::default(), host);
    clock.advance(89 * DAY);
    app.remove_expired_data().await.unwrap();
    // Besides them, the server has a valid credential, and the one revoked over the API.
    assert_eq!(count().await, REVOKED_KEYS + 2, "they are kept for 90 days");
    clock.advance(2 * DAY);
    app.remove_expired_data().await.unwrap();
    assert_eq!(count().await, 1);
    drop((app, store));
    world.restart();

    let items = |list: Value| -> Vec<Value> {
        list["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
    };
    let listed = items(call_ok(&world, account_key, "credentials/list", &json!({})).await);
    let mut kept = one.credentials.clone();
    kept.push(rotated["id"].clone());
    assert_eq!(listed, kept, "those that are valid or only expired stay");
    assert_eq!(
        error_code(&world, account_key, "credentials/get", &json!({ "id": revoked })).await,
        "CredentialNotFound"
    );
    let log = json!({"subject": "credential", "subject_id": revoked});
    let log = call_ok(&world, account_key, "account/audit", &log).await;
    assert_eq!(log["items"][0]["operation"], "credentials/revoke", "{log}");
    call_ok(&world, account_key, "credentials/create", &new).await;
}
