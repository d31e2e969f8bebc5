//! Results of a batch: one for each message, in order, independent of the others.

use postroad_testkit::eventually;
use serde_json::{Value, json};

use super::{BATCH, batch_to, defaults, id_of, send_batch};
use crate::delivery::inbox::wait_for_mail_to;
use crate::world::{World, both_engines};

/// Positions of the bad messages, and the codes of their errors.
const BAD_MESSAGES: [(usize, &str); 7] = [
    (0, "NoRecipients"),
    (71, "NoContent"),
    (142, "UnauthenticatedFromAddress"),
    (213, "ValidationError"),
    (284, "AttachmentMissingName"),
    (355, "ValidationError"),
    (499, "TooManyToAddresses"),
];

/// 500 messages, seven of them bad, each in a different way.
fn batch_with_bad_messages() -> Value {
    let mut batch = batch_to((0..500).map(|number| format!("r{number}@example.net")));
    let many: Vec<String> = (0..51).map(|number| format!("m{number}@example.net")).collect();
    let bad = [
        json!({"to": []}),
        json!({"to": ["a@example.net"], "plain_body": " "}),
        json!({"to": ["a@example.net"], "from": "ann@elsewhere.example"}),
        json!({"to": ["no address", "also none"], "subject": "two\nlines"}),
        json!({"to": ["a@example.net"], "attachments": [{"data": "AAAA"}]}),
        json!(17),
        json!({"to": many}),
    ];
    for ((at, _), message) in BAD_MESSAGES.iter().zip(bad) {
        batch["messages"][*at] = message;
    }
    batch
}

async fn count_caught(world: &World) -> usize {
    let reply = world.client.get("/dev/messages?limit=500").await.expect("the service answers");
    reply.json()["messages"].as_array().expect("a list").len()
}

async fn until_caught(world: &World, wanted: usize) {
    eventually(async || {
        let caught = count_caught(world).await;
        if caught >= wanted { Ok(()) } else { Err(format!("{caught} of {wanted} messages")) }
    })
    .await;
}

fn assert_errors(results: &[Value]) {
    for (at, code) in BAD_MESSAGES {
        assert_eq!((&results[at]["status"], &results[at]["error"]["code"]), (&json!("error"), &json!(code)));
    }
    let pointers: Vec<&Value> = [&results[213], &results[355]]
        .iter()
        .flat_map(|result| result["error"]["errors"].as_array().unwrap())
        .map(|error| &error["pointer"])
        .collect();
    let expected = ["/messages/213/subject", "/messages/213/to/0", "/messages/213/to/1", "/messages/355"];
    assert_eq!(pointers, expected.map(Value::from).iter().collect::<Vec<_>>());
    assert_eq!(results[355]["error"]["message"], "`messages/355` should be a `Object` but is a `Integer`");
}

both_engines!(
    good_messages_of_a_batch_are_accepted_beside_bad_ones,
    an_atomic_batch_with_a_bad_message_accepts_none,
    unknown_fields_are_reported_once_with_a_count_of_messages,
    a_batch_repeated_with_its_idempotency_key_gets_the_same_answer_byte_for_byte,
    a_messages_own_fields_override_the_defaults,
    invalid_batches_are_reported_with_a_pointer
);

async fn good_messages_of_a_batch_are_accepted_beside_bad_ones(world: World) {
    let data = send_batch(&world, &batch_with_bad_messages()).await;
    assert_eq!((&data["accepted"], &data["rejected"]), (&json!(493), &json!(7)));
    assert!(data["batch_id"].as_i64().is_some_and(|id| id > 0 && id < 1 << 53), "{}", data["batch_id"]);
    let results = data["results"].as_array().unwrap();
    assert_eq!(results.len(), 500);
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result["index"], at);
        if BAD_MESSAGES.iter().all(|(bad, _)| *bad != at) {
            assert_eq!(result["status"], "accepted", "{result}");
            assert!(result["messages"][format!("r{at}@example.net")]["token"].is_string(), "{result}");
        }
    }
    assert_errors(results);
    wait_for_mail_to(&world, "r498@example.net").await;
    world.until_status(id_of(&results[498]), "Sent").await;
    until_caught(&world, 493).await;
    // This later message is the 494th in the inbox: nobody got two copies, and no bad message was sent.
    send_batch(&world, &batch_to(["last@example.net".to_owned()])).await;
    wait_for_mail_to(&world, "last@example.net").await;
    assert_eq!(count_caught(&world).await, 494);
}

async fn an_atomic_batch_with_a_bad_message_accepts_none(world: World) {
    let mut atomic = batch_with_bad_messages();
    atomic["mode"] = json!("atomic");
    let answer = world.call_with(BATCH, &[("Idempotency-Key", "k")], &atomic).await;
    assert_eq!((&answer["status"], &answer["data"]["code"]), (&json!("error"), &json!("BatchRejected")));
    let results = answer["data"]["results"].as_array().unwrap();
    assert_eq!(results.len(), 500);
    assert_errors(results);
    assert_eq!(results[1], json!({"index": 1, "status": "not_sent"}));
    assert_eq!(results.iter().filter(|result| result["status"] == "not_sent").count(), 493);

    // Without the bad messages it is accepted: the refusal did not use up the idempotency key.
    let messages = atomic["messages"].as_array_mut().unwrap();
    let mut at = 0;
    messages.retain(|_| {
        at += 1;
        BAD_MESSAGES.iter().all(|(bad, _)| *bad != at - 1)
    });
    let answer = world.call_with(BATCH, &[("Idempotency-Key", "k")], &atomic).await;
    assert_eq!((&answer["status"], &answer["data"]["accepted"]), (&json!("success"), &json!(493)));
    assert_eq!(answer["flags"], json!({}));
    wait_for_mail_to(&world, "r498@example.net").await;
    until_caught(&world, 493).await;
    send_batch(&world, &batch_to(["last@example.net".to_owned()])).await;
    wait_for_mail_to(&world, "last@example.net").await;
    assert_eq!(count_caught(&world).await, 494);
}

