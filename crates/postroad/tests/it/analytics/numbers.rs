//! Mail with all kinds of outcomes, and the numbers that the endpoints return.

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::{MESSAGE, SUMMARY, TIMESERIES, TOP, call_analytics, until_counted};
use crate::delivery::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

fn mail(to: &str, tag: &str) -> Value {
    good_but(json!({"to": [to], "tag": tag}))
}

/// Sends two messages to Google's host, a refused one, one held because that refusal suppressed its recipient, a
/// simulated one and one in test mode. Returns the id of the first message, which is deferred once.
async fn send_some_of_each(world: &World) -> i64 {
    let deferred = world.accepted_id(&mail("bob@corp.example", "news")).await;
    world.until_status(deferred, "Sent").await;
    let sent = world.accepted_id(&mail("ann@corp.example", "welcome")).await;
    world.until_status(sent, "Sent").await;
    let refused = world.accepted_id(&mail("gone@left.example", "news")).await;
    world.until_status(refused, "HardFail").await;
    let held = world.accepted_id(&mail("gone@left.example", "news")).await;
    world.until_status(held, "Held").await;
    let simulated = world.accepted_id(&mail("delivered@sim.postroad.test", "news")).await;
    world.until_status(simulated, "Sent").await;
    world.call_with(SEND, &[("X-Test-Mode", "true")], &mail("cid@corp.example", "news")).await;
    deferred
}

/// Starts a host of Google that defers the first recipient, and a host that refuses all recipients.
fn start_receivers() -> (Outside, Vec<postroad_testkit::SmtpPeer>) {
    let outside = Outside::new();
    outside.dns.mx("corp.example", 10, "aspmx.l.google.com");
    let deferral = Answer::reply("451 4.3.0 later");
    let corp = outside.host("aspmx.l.google.com", Script::new().first(1, Stage::RcptTo, deferral));
    let refusal = Answer::reply("550 5.1.1 no such user");
    let left = outside.site("left.example", Script::new().on(Stage::RcptTo, refusal));
    (outside, vec![corp, left])
}

both_engines!(
    counts_match_the_outcomes_of_the_messages,
    counts_survive_a_crash,
    a_server_sees_its_own_numbers_only
);

