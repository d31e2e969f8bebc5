//! messages/erase: removes all data of a person, and nobody else's.

use std::path::Path;

use postroad_testkit::eventually;
use serde_json::{Value, json};

use super::holds::wait_for_job;
use super::{find_all, query};
use crate::accounts::{ACCOUNT, call_ok, ready_field};
use crate::analytics::{SUMMARY, TIMESERIES, call_analytics};
use crate::world::{Engine, SEND, World, both_engines, good_but};

pub(super) const ERASE: &str = "/api/v1/messages/erase";
pub(super) const ADDRESS: &str = "jane.doe@customer.example";

pub(super) async fn send(world: &World, fields: Value) -> Value {
    let sent = world.call(SEND, &good_but(fields)).await;
    assert_eq!(sent["status"], "success", "{sent}");
    sent["data"]["messages"].clone()
}

pub(super) fn id_of(messages: &Value, address: &str) -> i64 {
    messages[address]["id"].as_i64().unwrap_or_else(|| panic!("{messages}"))
}

pub(super) async fn erase(world: &World, request: Value) -> Value {
    let started = world.call(ERASE, &request).await;
    assert_eq!(started["status"], "success", "{started}");
    wait_for_job(world, &started["data"]["job_id"]).await
}

/// Files below a folder that contain a text in any letter case.
pub(super) fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let bytes = bytes.to_ascii_lowercase();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// A tag that contains the person's address, as some customers write tags.
fn personal_tag() -> String {
    format!("user:{ADDRESS}")
}

async fn until_tag_is_counted(world: &World, sent: u64) {
    eventually(async || {
        let summary = call_analytics(world, SUMMARY, &json!({"tag": personal_tag()})).await;
        if summary["sent"] == sent { Ok(()) } else { Err(format!("{summary:#}")) }
    })
    .await;
}

both_engines!(
    a_person_is_erased_and_nobody_else,
    the_text_of_a_message_is_kept_while_another_recipient_needs_it,
    a_query_without_conditions_erases_nothing
);

async fn a_query_without_conditions_erases_nothing(world: World) {
    let id = id_of(&send(&world, json!({"to": [ADDRESS]})).await, ADDRESS);
    world.until_status(id, "Sent").await;
    for query in ["", " \t\n"] {
        for dry_run in [true, false] {
            let answer = world.call(ERASE, &json!({"query": query, "dry_run": dry_run})).await;
            assert_eq!(answer["data"]["code"], "ValidationError", "{query:?}: {answer}");
            assert_eq!(answer["data"]["errors"][0]["pointer"], "/query", "{answer}");
        }
    }
    assert_eq!(find_all(&world, &query(&format!("to:{ADDRESS}"))).await, [id]);
}