async fn unknown_fields_are_reported_once_with_a_count_of_messages(world: World) {
    let mut batch = batch_to((0..60).map(|number| format!("r{number}@example.net")));
    for at in 0..60 {
        batch["messages"][at][format!("odd{}", at % 30)] = json!(1);
    }
    batch["messages"][7]["headers"] = json!({"Subject": "another"});
    let answer = world.call(BATCH, &batch).await;
    let warnings: Vec<&str> =
        answer["flags"]["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(warnings.len(), 21, "{answer}");
    assert_eq!(warnings[0], "Unknown field `odd0` was ignored (messages/0 and 1 more)");
    assert_eq!(warnings[20], "22 more warnings are not listed");
}

async fn a_batch_repeated_with_its_idempotency_key_gets_the_same_answer_byte_for_byte(world: World) {
    let mut batch = batch_to((0..20).map(|number| format!("r{number}@example.net")));
    batch["messages"][3] = json!({"to": ["nobody"], "odd": 1});
    let text_of = async |batch: &Value| {
        let reply = world.request("POST", BATCH, &[("Idempotency-Key", "week 47")], batch.to_string()).await;
        let text = reply.text();
        let (before, after) = text.split_once("\"time\":").unwrap();
        let (_, after) = after.split_once(',').unwrap();
        format!("{before}{after}")
    };
    let first = text_of(&batch).await;
    assert!(first.contains("\"accepted\":19,\"rejected\":1"), "{first}");
    let warned = "\"flags\":{\"warnings\":[\"Unknown field `odd` was ignored (messages/3)\"]}";
    assert!(first.contains(warned), "{first}");
    let replayed = warned.replace("{\"warnings", "{\"idempotent_replay\":true,\"warnings");
    assert_eq!(text_of(&batch).await, first.replace(warned, &replayed));
    // Twenty requests at once, with the key in the body.
    batch["idempotency_key"] = json!("at once");
    let answers = futures_util::future::join_all((0..20).map(|_| world.call(BATCH, &batch))).await;
    assert_eq!(answers.iter().filter(|answer| answer["flags"]["idempotent_replay"].is_null()).count(), 1);
    assert!(answers.iter().all(|answer| answer["data"] == answers[0]["data"]));
    batch["messages"][0]["subject"] = json!("Another");
    let other = world.call(BATCH, &batch).await;
    assert_eq!(other["data"]["code"], "IdempotencyConflict", "{other}");
}

async fn a_messages_own_fields_override_the_defaults(world: World) {
    let batch = json!({
        "defaults": {
            "from": "shop@example.test", "subject": "For all", "plain_body": "For all", "tag": "all",
            "headers": {"X-One": "1"}, "metadata": {"a": "1"},
        },
        "messages": [
            {"to": ["a@example.net"]},
            {"to": ["b@example.net"], "subject": "Own", "tag": null, "headers": {"X-Two": "2"}, "metadata": {}},
        ],
    });
    let data = send_batch(&world, &batch).await;
    let all = world.expanded(id_of(&data["results"][0])).await;
    let own = world.expanded(id_of(&data["results"][1])).await;
    let details = |message: &Value| {
        let details = &message["details"];
        (details["subject"].clone(), details["tag"].clone(), details["metadata"].clone())
    };
    assert_eq!(details(&all), (json!("For all"), json!("all"), json!({"a": "1"})));
    assert_eq!(details(&own), (json!("Own"), json!("all"), json!({})), "null is as if it were left out");
    assert_eq!((&all["headers"]["x-one"], &own["headers"]["x-two"]), (&json!(["1"]), &json!(["2"])));
    assert_eq!(own["headers"]["x-one"], Value::Null);
    assert_eq!(all["plain_body"].as_str().unwrap().trim_end(), "For all");
}

async fn invalid_batches_are_reported_with_a_pointer(world: World) {
    let many: serde_json::Map<String, Value> =
        (0..101).map(|number| (format!("k{number}"), json!(1))).collect();
    let message = json!({"to": ["a@example.net"]});
    for (body, pointer, message) in [
        (json!({}), "/messages", "`messages` parameter is required but is missing"),
        (json!({"messages": {}}), "/messages", "`messages` should be a `Array` but is a `Object`"),
        (json!({"messages": []}), "/messages", "`messages` must have 1 to 500 entries, not 0"),
        (json!({"messages": [message], "mode": "all"}), "/mode", "`mode` must be `independent` or `atomic`"),
        (
            json!({"messages": [message], "defaults": 1}),
            "/defaults",
            "`defaults` should be a `Object` but is a `Integer`",
        ),
        (
            json!({"messages": [message], "defaults": many}),
            "/defaults",
            "`defaults` must have at most 100 fields",
        ),
    ] {
        let answer = world.call(BATCH, &body).await;
        assert_eq!(answer["status"], "parameter-error", "{answer}");
        assert_eq!(answer["data"]["errors"], json!([{"pointer": pointer, "message": message}]));
    }
    let keyed =
        json!({"defaults": defaults(), "messages": [{"to": ["a@example.net"], "idempotency_key": "k"}]});
    let data = send_batch(&world, &keyed).await;
    assert_eq!(data["results"][0]["error"]["errors"][0]["pointer"], "/messages/0/idempotency_key");
}
