//! messages/erase: other spellings of the address, and data that others sent back about the person.

use postroad_testkit::{CatcherAnswer, WebhookCatcher, eventually};
use serde_json::{Value, json};

use super::erase::{ADDRESS, ERASE, erase, files_with, id_of, send};
use crate::batch::{BATCH, batch_to};
use crate::delivery::inbox::wait_for_mail_to;
use crate::returns::{mail_back, notification};
use crate::tracking::{
    FIREFOX, open_in_browser, send_and_receive, tracked_html, until_activity, wait_past_scanner_window,
};
use crate::world::{World, both_engines};

both_engines!(
    every_spelling_of_an_address_is_erased,
    returned_mail_that_names_the_person_is_erased_for_all_recipients,
    opens_clicks_and_answers_of_webhooks_and_batches_are_erased
);

/// Asserts that none of the texts is in a row of the PostgreSQL database, or in a file of the data folder on SQLite.
fn assert_gone(world: &World, texts: &[&str]) {
    for text in texts {
        match world.database_text() {
            Some(rows) => assert!(!rows.to_ascii_lowercase().contains(text), "{text}: {rows}"),
            None => assert_eq!(files_with(&world.data_dir(), text), Vec::<String>::new(), "{text}"),
        }
    }
}

async fn count_matched(world: &World, address: &str) -> Value {
    let dry = world.call(ERASE, &json!({"address": address, "dry_run": true})).await;
    dry["data"]["matched"].clone()
}

async fn every_spelling_of_an_address_is_erased(world: World) {
    let upper = "Élodie@example.fr";
    send(&world, json!({"to": [upper], "idempotency_key": "upper"})).await;
    assert_eq!(count_matched(&world, upper).await, 1);
    let job = erase(&world, json!({"address": upper})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(1), &json!(0)), "{job}");
    assert_gone(&world, &["Élodie@example.fr"]);

    let spellings = ["jane@bücher.example", "jane@xn--bcher-kva.example"];
    for (number, address) in spellings.iter().enumerate() {
        send(&world, json!({"to": [address], "idempotency_key": number.to_string()})).await;
    }
    world.call("/api/v1/suppressions/add", &json!({"address": spellings[0], "details": spellings[0]})).await;
    for address in spellings {
        assert_eq!(count_matched(&world, address).await, 2, "{address}");
    }
    let job = erase(&world, json!({"address": spellings[1]})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(2), &json!(0)), "{job}");
    assert_gone(&world, &spellings);
}

async fn returned_mail_that_names_the_person_is_erased_for_all_recipients(world: World) {
    let bob = "bob@customer.example";
    let sent = send(&world, json!({"to": [ADDRESS, bob], "subject": format!("For {ADDRESS}")})).await;
    for address in [ADDRESS, bob] {
        let id = id_of(&sent, address);
        world.until_status(id, "Sent").await;
        let return_path = wait_for_mail_to(&world, address).await["mail_from"].as_str().unwrap().to_owned();
        let report = notification(address, "failed", "5.1.1", "550 5.1.1 User unknown");
        let original = format!(
            "--b\r\nContent-Type: text/rfc822-headers\r\n\r\nTo: {ADDRESS}, {bob}\r\nSubject: For {ADDRESS}\r\n\r\n--b--"
        );
        let report =
            report.replace("Message-ID: <", &format!("Message-ID: <{id}.")).replace("--b--", &original);
        assert_eq!(mail_back(&world, &return_path, &report).await, "250 2.0.0 OK");
        world.until_status(id, "Bounced").await;
    }
    let job = erase(&world, json!({"address": ADDRESS})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(1), &json!(0)), "{job}");
    let kept = world.expanded(id_of(&sent, bob)).await;
    assert_eq!(
        (&kept["details"]["rcpt_to"], &kept["status"]["status"]),
        (&json!(bob), &json!("Bounced")),
        "{kept}"
    );
    assert_gone(&world, &[ADDRESS]);
}

async fn opens_clicks_and_answers_of_webhooks_and_batches_are_erased(world: World) {
    let catcher = WebhookCatcher::start();
    let answer = format!("known customer: {ADDRESS}");
    catcher.answer("/in", CatcherAnswer::Full(200, Vec::new(), answer.clone().into_bytes()));
    let webhook = world.webhooks("create", &json!({"url": catcher.url("/in"), "events": "all"})).await;
    let attempts =
        async || world.webhooks("attempts", &json!({"id": webhook["id"], "limit": 500})).await.to_string();

    let mut batch = batch_to([ADDRESS.to_owned()]);
    batch["idempotency_key"] = json!("a batch");
    let first = world.call(BATCH, &batch).await;
    assert_eq!(first["data"]["accepted"], 1, "{first}");
    // Waits, so that the tracked message below is the newest in the inbox to this address.
    let id = first["data"]["results"][0]["messages"][ADDRESS]["id"].as_i64().expect("an id");
    world.until_status(id, "Sent").await;
    let link = "https://example.com/?customer=jane";
    let mail = send_and_receive(&world, &tracked_html(ADDRESS, &format!("<a href='{link}'>A</a>"))).await;
    wait_past_scanner_window().await;
    open_in_browser(&world, &mail.paths("/c/").remove(0)).await;
    open_in_browser(&world, &mail.paths("/o/").remove(0)).await;
    until_activity(&world, mail.id, 1, 1).await;
    eventually(async || {
        let attempts = attempts().await;
        // Both messages were accepted and delivered, and one was opened and clicked.
        if attempts.matches(&answer).count() == 6 { Ok(()) } else { Err(attempts) }
    })
    .await;

    let job = erase(&world, json!({"address": ADDRESS})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(2), &json!(0)), "{job}");
    let activity = world.expanded(mail.id).await["activity_entries"].to_string();
    let timeline = world.call("/api/v1/messages/timeline", &json!({"id": mail.id})).await.to_string();
    let events =
        world.call("/api/v1/events/list", &json!({"message_id": mail.id, "limit": 500})).await.to_string();
    for text in [FIREFOX.1, "\"ip_address\":\"127.0.0.1\"", link, ADDRESS] {
        for shown in [&activity, &timeline, &events] {
            assert!(!shown.contains(text), "{text}: {shown}");
        }
    }
    let repeated = world.call(BATCH, &batch).await;
    assert_eq!(repeated["flags"]["idempotent_replay"], true, "{repeated}");
    assert_eq!(
        repeated["data"]["results"][0]["messages"]["erased@erased.invalid"],
        first["data"]["results"][0]["messages"][ADDRESS],
        "{repeated}"
    );
    assert!(!attempts().await.contains(ADDRESS), "{}", attempts().await);
    assert_gone(&world, &[ADDRESS, "customer=jane"]);
}
