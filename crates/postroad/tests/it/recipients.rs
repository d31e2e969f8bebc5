//! Recipient lists of send/message: limits, duplicates, international addresses, and the fields of the answer.

use serde_json::{Value, json};

use crate::world::{SEND, World, both_engines, good, good_but};

fn addresses(list: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{list}{n}@example.com")).collect()
}

both_engines!(
    fifty_recipients_in_each_of_the_three_lists_give_150_messages,
    a_mailbox_that_is_listed_twice_gets_one_message,
    to_may_be_empty_if_another_list_is_not,
    the_message_id_is_a_uuid_at_the_return_path_domain,
    unknown_fields_are_named_in_warnings,
    international_addresses_work
);

async fn fifty_recipients_in_each_of_the_three_lists_give_150_messages(world: World) {
    let body = good_but(json!({
        "to": addresses("to", 50), "cc": addresses("cc", 50), "bcc": addresses("bcc", 50),
    }));
    let data = world.accepted(&body).await;
    let messages = data["messages"].as_object().unwrap();
    assert_eq!(messages.len(), 150);
    let mut ids: Vec<i64> = messages.values().map(|m| m["id"].as_i64().unwrap()).collect();
    assert!(ids.iter().all(|id| *id > 0 && *id < 1 << 53));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 150);
    let tokens: std::collections::HashSet<&str> =
        messages.values().map(|m| m["token"].as_str().unwrap()).collect();
    assert_eq!(tokens.len(), 150);
    assert!(tokens.iter().all(|t| t.len() == 16 && t.chars().all(|c| c.is_ascii_alphanumeric())));
    // All copies share one body and one Message-ID. Blind copies have the same bytes; no copy names their recipients.
    let first = world.expanded(messages["to0@example.com"]["id"].as_i64().unwrap()).await;
    let blind = world.expanded(messages["bcc49@example.com"]["id"].as_i64().unwrap()).await;
    // Compared without the `Received` header, which is different for each copy.
    let [first_bytes, blind_bytes] = [&first, &blind].map(|message| {
        let raw = message["raw_message"].as_str().unwrap();
        let raw = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, raw).unwrap();
        String::from_utf8(raw).unwrap().splitn(3, "\r\n").nth(2).unwrap().to_owned()
    });
    assert_eq!(first_bytes, blind_bytes);
    assert_eq!(first["details"]["message_id"], data["message_id"]);
    assert_eq!(blind["details"]["rcpt_to"], "bcc49@example.com");
    assert!(!first["headers"].as_object().unwrap().contains_key("bcc"));
    assert!(!first_bytes.contains("bcc49"));
}

async fn a_mailbox_that_is_listed_twice_gets_one_message(world: World) {
    let body = good_but(json!({
        "to": ["Ann <ann@example.com>", "bob@example.com"],
        "cc": "ann@EXAMPLE.com, \"Carol, C.\" <carol@example.com>",
        "bcc": ["bob@example.com", "Dave@Example.com"],
    }));
    let data = world.accepted(&body).await;
    let keys: Vec<&String> = data["messages"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ann@example.com", "bob@example.com", "carol@example.com", "Dave@Example.com"]);
}

async fn to_may_be_empty_if_another_list_is_not(world: World) {
    let data = world.accepted(&good_but(json!({"to": [], "bcc": ["b@example.com"]}))).await;
    let id = data["messages"]["b@example.com"]["id"].as_i64().unwrap();
    let message = world.expanded(id).await;
    assert_eq!(message["headers"]["to"], json!(["undisclosed-recipients:;"]));
    assert!(!message["headers"].as_object().unwrap().contains_key("cc"));
}

async fn the_message_id_is_a_uuid_at_the_return_path_domain(world: World) {
    let data = world.accepted(&good()).await;
    let id = data["message_id"].as_str().unwrap();
    let (uuid, domain) = id.split_once('@').unwrap();
    assert_eq!(uuid.len(), 36);
    assert_eq!(domain, "rp.postroad.localhost");
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["message_id", "messages"]);
}

async fn unknown_fields_are_named_in_warnings(world: World) {
    let answer = world.call(SEND, &good_but(json!({"colour": "red"}))).await;
    assert_eq!(answer["status"], "success");
    let warnings: Vec<&str> =
        answer["flags"]["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("`colour`"));
    assert_eq!(world.call(SEND, &good()).await["flags"], json!({}));
}

async fn international_addresses_work(world: World) {
    let data = world.accepted(&good_but(json!({"to": ["Jörg <jörg@bücher.example>"]}))).await;
    let id = data["messages"]["jörg@bücher.example"]["id"].as_i64().unwrap();
    let message = world.expanded(id).await;
    assert_eq!(message["details"]["rcpt_to"], "jörg@bücher.example");
    assert_eq!(message["headers"]["to"], json!(["Jörg <jörg@xn--bcher-kva.example>"]));
}
