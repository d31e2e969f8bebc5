//! Waits in timelines: the connections in use are shown, but nothing of other servers' mail.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, RuleContext, Script, Stage};
use postroad_testkit::{ReceivedPost, WebhookCatcher, eventually};
use serde_json::{Value, json};

use super::timeline::{TIMELINE, timeline_items, trace, wait_causes};
use crate::delivery::fairness::create_second_server;
use crate::delivery::limits::write_providers_file;
use crate::delivery::outside::{Outside, to};
use crate::world::{DELIVERIES, Engine, MESSAGE, SEND, World, both_engines, good_but};

both_engines!(
    a_timeline_shows_the_connections_in_use,
    a_reply_that_quotes_a_recipient_is_shown_only_to_the_server_that_sent_to_it
);

async fn a_timeline_shows_the_connections_in_use(engine: Engine) {
    let outside = Outside::new();
    let slow = Answer::reply("250 2.0.0 finally").after(Duration::from_secs(3));
    let peer = outside.site("slow.example", Script::new().first(1, Stage::Message, slow));
    let file = write_providers_file("[slow]\nmx = [\"slow.example\"]\nconnections_max = 1\n");
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(engine, &envs);
    let first = world.accepted_id(&to("ann@slow.example")).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    let second = world.accepted_id(&to("bob@slow.example")).await;
    let waiting = timeline_items(&world, second).await.pop().unwrap();
    assert_eq!(
        (&waiting["kind"], &waiting["text"]),
        (
            &json!("waiting"),
            &json!(
                "It waits for its turn at mx.slow.example: 1 of 1 connections to mx.slow.example are in use; \
                 messages of this server that wait there: 1."
            )
        )
    );
    world.until_status(first, "Sent").await;
    world.until_status(second, "Sent").await;
    assert_eq!(wait_causes(&world, second).await, ["1 of 1 connections to mx.slow.example are in use"]);
}

const REFUSAL: &str = "Client host rejected: cannot find your reverse hostname, [192.0.2.1]";

/// Refuses recipients that begin with `ben` or `jane`; the replies about Jane quote her address.
fn refuse_ben_and_jane(context: &RuleContext<'_>) -> Option<Answer> {
    let address = context.line.split(['<', '>']).nth(1).unwrap_or_default();
    match context.stage {
        Stage::RcptTo if address.starts_with("jane") => {
            Some(Answer::reply(&format!("450 4.7.1 <{address}>: {REFUSAL}")))
        }
        Stage::RcptTo if address.starts_with("ben") => Some(Answer::reply(&format!("450 4.7.1 {REFUSAL}"))),
        _ => None,
    }
}

/// Everything that a server can read of a message, as text.
async fn all_about(world: &World, key: &str, id: i64) -> String {
    let mut all = String::new();
    for (path, body) in [
        (TIMELINE, json!({ "id": id })),
        (MESSAGE, json!({"id": id, "_expansions": true})),
        (DELIVERIES, json!({ "id": id })),
        ("/api/v1/events/list", json!({})),
    ] {
        let answer = world.call_as(key, path, &body).await;
        assert_eq!(answer["status"], "success", "{answer}");
        all.push_str(&answer.to_string());
    }
    all
}

async fn a_reply_that_quotes_a_recipient_is_shown_only_to_the_server_that_sent_to_it(engine: Engine) {
    let outside = Outside::new();
    let _peer = outside.site("shared.example", Script::new().when(refuse_ben_and_jane));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let key = create_second_server(&world);
    let hooks = WebhookCatcher::start();
    let hook = json!({"url": hooks.url("/hook")});
    assert_eq!(world.call_as(&key, "/api/v1/webhooks/create", &hook).await["status"], "success");
    let send_as_second = async |address: &str| {
        let body = good_but(json!({"from": "shop@second.test", "to": [address]}));
        let answer = world.call_as(&key, SEND, &body).await;
        answer["data"]["messages"][address]["id"].as_i64().unwrap_or_else(|| panic!("{answer}"))
    };
    let status_of = async |key: &str, id: i64| {
        let answer = world.call_as(key, MESSAGE, &json!({"id": id, "_expansions": ["status"]})).await;
        answer["data"]["status"]["status"].clone()
    };
    let until_status = async |key: &str, id: i64, wanted: &str| {
        eventually(async || {
            let status = status_of(key, id).await;
            if status == wanted { Ok(()) } else { Err(format!("{id} is {status}, not {wanted}")) }
        })
        .await;
    };
    // Three refusals in a row, of two servers' mail: from now on the domain gets only probes, whoever sends to it.
    let ben = send_as_second("ben@shared.example").await;
    until_status(&key, ben, "SoftFail").await;
    for address in ["jane@shared.example", "jane.second@shared.example"] {
        let id = world.accepted_id(&to(address)).await;
        until_status(&world.key, id, "SoftFail").await;
    }
    let bob = send_as_second("bob@shared.example").await;
    let joe = world.accepted_id(&to("joe@shared.example")).await;

    let answer = world.call_as(&key, TIMELINE, &json!({ "id": bob })).await;
    let waiting = answer["data"]["items"].as_array().unwrap().last().unwrap();
    let text = waiting["text"].as_str().unwrap();
    assert!(text.contains("shared.example has refused everything since "), "{waiting}");
    assert!(text.contains("(it said: 450 4.7.1)"), "{waiting}");
    let full = format!("(it said: 450 4.7.1 <jane.second@shared.example>: {REFUSAL})");
    let own = timeline_items(&world, joe).await;
    assert!(own.last().unwrap()["text"].as_str().unwrap().contains(&full), "{own:#?}");
    let shown = world.queue(&["show", &bob.to_string()]);
    assert!(shown["why"].as_str().unwrap().contains(&full), "the operator sees all: {shown}");
    let (_, traced, _) = trace(&world, &[&bob.to_string(), "--json"]);
    let traced: Value = serde_json::from_str(&traced).unwrap();
    assert!(traced.to_string().contains("jane.second@shared.example"), "{traced}");
    let before = all_about(&world, &key, bob).await;

    until_status(&key, bob, "Sent").await;
    let after = all_about(&world, &key, bob).await;
    assert!(after.contains("because shared.example has refused everything since "), "{after}");
    let is_delivered = |received: &[ReceivedPost]| {
        received.iter().any(|one| one.json().to_string().contains("message.delivered"))
    };
    hooks.wait_until("/hook", Duration::from_secs(30), is_delivered);
    let posts = hooks.received().iter().map(|one| one.json().to_string()).collect::<String>();
    for text in [before, after, posts] {
        assert!(!text.contains("jane"), "{text}");
    }
    // Other messages of the server that sent to Jane show the reply only while they wait: erasing Jane would not erase
    // it there.
    until_status(&world.key, joe, "Sent").await;
    let own = world.call(TIMELINE, &json!({ "id": joe })).await;
    assert!(!own.to_string().contains("jane"), "{own}");
}