async fn counts_match_the_outcomes_of_the_messages(engine: Engine) {
    let (outside, _peers) = start_receivers();
    let world = outside.start(engine, &[]);
    let deferred = send_some_of_each(&world).await;
    let summary = until_counted(&world, "held", 1).await;
    // Simulated messages and messages in test mode are not counted.
    let expected = json!({
        "accepted": 4, "sent": 2, "soft_fail": 1, "hard_fail": 1, "bounced": 0, "held": 1, "complained": 0,
        "opened": 0, "unique_opened": 0, "clicked": 0, "unique_clicked": 0, "unsubscribed": 0,
    });
    for (metric, count) in expected.as_object().unwrap() {
        assert_eq!(summary[metric], *count, "{metric}: {summary:#}");
    }
    let rates = &summary["rates"];
    assert_eq!((&rates["delivery_rate"], &rates["bounce_rate"]), (&json!(0.666_667), &json!(0.333_333)));
    assert_eq!((&rates["complaint_rate"], &rates["open_rate"]), (&json!(0.0), &json!(0.0)));
    let latency = &summary["latency"];
    assert!(latency["first_attempt"]["p50"].as_f64().is_some_and(|p50| p50 < 5.0), "{latency}");
    assert!(latency["sent"]["p99"].as_f64() >= latency["sent"]["p50"].as_f64(), "{latency}");

    let tagged = call_analytics(&world, SUMMARY, &json!({"tag": "welcome"})).await;
    assert_eq!((&tagged["accepted"], &tagged["sent"]), (&json!(1), &json!(1)));
    let without_messages = call_analytics(&world, SUMMARY, &json!({"domain": "other.example"})).await;
    assert_eq!(
        (&without_messages["accepted"], &without_messages["rates"]["delivery_rate"]),
        (&json!(0), &Value::Null)
    );

    let by_provider = call_analytics(
        &world,
        TIMESERIES,
        &json!({"granularity": "hour", "dimensions": ["recipient_provider"]}),
    )
    .await;
    let sums: Vec<(&str, u64, u64)> = by_provider["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| {
            let sum = |metric: &str| {
                series["points"].as_array().unwrap().iter().map(|point| point[metric].as_u64().unwrap()).sum()
            };
            (series["recipient_provider"].as_str().unwrap(), sum("accepted"), sum("sent"))
        })
        .collect();
    // The provider is known after the first look-up of the hosts; messages counted before that count as `other`.
    assert_eq!(sums.iter().map(|(.., sent)| sent).sum::<u64>(), 2, "{sums:?}");
    assert!(sums.iter().any(|(provider, _, sent)| *provider == "google" && *sent >= 1), "{sums:?}");

    let top = call_analytics(&world, TOP, &json!({"dimension": "recipient_domain", "metric": "sent"})).await;
    let items = top["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{top:#}");
    assert_eq!(
        (&items[0]["value"], &items[0]["sent"], &items[0]["soft_fail"]),
        (&json!("corp.example"), &json!(2), &json!(1))
    );
    let top =
        call_analytics(&world, TOP, &json!({"dimension": "tag", "filters": {"domain": ["example.test"]}}))
            .await;
    let tags: Vec<&Value> = top["items"].as_array().unwrap().iter().map(|item| &item["value"]).collect();
    assert_eq!(tags, ["news", "welcome"]);

    let message = call_analytics(&world, MESSAGE, &json!({"id": deferred})).await;
    assert_eq!(
        (&message["status"], &message["attempts"], &message["soft_fail"]),
        (&json!("Sent"), &json!(2), &json!(1))
    );
    assert!(
        message["latency"]["sent"].as_f64() > message["latency"]["first_attempt"].as_f64(),
        "{message:#}"
    );
    assert_eq!((&message["opened"], &message["links"]), (&json!(0), &json!([])));
}

async fn counts_survive_a_crash(engine: Engine) {
    let (outside, _peers) = start_receivers();
    let mut world = outside.start(engine, &[]);
    for number in 0..5 {
        let id = world.accepted_id(&mail(&format!("u{number}@corp.example"), "welcome")).await;
        world.until_status(id, "Sent").await;
    }
    until_counted(&world, "sent", 5).await;
    let id = world.accepted_id(&mail("last@corp.example", "welcome")).await;
    world.until_status(id, "Sent").await;
    world.crash_and_restart();
    let summary = until_counted(&world, "sent", 6).await;
    assert_eq!(summary["accepted"], 6);
}

async fn a_server_sees_its_own_numbers_only(engine: Engine) {
    let world = World::start(engine);
    let id = world.accepted_id(&mail("ann@corp.example", "welcome")).await;
    until_counted(&world, "accepted", 1).await;
    world.admin(&["server", "create", "other", "--account", "dev"]);
    let made = world.admin(&["key", "create", "--server", "other", "--scope", "read"]);
    let key = made["api_key"].as_str().unwrap();
    let theirs = world.call_as(key, SUMMARY, &json!({})).await;
    assert_eq!((&theirs["status"], &theirs["data"]["accepted"]), (&json!("success"), &json!(0)));
    for dimension in ["recipient_domain", "tag"] {
        let top = world.call_as(key, TOP, &json!({ "dimension": dimension })).await;
        assert_eq!(top["data"]["items"], json!([]));
    }
    let foreign = world.call_as(key, MESSAGE, &json!({ "id": id })).await;
    let unknown = world.call_as(key, MESSAGE, &json!({ "id": 1 })).await;
    assert_eq!((&foreign["data"]["code"], &foreign["data"]["id"]), (&json!("MessageNotFound"), &json!(id)));
    assert_eq!(foreign["data"]["message"], unknown["data"]["message"]);
    let (_, sender) = world.new_key(&["--scope", "send"]);
    let denied = world.call_as(&sender, SUMMARY, &json!({})).await;
    assert_eq!(denied["data"]["code"], "AccessDenied");
}
