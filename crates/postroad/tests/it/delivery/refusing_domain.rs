//! One domain of a shared mail host refuses everything by its own policy: only mail to that domain is slowed. The
//! same case as the row "one domain refuses" of `cargo xtask bench pacing`, but over real sockets.

use std::time::Duration;

use postroad_model::{EventKind, MessageId};
use postroad_testkit::eventually;
use postroad_testkit::hidden_receiver::HiddenLimits;
use postroad_testkit::smtp_peer::{ReceivedMessage, Script};
use serde_json::{Value, json};

use super::fairness::create_second_server;
use super::limits::write_providers_file;
use super::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

const REFUSING: &str = "picky.example";
const OTHERS: [&str; 3] = ["calm.example", "glad.example", "warm.example"];
const REFUSED_MESSAGES: usize = 12;
/// Number of messages to each of `OTHERS`, from each sender.
const OTHER_MESSAGES: usize = 10;
/// Time in which all mail to `OTHERS` arrives, with much to spare: a stop of the whole provider lasts for minutes.
const OTHERS_ARRIVAL_MAX: Duration = Duration::from_secs(20);

/// Sends to the domain; returns the ids of the messages.
async fn send(world: &World, key: &str, from: &str, domain: &str, count: usize) -> Vec<i64> {
    let local = from.replace('@', "-at-");
    let to: Vec<String> = (0..count).map(|number| format!("{local}-{number}@{domain}")).collect();
    let answer = world.call_as(key, SEND, &good_but(json!({ "from": from, "to": to }))).await;
    let messages = answer["data"]["messages"].as_object().expect("the send is accepted");
    messages.values().map(|message| message["id"].as_i64().expect("an id")).collect()
}

/// Waits until `queue show` says of a message that the refusing domain has refused everything.
async fn until_stopped(world: &World, ids: &[i64]) {
    eventually(async || {
        let shown: Vec<Value> = ids.iter().map(|id| world.queue(&["show", &id.to_string()])).collect();
        let is_stopped = |shown: &Value| {
            shown["why"].as_str().is_some_and(|why| why.contains("picky.example has refused everything"))
        };
        if shown.iter().any(is_stopped) { Ok(()) } else { Err(format!("not stopped: {shown:#?}")) }
    })
    .await;
}

both_engines!(a_refusing_domain_slows_no_other_domain_of_its_provider);

async fn a_refusing_domain_slows_no_other_domain_of_its_provider(engine: Engine) {
    let outside = Outside::new();
    let reply = "550 5.7.1 Message rejected due to policy".to_owned();
    let limits = HiddenLimits {
        refused_domains: vec![(REFUSING.to_owned(), reply)],
        connect_time: Duration::from_millis(20),
        message_time: Duration::from_millis(20),
        ..HiddenLimits::default()
    };
    let peer = outside.host("mx.provider.example", Script::new().with_limits(limits));
    for domain in OTHERS.into_iter().chain([REFUSING]) {
        outside.dns.mx(domain, 10, "mx.provider.example");
    }
    let file = write_providers_file("[large]\nmx = [\"provider.example\"]\n");
    let envs = [
        ("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap()),
        ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "2s"),
    ];
    let mut world = outside.start(engine, &envs);
    let second = create_second_server(&world);
    let senders = [(world.key.clone(), "shop@example.test"), (second, "news@second.test")];
    let (key, from) = &senders[0];
    let refused = send(&world, key, from, REFUSING, REFUSED_MESSAGES).await;
    until_stopped(&world, &refused).await;

    let begin = tokio::time::Instant::now();
    let mut others = Vec::new();
    for domain in OTHERS {
        for (key, from) in &senders {
            others.extend(send(&world, key, from, domain, OTHER_MESSAGES).await);
        }
    }
    peer.wait_until(|record| {
        record.messages.iter().filter(|message| message.is_acknowledged()).count() >= others.len()
    })
    .await;
    assert!(begin.elapsed() < OTHERS_ARRIVAL_MAX, "the others took {:?}", begin.elapsed());
    let taken = peer.messages().into_iter().filter(ReceivedMessage::is_acknowledged).count();
    assert_eq!(taken, others.len(), "each message once, and none to the refusing domain");
    let refusals = peer.look_at_receiver(|receiver| receiver.refused.len()).expect("the peer has limits");
    eprintln!("{engine:?}: the others took {:?}; {refusals} refusals", begin.elapsed());
    assert!(refusals < REFUSED_MESSAGES, "the refusing domain was not slowed: {refusals} refusals");
    let store = world.stopped_store().await;
    let events_of = async |id: i64| {
        let mut events = Vec::new();
        for server in store.list_servers().await.expect("the store can be read") {
            events.extend(store.list_events(server.id, MessageId(id)).await.expect("the store can be read"));
        }
        events
    };
    let mut event_texts = Vec::new();
    for id in refused {
        event_texts.extend(events_of(id).await.iter().map(|event| event.data.clone()));
    }
    let conclusion = "mail to picky.example is stopped, and one message at a time tries again";
    assert!(event_texts.iter().any(|event| event.contains(conclusion)), "{event_texts:?}");
    for id in others {
        let events = events_of(id).await;
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Accepted, EventKind::Delivered], "{events:?}");
    }
}
