//! Test mode: messages are validated, stored and marked as tests, but never queued.

use serde_json::json;

use crate::errors::assert_invalid;
use crate::world::{SEND, World, both_engines, good, good_but};

both_engines!(
    a_test_message_is_stored_marked_and_never_queued,
    a_test_key_means_test_mode,
    a_raw_message_can_be_a_test_too,
    test_mode_validates_as_real_mode_does
);

async fn a_test_message_is_stored_marked_and_never_queued(world: World) {
    for value in ["true", "TRUE", "1", "yes", "on"] {
        let answer = world.call_with(SEND, &[("X-Test-Mode", value)], &good()).await;
        assert_eq!(answer["status"], "success");
        assert_eq!(answer["flags"], json!({"test_mode": true}));
        let id = answer["data"]["messages"]["someone@example.com"]["id"].as_i64().unwrap();
        let message = world.expanded(id).await;
        assert_eq!(message["details"]["test"], true);
        assert_eq!(message["status"]["status"], "Sent");
        assert_eq!(message["status"]["next_attempt"], json!(null), "it has a queue entry");
        let deliveries = world.deliveries(id).await;
        assert_eq!(deliveries.as_array().unwrap().len(), 1);
        assert_eq!(deliveries[0]["status"], "Sent");
        assert_eq!(deliveries[0]["details"], "Test mode: validated, not delivered");
        assert_eq!(deliveries[0]["sent_with_ssl"], false);
    }
    let real = world.call_with(SEND, &[("X-Test-Mode", "false")], &good()).await;
    assert_eq!(real["flags"], json!({}));
    for value in ["enabled", "", "2"] {
        let answer = world.call_with(SEND, &[("X-Test-Mode", value)], &good()).await;
        assert_invalid(&answer, &[("", "The header X-Test-Mode must be true or false")]);
    }
}

async fn a_test_key_means_test_mode(world: World) {
    let (_, key) = world.new_key(&["--test"]);
    let answer = world.call_as(&key, SEND, &good()).await;
    assert_eq!(answer["flags"], json!({"test_mode": true}));
    let id = answer["data"]["messages"]["someone@example.com"]["id"].as_i64().unwrap();
    assert_eq!(world.expanded(id).await["details"]["test"], true);
}

async fn a_raw_message_can_be_a_test_too(world: World) {
    let data =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "From: a@example.test\r\n\r\nhi");
    let body = json!({"mail_from": "a@example.test", "rcpt_to": ["b@example.com"], "data": data});
    let answer = world.call_with(crate::world::RAW, &[("X-Test-Mode", "true")], &body).await;
    assert_eq!(answer["flags"], json!({"test_mode": true}));
    let id = answer["data"]["messages"]["b@example.com"]["id"].as_i64().unwrap();
    assert_eq!(world.expanded(id).await["status"]["status"], "Sent");
}

async fn test_mode_validates_as_real_mode_does(world: World) {
    let body = good_but(json!({"from": "a@other.test"}));
    let answer = world.call_with(SEND, &[("X-Test-Mode", "true")], &body).await;
    assert_eq!(answer["data"]["code"], "UnauthenticatedFromAddress");
}
