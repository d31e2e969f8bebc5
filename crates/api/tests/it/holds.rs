//! Suppressed recipients and the hourly limit, as the sender sees them.

use postroad_model::{Change, SuppressionReason};
use postroad_store::{NewSuppression, ServerChange};
use serde_json::{Value, json};

use crate::service::{DELIVERIES, MESSAGE, SEND_MESSAGE, Service, message_to};

/// Sends a message to `address`; returns its id and status.
async fn send(service: &Service, address: &str) -> (Value, String) {
    let sent = service.call(SEND_MESSAGE, &message_to(address)).await;
    let id = sent["data"]["messages"][address]["id"].clone();
    let shown = service.call(MESSAGE, &json!({"id": id, "_expansions": ["status"]})).await;
    (id, shown["data"]["status"]["status"].as_str().unwrap().to_owned())
}

async fn suppress(service: &Service, address: &str) {
    let server_id = service.store.list_servers().await.unwrap()[0].id;
    let new = NewSuppression {
        address: address.to_owned(),
        reason: SuppressionReason::HardBounce,
        details: "550 5.1.1 No such user".into(),
        origin_message_id: None,
        expires_at: None,
    };
    service.store.add_suppression(server_id, new).await.unwrap();
}

#[tokio::test]
async fn a_message_to_a_suppressed_recipient_is_held_and_its_delivery_record_says_why() {
    let service = Service::start().await;
    suppress(&service, "gone@example.net").await;
    let (id, status) = send(&service, "Gone@example.net").await;
    assert_eq!(status, "Held");
    let deliveries = service.call(DELIVERIES, &json!({"id": id})).await;
    let details = deliveries["data"][0]["details"].as_str().unwrap();
    assert!(details.starts_with("The address is suppressed: hard_bounce since 20"), "{details}");
    assert!(details.ends_with(": 550 5.1.1 No such user"), "{details}");
    assert_eq!(send(&service, "other@example.net").await.1, "Pending");
}

#[tokio::test]
async fn simulator_recipients_are_exempt_from_the_hourly_limit_and_from_suppression() {
    let service = Service::start().await;
    let server_id = service.store.list_servers().await.unwrap()[0].id;
    // Set before the first call, because the setting is cached for two seconds.
    let change = ServerChange { hourly_limit: Change::Set(0), ..ServerChange::default() };
    service.store.update_server(server_id, None, change).await.unwrap();
    suppress(&service, "delivered@sim.postroad.test").await;
    let (id, status) = send(&service, "a@example.net").await;
    assert_eq!(status, "Held");
    let deliveries = service.call(DELIVERIES, &json!({"id": id})).await;
    assert_eq!(deliveries["data"][0]["details"], "The hourly limit of 0 messages is reached");
    assert_eq!(send(&service, "delivered@sim.postroad.test").await.1, "Pending");
}
