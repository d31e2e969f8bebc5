//! A node that dies while sending, and another that takes over its messages.

use postroad_testkit::postgres::Database;
use postroad_testkit::smtp_peer::{Answer, Script, Stage};

use super::outside::{Outside, to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_begun_by_a_dead_node_are_reported_and_sent_again_with_the_same_bytes() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new().on(Stage::Message, Answer::stall()));
    let database = Database::create();
    let url = database.url().to_owned();
    let mut first = outside.start_on(&url, None, &[("POSTROAD_HOSTNAME", "one.mail.example")]);
    let id = first.accepted_id(&to("ann@shop.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    first.daemon.kill9();
    database.age_busy_nodes();
    peer.set_script(Script::new());

    let second = outside.start_on(&url, None, &[("POSTROAD_HOSTNAME", "two.mail.example")]);
    let deliveries = second.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    assert_eq!(
        (&deliveries[0]["status"], &deliveries[0]["possible_duplicate"]),
        (&"SoftFail".into(), &true.into())
    );
    let messages = peer.messages();
    assert_eq!(messages.len(), 2);
    let text = String::from_utf8_lossy(&messages[0].bytes);
    assert!(text.starts_with("Received: by one.mail.example"), "{text}");
    assert_eq!(messages[0].bytes, messages[1].bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_possible_duplicate_is_recorded_although_the_node_that_takes_the_message_over_dies_too() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new().on(Stage::Message, Answer::stall()));
    let database = Database::create();
    let url = database.url().to_owned();
    let mut first = outside.start_on(&url, None, &[]);
    let id = first.accepted_id(&to("ann@shop.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    first.daemon.kill9();
    database.age_busy_nodes();
    peer.set_script(Script::new());

    database.refuse_outcomes();
    let mut second = outside.start_on(&url, None, &[]);
    second.until_logged("storing outcomes failed").await;
    second.daemon.kill9();
    database.accept_outcomes();
    second.restart();
    let deliveries = second.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    assert_eq!(deliveries[0]["possible_duplicate"], true);
    assert_eq!(peer.messages().len(), 2);
}