async fn a_person_is_erased_and_nobody_else(world: World) {
    let mut erased = Vec::new();
    for number in 0..5 {
        let subject = format!("Order {number} of {ADDRESS}");
        let sent = send(&world, json!({
                "to": [ADDRESS.to_uppercase()], "subject": subject, "metadata": {"customer": ADDRESS}, "tag": personal_tag(),
                "idempotency_key": format!("order-{number}:{ADDRESS}"),
            })).await;
        erased.push(id_of(&sent, &ADDRESS.to_uppercase()));
    }
    let (_, hold_key) = world.new_key(&["--hold"]);
    let held = world.call_as(&hold_key, SEND, &good_but(json!({"to": [ADDRESS]}))).await;
    erased.push(id_of(&held["data"]["messages"], ADDRESS));
    let other = id_of(
        &send(&world, json!({"to": ["jane@customer.example"], "subject": "Kept"})).await,
        "jane@customer.example",
    );
    for id in &erased[..5] {
        world.until_status(*id, "Sent").await;
    }
    world.until_status(other, "Sent").await;
    let longer = format!("x{ADDRESS}");
    let kept_request = json!({"to": [longer], "subject": "Kept too", "idempotency_key": "kept"});
    let longer_id = id_of(&send(&world, kept_request.clone()).await, &longer);
    world.until_status(longer_id, "Sent").await;
    // A suppression and a search must not leave the address in the database either.
    world.call("/api/v1/suppressions/add", &json!({"address": ADDRESS, "reason": "manual"})).await;
    world.call("/api/v1/messages/search", &query(&format!("to:{ADDRESS}"))).await;
    until_tag_is_counted(&world, 5).await;

    let dry = world.call(ERASE, &json!({"address": ADDRESS, "dry_run": true})).await;
    assert_eq!((&dry["data"]["job_id"], &dry["data"]["matched"]), (&Value::Null, &json!(6)), "{dry}");
    let job = erase(&world, json!({"address": ADDRESS})).await;
    assert_eq!((&job["state"], &job["kind"]), (&json!("done"), &json!("erase")), "{job}");
    assert_eq!(
        job["errors"],
        json!([]),
        "errors do not reveal whether other data contains the address: {job}"
    );
    assert_eq!(
        (&job["done"], &job["total"]),
        (&json!(6), &json!(6)),
        "the longer address is not counted: {job}"
    );
    // The job reports the same for an address that no data contains.
    let nobody = erase(&world, json!({"address": "nobody@nowhere.example"})).await;
    assert_eq!((&nobody["errors"], &nobody["note"]), (&json!([]), &job["note"]), "{nobody}");
    assert_ne!(nobody["note"], Value::Null);
    // A repeated request about the longer address still gets the first answer.
    let same = send(&world, kept_request).await;
    assert_eq!(id_of(&same, &longer), longer_id, "{same}");

    if let Some(rows) = world.database_text() {
        assert!(!rows.to_lowercase().replace(&longer, "").contains(ADDRESS), "{rows}");
    }
    // Messages to a longer address that contains the erased one stay, and so do messages to other people.
    assert_eq!(find_all(&world, &query(&format!("to:{ADDRESS}"))).await, [longer_id]);
    let kept = world
        .call("/api/v1/messages/message", &json!({"id": other, "_expansions": ["details", "plain_body"]}))
        .await;
    assert_eq!(kept["data"]["details"]["rcpt_to"], "jane@customer.example", "{kept}");
    assert_eq!(kept["data"]["details"]["subject"], "Kept");
    assert!(kept["data"]["plain_body"].as_str().is_some_and(|text| !text.is_empty()), "{kept}");

    let gone = world.call("/api/v1/messages/message", &json!({"id": erased[0], "_expansions": true})).await;
    assert_eq!(gone["data"]["status"]["status"], "Sent", "{gone}");
    assert!(!gone.to_string().to_lowercase().contains(ADDRESS), "{gone}");
    let timeline = world.call("/api/v1/messages/timeline", &json!({"id": erased[0]})).await;
    assert!(!timeline.to_string().to_lowercase().contains(ADDRESS), "{timeline}");
    let events = world.call("/api/v1/events/list", &json!({"limit": 500})).await.to_string().to_lowercase();
    assert!(!events.replace(&longer, "").contains(ADDRESS), "{events}");
    let cancelled =
        world.call("/api/v1/messages/message", &json!({"id": erased[5], "_expansions": ["status"]})).await;
    assert_eq!(cancelled["data"]["status"]["status"], "HoldCancelled", "{cancelled}");

    // The address is still suppressed, by a hash.
    let again = id_of(&send(&world, json!({"to": [ADDRESS]})).await, ADDRESS);
    let state =
        world.call("/api/v1/messages/message", &json!({"id": again, "_expansions": ["status"]})).await;
    assert_eq!(state["data"]["status"]["status"], "Held", "{state}");
    let list = world.call("/api/v1/suppressions/list", &json!({})).await;
    assert!(!list.to_string().contains(ADDRESS), "{list}");
    // A repeated request is still recognised, and answered without the address.
    let repeated = world
        .call(
            SEND,
            &good_but(json!({
                "to": [ADDRESS.to_uppercase()], "subject": format!("Order 0 of {ADDRESS}"),
                "metadata": {"customer": ADDRESS}, "tag": personal_tag(), "idempotency_key": format!("order-0:{ADDRESS}"),
            })),
        )
        .await;
    assert_eq!(repeated["data"]["messages"]["erased@erased.invalid"]["id"], erased[0], "{repeated}");
    let other_request = json!({"to": [ADDRESS], "idempotency_key": format!("order-0:{ADDRESS}")});
    let conflict = world.call(SEND, &good_but(other_request)).await;
    assert_eq!(conflict["data"]["code"], "IdempotencyConflict", "{conflict}");
    // The counters of the tag stay, under a name that does not reveal it.
    assert_eq!(gone["data"]["details"]["tag"], Value::Null, "{gone}");
    let series = call_analytics(&world, TIMESERIES, &json!({"dimensions": ["tag"]})).await["series"].clone();
    let is_renamed = |one: &&Value| one["tag"].as_str().is_some_and(|tag| tag.starts_with("erased:"));
    let renamed: Vec<&Value> = series.as_array().unwrap().iter().filter(is_renamed).collect();
    let [renamed] = renamed.as_slice() else { panic!("{series:#}") };
    let sent = renamed["points"].as_array().unwrap().iter().map(|point| point["sent"].as_u64().unwrap());
    assert_eq!(sent.sum::<u64>(), 5, "{series:#}");
    assert!(!series.to_string().contains(ADDRESS), "{series:#}");
    let removed = world.call("/api/v1/suppressions/remove", &json!({"address": ADDRESS})).await;
    assert_eq!(removed["status"], "success", "{removed}");
}

