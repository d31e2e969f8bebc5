//! Limits of a batch, and its effect on other servers.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_testkit::http::Client;
use postroad_testkit::random_bytes;
use serde_json::{Value, json};

use super::{BATCH, batch_to, defaults, id_of, send_batch};
use crate::limits::create_other_server;
use crate::world::{Engine, SEND, World, both_engines, good_but};

const MIB: usize = 1 << 20;

both_engines!(
    a_batch_has_500_messages_at_most,
    a_batch_has_50_mib_at_most,
    large_messages_of_a_batch_are_stored_whole,
    small_requests_with_large_results_are_refused,
    templates_of_a_batch_share_a_budget_of_work
);

async fn templates_of_a_batch_share_a_budget_of_work(world: World) {
    // The template compares 1 MB thirty times, which is within the bounds of one mail.
    let html = format!(
        "{{% set x = '0123456789abcdef' %}}{}{}<p>{{{{ name }}}}</p>",
        "{% set x = x ~ x %}".repeat(16),
        "{% if x == x %}.{% endif %}".repeat(30),
    );
    let template = json!({"alias": "costly", "name": "c", "subject": "s", "html_body": html, "plain_body": "p", "publish": true});
    let created = world.call("/api/v1/templates/create", &template).await;
    assert_eq!(created["status"], "success", "{created}");
    let message = |number: usize| json!({"to": [format!("r{number}@example.net")], "template": {"alias": "costly", "model": {"name": number}}});
    let messages: Vec<Value> = (0..100).map(message).collect();
    let batch = json!({"defaults": {"from": "shop@example.test"}, "messages": messages});
    let made = send_batch(&world, &batch).await;
    let results = made["results"].as_array().unwrap();
    assert!(made["accepted"].as_u64().is_some_and(|accepted| (20..100).contains(&accepted)), "{made}");
    assert_eq!(results[0]["status"], "accepted", "{}", results[0]);
    let refused = &results[99]["error"];
    assert_eq!(refused["code"], "TemplateRenderingFailed", "{refused}");
    assert!(refused.to_string().contains("of this batch would take too much work"), "{refused}");
    // The next batch has its own budget of work.
    let again = json!({"defaults": {"from": "shop@example.test"}, "messages": [message(0)]});
    assert_eq!(send_batch(&world, &again).await["accepted"], 1);
}

async fn a_batch_has_500_messages_at_most(world: World) {
    let answer = world.call(BATCH, &batch_to((0..501).map(|number| format!("r{number}@example.net")))).await;
    assert_eq!(answer["status"], "parameter-error");
    assert_eq!(answer["data"]["message"], "`messages` must have 1 to 500 entries, not 501");
    let many: Vec<String> = (0..50).map(|number| format!("r{number}@example.net")).collect();
    let mut messages = vec![json!({"to": many, "cc": many}); 103];
    messages[102] = json!("nobody");
    let message = "The messages of the batch have more than 5000 recipients together; send fewer at once";
    let mut batch = json!({"defaults": defaults(), "messages": messages, "mode": "atomic"});
    let answer = world.call(BATCH, &batch).await;
    assert_eq!(
        (&answer["status"], &answer["data"]["code"]),
        (&json!("error"), &json!("BatchRejected")),
        "{answer}"
    );
    batch["mode"] = json!("independent");
    let made = send_batch(&world, &batch).await;
    assert_eq!(made["accepted"], 100, "the same mailbox in `to` and `cc` is one recipient: {made}");
    for results in [&answer["data"]["results"], &made["results"]] {
        assert_eq!(results.as_array().unwrap().len(), 103);
        for at in [100, 101] {
            let error = &results[at]["error"];
            let expected = json!([{"pointer": format!("/messages/{at}"), "message": message}]);
            assert_eq!((&error["code"], &error["errors"]), (&json!("ValidationError"), &expected), "{error}");
        }
        let error = &results[102]["error"];
        assert!(error["code"].is_string() && !error.to_string().contains(message), "{error}");
    }
    assert_eq!(answer["data"]["results"][0], json!({"index": 0, "status": "not_sent"}));
}

