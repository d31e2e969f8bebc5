//! messages/timeline and `postroad trace`.

use std::process::Command;
use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage};
use postroad_testkit::{TestCertificate, WebhookCatcher, eventually};
use serde_json::{Value, json};

use crate::delivery::outside::{Outside, to};
use crate::scheduling::in_millis;
use crate::tracking::tracked_html;
use crate::world::{Engine, SEND, World, both_engines, good, good_but, program};

pub(super) const TIMELINE: &str = "/api/v1/messages/timeline";

pub(super) async fn timeline_items(world: &World, id: i64) -> Vec<Value> {
    let answer = world.call(TIMELINE, &json!({ "id": id })).await;
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"]["items"].as_array().expect("a list").clone()
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["kind"].as_str().expect("a text")).collect()
}

/// Causes of the waits before attempts.
pub(super) async fn wait_causes(world: &World, id: i64) -> Vec<String> {
    let items = timeline_items(world, id).await;
    let waits = items.iter().filter(|item| item["kind"] == "wait" && item["data"]["seconds"].is_number());
    waits.map(|item| item["data"]["cause"].as_str().expect("a text").to_owned()).collect()
}

/// The timeline as soon as it has items of all these kinds.
async fn until_kinds(world: &World, id: i64, wanted: &[&str]) -> Vec<Value> {
    eventually(async || {
        let items = timeline_items(world, id).await;
        let has_all = wanted.iter().all(|kind| kinds(&items).contains(kind));
        if has_all { Ok(items) } else { Err(format!("{:?}\n{}", kinds(&items), world.daemon.stderr_text())) }
    })
    .await
}

fn of_kind<'a>(items: &'a [Value], kind: &str) -> &'a Value {
    items.iter().find(|item| item["kind"] == kind).expect("there is one")
}

