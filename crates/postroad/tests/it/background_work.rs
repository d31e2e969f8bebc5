//! Background work: a failing step does not keep the other steps from running. Keys of earlier starts of `postroad dev`
//! are revoked even after a thousand starts.

use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use postroad_model::{Clock as _, DomainName, Limits, MessageId, Status, SystemClock};
use postroad_store::{AccountKeyFilter, AccountKeyOwner};
use postroad_testkit::{ManualClock, damage, eventually};
use serde_json::json;

use crate::world::{Engine, SEND, World, good, good_but};

const DAY: Duration = Duration::from_hours(24);

/// Waits until analytics count one sent message.
async fn until_counted(world: &World) {
    let now = SystemClock.now();
    let (from, to) = (now.minus(DAY), now.plus(DAY));
    let range = json!({"from": from.to_rfc3339(), "to": to.to_rfc3339()});
    eventually(async || {
        let counted = world.call("/api/v1/analytics/summary", &range).await;
        if counted["data"]["sent"] == 1 { Ok(()) } else { Err(counted) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_step_of_housekeeping_does_not_keep_the_other_steps_from_running() {
    let mut world = World::start(Engine::Sqlite);
    let sent = world.accepted_id(&good_but(json!({"idempotency_key": "once"}))).await;
    world.until_status(sent, "Sent").await;
    until_counted(&world).await;
    let (_, holding) = world.new_key(&["--hold"]);
    let held = world.call_as(&holding, SEND, &good()).await["data"]["messages"]["someone@example.com"].take();
    let held = MessageId(held["id"].as_i64().expect("an id"));

    let clock = ManualClock::at(SystemClock.now());
    let store = world.stopped_store_at(clock.clone()).await;
    for table in ["idempotency_keys", "deliveries"] {
        world.execute(&format!(
            "CREATE TRIGGER damaged_{table} BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'damaged'); END"
        ));
    }
    let servers = store.list_servers().await.unwrap();
    let server = servers.iter().find(|server| server.name == "dev").unwrap().id;
    for credential in store.list_credentials(Some(server)).await.unwrap() {
        store.revoke_credential(credential.id).await.unwrap();
    }
    let host = DomainName::parse("mail.example.test").unwrap();
    let app = App::new(store.clone(), Arc::new(clock.clone()), Limits::default(), host);
    clock.advance(8 * DAY);
    let failed = app.run_housekeeping().await.unwrap_err();
    assert_eq!(failed.steps, ["idempotency keys"], "{failed}");
    let status = store.find_message(server, held).await.unwrap().unwrap().status;
    assert_eq!(status, Status::HoldCancelled, "its hold is over");

    clock.advance(92 * DAY);
    let failed = app.remove_expired_data().await.unwrap_err();
    assert_eq!(failed.steps, ["deliveries"], "{failed}");
    assert_eq!(
        store.list_credentials(Some(server)).await.unwrap().len(),
        0,
        "credentials revoked long ago are removed"
    );
    let message = store.find_message(server, MessageId(sent)).await.unwrap();
    assert!(message.is_some(), "a message stays as long as its deliveries");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_earlier_dev_starts_are_revoked_even_after_a_thousand_starts() {
    let mut world = World::start(Engine::Sqlite);
    let store = world.stopped_store_at(SystemClock).await;
    world.execute(damage::ADD_REVOKED_KEYS);
    let host = DomainName::parse("mail.example.test").unwrap();
    let app = App::new(store.clone(), Arc::new(SystemClock), Limits::default(), host);
    app.dev_setup().await.unwrap();
    let newest = app.dev_setup().await.unwrap().key_ids.operator_key;
    let valid = AccountKeyFilter { name: Some("dev".to_owned()), revoked: Some(false) };
    let valid = store.list_account_keys(AccountKeyOwner::Operator, valid, None, 10).await.unwrap();
    let valid: Vec<_> = valid.iter().map(|key| key.id).collect();
    assert_eq!(valid, [newest]);
}