async fn a_batch_has_50_mib_at_most(world: World) {
    let padded = |bytes: usize| {
        let mut batch = batch_to(["a@example.net".to_owned()]).to_string();
        batch.push_str(&" ".repeat(bytes - batch.len()));
        batch
    };
    let accepted_reply = world.request("POST", BATCH, &[], padded(50 * MIB)).await;
    assert_eq!(
        (accepted_reply.status, &accepted_reply.json()["data"]["accepted"]),
        (200, &json!(1)),
        "{}",
        accepted_reply.text()
    );
    let refused = world.request("POST", BATCH, &[], padded(51 * MIB)).await;
    assert_eq!((refused.status, &refused.json()["data"]["code"]), (413, &json!("RequestTooLarge")));
    assert_eq!(
        refused.json()["data"]["message"],
        format!("The request body is larger than {} bytes", 50 * MIB)
    );
    let single = world.request("POST", SEND, &[], " ".repeat(41 * MIB)).await;
    assert_eq!(single.status, 413, "other calls keep their limit");
}

async fn large_messages_of_a_batch_are_stored_whole(world: World) {
    // Large bodies are files on SQLite and pieces on PostgreSQL; the small ones are too many for one statement.
    let sizes = [2 * MIB, 700_000].into_iter().chain([90_000; 110]);
    let messages: Vec<Value> = sizes.enumerate().map(|(number, bytes)| {
            let data = STANDARD.encode(random_bytes(bytes));
            json!({"to": [format!("r{number}@example.net")], "attachments": [{"name": "a.bin", "data": data}]})
        }).collect();
    let data = send_batch(&world, &json!({"defaults": defaults(), "messages": messages})).await;
    assert_eq!(data["accepted"], messages.len());
    for at in [0, 1, 2, 111] {
        let stored = world.expanded(id_of(&data["results"][at])).await;
        assert_eq!(stored["attachments"][0]["data"], messages[at]["attachments"][0]["data"], "message {at}");
        world.until_status(stored["id"].as_i64().unwrap(), "Sent").await;
    }
}

async fn small_requests_with_large_results_are_refused(world: World) {
    // A small request whose messages would be two gigabytes.
    let batch = json!({
        "mode": "atomic",
        "defaults": {"from": "shop@example.test", "subject": "x", "html_body": "x".repeat(4 * MIB)},
        "messages": vec![json!({"to": ["a@example.net"]}); 500],
    });
    let answer = world.call(BATCH, &batch).await;
    assert_eq!(
        (&answer["status"], &answer["data"]["code"]),
        (&json!("error"), &json!("BatchRejected")),
        "{answer}"
    );
    let results = answer["data"]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["status"]), (500, &json!("not_sent")));
    assert!(
        results[499]["error"]["message"].as_str().unwrap().contains("much larger than"),
        "{}",
        results[499]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_sends_of_another_server_go_on_beside_batches() {
    let world = World::start(Engine::Sqlite);
    let key = create_other_server(&world);
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let single = good_but(json!({"from": "shop@other.test"}));
    let longest_of = async |count: usize| {
        let mut longest = Duration::ZERO;
        for _ in 0..count {
            let begun = Instant::now();
            let sent = world.call_as(&key, SEND, &single).await;
            assert_eq!(sent["status"], "success", "{sent}");
            longest = longest.max(begun.elapsed());
        }
        longest
    };
    longest_of(5).await;
    let batch = batch_to((0..500).map(|number| format!("r{number}@held.example")));
    let mut batches = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (client, key, batch) = (Client::new(&url), world.key.clone(), batch.clone());
        batches.spawn(
            async move { client.post_json(BATCH, Some(&key), &batch).await.map(|reply| reply.status) },
        );
    }
    let longest = longest_of(40).await;
    let statuses = batches.join_all().await;
    assert!(statuses.iter().all(|status| matches!(status, Ok(200))), "{statuses:?}");
    // A send that waited for all earlier batches would take longer; a debug build on a busy machine is slow.
    assert!(longest < Duration::from_secs(3), "a single send took {longest:?}");
}