pub(super) fn trace(world: &World, args: &[&str]) -> (bool, String, String) {
    let data_dir = world.data_dir();
    let mut command = Command::new(program());
    command.arg("trace").args(args).arg("--data-dir").arg(data_dir);
    let output = command.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

both_engines!(
    a_timeline_shows_dns_answers_smtp_transcripts_and_waits,
    a_timeline_shows_opens_clicks_bounces_and_webhooks,
    the_timeline_of_a_waiting_message_says_why_it_waits,
    the_causes_of_waits_that_are_over_stay_in_the_timeline,
    trace_finds_messages_by_id_token_and_message_id,
    a_message_of_another_server_is_answered_like_an_unknown_one
);

async fn a_timeline_shows_dns_answers_smtp_transcripts_and_waits(engine: Engine) {
    let outside = Outside::new();
    let certificate = PeerTls::With(TestCertificate::for_names(&["mx.shop.example"]));
    let later = Answer::reply("451 4.2.0 Come back later");
    let script = Script::new().with_tls(certificate).first(1, Stage::RcptTo, later);
    let _peer = outside.site("shop.example", script);
    let world = outside.start(engine, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(id, "Sent").await;
    let mut items = timeline_items(&world, id).await;
    // A wait before an attempt, for the DNS or a connection, has `seconds`; on a slow machine there may be some. The
    // pause until the retry has none.
    items.retain(|item| !item["data"]["seconds"].is_number());
    assert_eq!(kinds(&items), ["accepted", "dns", "attempt", "wait", "dns", "attempt"], "{items:#?}");
    let dns = items[1]["data"]["answer"].as_str().unwrap();
    assert!(dns.starts_with("MX 10 mx.shop.example; mx.shop.example is 127.0.0."), "{dns}");
    let first = &items[2]["data"];
    assert_eq!((&first["status"], &first["code"]), (&json!("SoftFail"), &json!(451)));
    let transcript: Vec<&str> =
        first["transcript"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(transcript.contains(&"S: 451 4.2.0 Come back later"), "{transcript:#?}");
    assert!(transcript.iter().any(|line| line.starts_with("-- connected")), "{transcript:#?}");
    assert!(transcript.iter().any(|line| line.starts_with("C: MAIL FROM:<")), "{transcript:#?}");
    assert!(items[3]["data"]["until"].as_str().unwrap().ends_with('Z'));
    assert_eq!(items[5]["data"]["status"], "Sent");
    assert!(items[5]["data"]["tls"].as_str().unwrap().starts_with("TLSv1.3"), "{}", items[5]);
    let text = serde_json::to_string(&items).unwrap();
    assert!(!text.contains("Thank you."), "no content");
    assert!(items.windows(2).all(|pair| pair[0]["at"].as_str() <= pair[1]["at"].as_str()));
}

async fn a_timeline_shows_opens_clicks_bounces_and_webhooks(engine: Engine) {
    let world = World::start(engine);
    let hooks = WebhookCatcher::start();
    let hook = json!({"url": hooks.url("/hook"), "events": ["message.opened", "message.clicked", "message.bounced"]});
    assert_eq!(world.call("/api/v1/webhooks/create", &hook).await["status"], "success");
    let html = "<body><a href='https://example.com/first'>1</a></body>";
    let opened = world.accepted_id(&tracked_html("open+1@sim.postroad.test", html)).await;
    let clicked = world.accepted_id(&tracked_html("click@sim.postroad.test", html)).await;
    let bounced = world.accepted_id(&good_but(json!({"to": ["bounce-later@sim.postroad.test"]}))).await;
    let all = until_kinds(&world, opened, &["accepted", "attempt", "opened", "webhook"]).await;
    assert_eq!(of_kind(&all, "opened")["text"], "Opened");
    let webhook = of_kind(&all, "webhook");
    assert_eq!(
        (&webhook["data"]["event"], &webhook["data"]["status"]),
        (&json!("message.opened"), &json!(200))
    );
    let all = until_kinds(&world, clicked, &["attempt", "clicked", "webhook"]).await;
    assert_eq!(of_kind(&all, "clicked")["text"], "Clicked: https://example.com/first");
    let all = until_kinds(&world, bounced, &["attempt", "webhook"]).await;
    let bounce =
        all.iter().find(|item| item["data"]["status"] == "Bounced").unwrap_or_else(|| panic!("{all:#?}"));
    assert_eq!(bounce["data"]["bounce_class"], "bad_mailbox");
    assert_eq!(of_kind(&all, "webhook")["data"]["event"], "message.bounced");
    assert!(all.windows(2).all(|pair| pair[0]["at"].as_str() <= pair[1]["at"].as_str()));
}

async fn the_timeline_of_a_waiting_message_says_why_it_waits(engine: Engine) {
    let outside = Outside::new();
    let _peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    world.queue(&["suspend", "domain:shop.example", "--reason", "for maintenance"]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let items = timeline_items(&world, id).await;
    let last = items.last().unwrap();
    assert_eq!(last["kind"], "waiting");
    assert!(last["text"].as_str().unwrap().contains("for maintenance"), "{last}");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    world.queue(&["resume", "domain:shop.example"]);
    world.until_status(id, "Sent").await;
    let waits = wait_causes(&world, id).await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert!(
        waits[0].starts_with("mail to shop.example is stopped by the operator: for maintenance"),
        "{waits:?}"
    );
}

async fn the_causes_of_waits_that_are_over_stay_in_the_timeline(engine: Engine) {
    let outside = Outside::new();
    let _peer = outside.site("shop.example", Script::new());
    let world = outside.start(engine, &[]);
    world.call("/api/v1/server/update", &json!({"send_rate": "30/m"})).await;
    let mut ids = Vec::new();
    for name in ["ann", "bob"] {
        ids.push(world.accepted_id(&to(&format!("{name}@shop.example"))).await);
    }
    world.until_status(ids[1], "Sent").await;
    assert_eq!(wait_causes(&world, ids[0]).await, [""; 0]);
    assert_eq!(wait_causes(&world, ids[1]).await, ["the server's send rate of 30/m is used up"]);
    world.admin(&["server", "set-rate", "dev", "none"]);
    let fields = json!({"to": ["cat@shop.example"], "send_at": in_millis(1_000)});
    let suspended = world.accepted_id(&good_but(fields)).await;
    world.admin(&["server", "suspend", "dev", "--reason", "unpaid"]);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    world.admin(&["server", "resume", "dev"]);
    world.until_status(suspended, "Sent").await;
    assert_eq!(wait_causes(&world, suspended).await, ["the sending server is suspended: unpaid"]);
}

async fn trace_finds_messages_by_id_token_and_message_id(engine: Engine) {
    let world = World::start(engine);
    let sent = world.accepted(&good()).await;
    let message = &sent["messages"]["someone@example.com"];
    let (id, token) = (message["id"].as_i64().unwrap(), message["token"].as_str().unwrap());
    world.until_status(id, "Sent").await;
    let by_header = format!("<{}>", sent["message_id"].as_str().unwrap());
    for identifier in [id.to_string().as_str(), token, &by_header] {
        let (is_ok, out, errors) = trace(&world, &[identifier, "--json"]);
        assert!(is_ok, "{errors}");
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(shown[0]["id"], id, "{identifier}");
        assert_eq!(kinds(shown[0]["items"].as_array().unwrap()), kinds(&timeline_items(&world, id).await));
    }
    let (is_ok, out, _) = trace(&world, &[token]);
    assert!(
        is_ok && out.starts_with(&format!("message {id} ({token}) to someone@example.com: Sent\n")),
        "{out}"
    );
    assert!(out.contains("    C: MAIL FROM:<") && !out.contains('\u{1b}'), "{out}");
    // A Message-ID that a sender chose does not say which server sent the message; `trace` finds it in any account.
    world.admin(&["account", "create", "second"]);
    world.admin(&["server", "create", "second", "--account", "second"]);
    world.admin(&["domain", "create", "second.example", "--server", "second"]);
    world.admin(&["domain", "set-verified", "second.example", "--server", "second"]);
    let made = world.admin(&["key", "create", "--server", "second"]);
    let draft =
        good_but(json!({"from": "a@second.example", "headers": {"Message-ID": "<order-7@second.example>"}}));
    let sent = world.call_as(made["api_key"].as_str().unwrap(), SEND, &draft).await;
    let second =
        sent["data"]["messages"]["someone@example.com"]["id"].as_i64().unwrap_or_else(|| panic!("{sent}"));
    let (is_ok, out, errors) = trace(&world, &["<order-7@second.example>", "--json"]);
    assert!(is_ok, "{errors}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((shown.as_array().unwrap().len(), &shown[0]["id"]), (1, &json!(second)));
    let (is_ok, _, errors) = trace(&world, &["nobody"]);
    assert!(!is_ok && errors.contains("no message has the id, token or Message-ID \"nobody\""), "{errors}");
}

async fn a_message_of_another_server_is_answered_like_an_unknown_one(engine: Engine) {
    let world = World::start(engine);
    let id = world.accepted_id(&good()).await;
    world.admin(&["account", "create", "other"]);
    world.admin(&["server", "create", "other", "--account", "other"]);
    let made = world.admin(&["key", "create", "--server", "other"]);
    let key = made["api_key"].as_str().unwrap();
    let mut foreign = world.call_as(key, TIMELINE, &json!({ "id": id })).await;
    let unknown = world.call_as(key, TIMELINE, &json!({ "id": id + 1_000_000 })).await;
    (foreign["time"], foreign["data"]["id"]) = (unknown["time"].clone(), unknown["data"]["id"].clone());
    assert_eq!(foreign, unknown);
    assert_eq!(foreign["data"]["code"], "MessageNotFound");
}