async fn the_text_of_a_message_is_kept_while_another_recipient_needs_it(world: World) {
    let later = crate::scheduling::in_millis(7_200_000);
    let sent = send(&world, json!({"to": [ADDRESS, "bob@customer.example"], "send_at": later})).await;
    let (jane, bob) = (id_of(&sent, ADDRESS), id_of(&sent, "bob@customer.example"));
    let one = world.call(ERASE, &json!({"id": jane})).await;
    assert_eq!(one["data"]["code"], "MessageTextNeeded", "{one}");
    // The erasure was refused, but the message was cancelled, so the audit log has an entry.
    world.until_status(jane, "Cancelled").await;
    let account_key = (ACCOUNT, ready_field(&world, "account_api_key"));
    let erasures = json!({"operation": "messages/erase"});
    let log = call_ok(&world, account_key, "account/audit", &erasures).await["items"].clone();
    assert_eq!((log.as_array().map(Vec::len), &log[0]["after"]["message"]), (Some(1), &json!(jane)), "{log}");
    world.call("/api/v1/send/cancel", &json!({"id": bob})).await;
    let job = erase(&world, json!({"query": format!("to:{ADDRESS}")})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(1), &json!(0)), "{job}");
    let bob = world.call("/api/v1/messages/message", &json!({"id": bob, "_expansions": ["details"]})).await;
    assert_eq!(bob["data"]["details"]["rcpt_to"], "bob@customer.example", "{bob}");
    assert!(!bob.to_string().contains(ADDRESS), "{bob}");
    let bad = world.call(ERASE, &json!({"address": "nobody"})).await;
    assert_eq!(bad["data"]["code"], "ValidationError", "{bad}");
    assert!(bad.to_string().contains("/address"), "{bad}");
    let two = world.call(ERASE, &json!({"address": ADDRESS, "id": 7})).await;
    assert!(two.to_string().contains("Give one of"), "{two}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_the_store_contains_an_erased_address() {
    let world = World::start(Engine::Sqlite);
    let mut last = 0;
    for number in 0..40 {
        let text = format!("Dear {ADDRESS}, ").repeat(1 + number * 40);
        let sent = send(
            &world,
            json!({"to": [ADDRESS], "subject": format!("{number} for {ADDRESS}"), "plain_body": text,
            "metadata": {"customer": ADDRESS}, "idempotency_key": format!("key-{number}-{}", ADDRESS.to_uppercase()),
            "tag": personal_tag()}),
        )
        .await;
        last = id_of(&sent, ADDRESS);
        send(&world, json!({"to": [format!("u{number}@example.com")], "subject": "Somebody else"})).await;
    }
    world.until_status(last, "Sent").await;
    world.call("/api/v1/suppressions/add", &json!({"address": ADDRESS})).await;
    until_tag_is_counted(&world, 40).await;
    let folder = world.data_dir();
    assert!(!files_with(&folder, ADDRESS).is_empty(), "the store had it in clear before");
    let job = erase(&world, json!({"query": format!("to:{ADDRESS}")})).await;
    assert_eq!((&job["done"], &job["failed"]), (&json!(40), &json!(0)), "{job}");
    assert_eq!(files_with(&folder, ADDRESS), Vec::<String>::new());
}
