//! messages/erase while a message is being sent: the job waits until the attempt is over.

use std::time::Duration;

use postroad_testkit::eventually;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::json;

use super::erase::erase;
use crate::delivery::outside::{Outside, to};
use crate::world::{Engine, both_engines};

const ADDRESS: &str = "jane.doe@slow.example";

both_engines!(a_message_on_its_way_is_erased_when_it_has_arrived);

async fn a_message_on_its_way_is_erased_when_it_has_arrived(engine: Engine) {
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 OK").after(Duration::from_secs(3));
    let peer = outside.site("slow.example", Script::new().on(Stage::Message, slow));
    let world = outside.start(engine, &[]);
    let id = world.accepted_id(&to(ADDRESS)).await;
    eventually(async || {
        let retried = world.call("/api/v1/messages/retry", &json!({"id": id})).await;
        if retried["data"]["code"] == "MessageInDelivery" { Ok(()) } else { Err(retried.to_string()) }
    })
    .await;
    let job = erase(&world, json!({"address": ADDRESS})).await;
    assert_eq!(
        (&job["state"], &job["done"], &job["failed"], &job["errors"]),
        (&json!("done"), &json!(1), &json!(0), &json!([])),
        "{job}"
    );
    assert_eq!(peer.messages().len(), 1);
    let message = world.expanded(id).await;
    assert_eq!(message["status"]["status"], "Sent", "{message}");
    assert_eq!(message["details"]["rcpt_to"], "erased@erased.invalid", "{message}");
    assert!(!message.to_string().contains(ADDRESS), "{message}");
}
