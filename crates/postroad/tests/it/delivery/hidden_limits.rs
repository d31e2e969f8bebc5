//! Receivers with unpublished limits, over real sockets. The limits have the same form as in the simulated table of
//! `cargo xtask bench pacing`, with seconds instead of minutes.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use postroad_model::{EventKind, MessageId, ServerId};
use postroad_store::Store;
use postroad_testkit::SmtpPeer;
use postroad_testkit::hidden_receiver::{BlockedTime, Greylist, HiddenLimits, RateLimit, RefusedAt, Window};
use postroad_testkit::smtp_peer::{ReceivedMessage, Script};
use serde_json::{Value, json};

use super::limits::until_received;
use super::outside::Outside;
use crate::world::{Engine, SEND, World, both_engines, good_but};

/// Text in the events of a message that `step.example` refused at the end of its data.
const SLOWED: &str = "step.example from this address is slowed to about";

/// A receiver, the number of its messages, and the expected outcome.
struct Receiver {
    domain: &'static str,
    messages: usize,
    limits: HiddenLimits,
    /// Minimum share of its capacity that is used until its last message, in percent. Low, because the machine may be
    /// busy with other tests.
    share_min: f64,
    /// Expected number of refusals by the receiver.
    refusals: RangeInclusive<usize>,
    /// How often each message may be delayed: only by a refusal, never because the message was not offered.
    delays: RangeInclusive<usize>,
}

fn receivers() -> Vec<Receiver> {
    let quick = || HiddenLimits {
        connect_time: Duration::from_millis(20),
        message_time: Duration::from_millis(20),
        ..HiddenLimits::default()
    };
    let rate = |reply: &str| RateLimit {
        per_minute: 60.0,
        window: Window::Bucket { reserve_secs: 25 },
        at: RefusedAt::MailFrom,
        reply: reply.to_owned(),
    };
    let receiver = |domain, messages, limits| Receiver {
        domain,
        messages,
        limits,
        share_min: 50.0,
        refusals: 1..=100,
        delays: 0..=0,
    };
    vec![
        Receiver {
            delays: 0..=3,
            ..receiver(
                "rate.example",
                36,
                HiddenLimits { rate: Some(rate("421 4.7.28 Rate limit exceeded, slow down")), ..quick() },
            )
        },
        Receiver {
            share_min: 25.0,
            // A slow machine may stay within the limit, so that nothing is refused.
            refusals: 0..=100,
            delays: 0..=3,
            ..receiver(
                "step.example",
                36,
                HiddenLimits {
                    rate: Some(RateLimit {
                        at: RefusedAt::EndOfData,
                        ..rate("451 4.7.1 Too many messages, try again slower")
                    }),
                    rate_steps: vec![(Duration::from_secs(4), 180.0)],
                    ..quick()
                },
            )
        },
        Receiver {
            share_min: 25.0,
            refusals: 0..=100,
            delays: 0..=6,
            ..receiver(
                "fall.example",
                34,
                HiddenLimits {
                    rate: Some(RateLimit {
                        at: RefusedAt::Banner,
                        ..rate("451 4.7.1 Too many messages, try again slower")
                    }),
                    rate_steps: vec![(Duration::from_secs(4), 20.0)],
                    ..quick()
                },
            )
        },
        Receiver {
            delays: 0..=6,
            ..receiver(
                "blocked.example",
                30,
                HiddenLimits {
                    blocks: vec![BlockedTime {
                        from: Duration::ZERO,
                        to: Duration::from_secs(6),
                        at: RefusedAt::MailFrom,
                        reply: "421 4.7.0 Your address is temporarily blocked".to_owned(),
                    }],
                    ..quick()
                },
            )
        },
        receiver(
            "connections.example",
            60,
            HiddenLimits {
                connections_max: Some(2),
                connections_reply: "421 4.7.0 too many connections".to_owned(),
                message_time: Duration::from_millis(150),
                ..quick()
            },
        ),
        receiver(
            "late-connections.example",
            40,
            HiddenLimits {
                connections_max: Some(2),
                connections_reply: "421 4.7.0 too many connections".to_owned(),
                connections_refused_at: RefusedAt::MailFrom,
                message_time: Duration::from_millis(100),
                ..quick()
            },
        ),
        receiver("used-up.example", 40, HiddenLimits { messages_per_connection: Some(7), ..quick() }),
        Receiver {
            delays: 1..=1,
            ..receiver(
                "greylist.example",
                30,
                HiddenLimits {
                    greylist: Some(Greylist { wait: Duration::from_secs(2), by_source: true }),
                    ..quick()
                },
            )
        },
        Receiver {
            refusals: 0..=0,
            ..receiver("tarpit.example", 30, HiddenLimits { message_time: Duration::from_secs(2), ..quick() })
        },
    ]
}

/// Sends a message to each of `count` recipients; returns the ids by recipient.
async fn send_all(world: &World, domain: &str, count: usize) -> HashMap<String, i64> {
    let addresses: Vec<String> = (0..count).map(|number| format!("user-{number}@{domain}")).collect();
    let mut ids = HashMap::new();
    for addresses in addresses.chunks(50) {
        let answer = world.call(SEND, &good_but(json!({ "to": addresses }))).await;
        let messages = answer["data"]["messages"].as_object().expect("the send is accepted");
        ids.extend(messages.iter().map(|(address, it)| (address.clone(), it["id"].as_i64().expect("an id"))));
    }
    assert_eq!(ids.len(), count);
    ids
}

/// Asserts that the peer accepted one message for every recipient, exactly once.
fn assert_each_once(peer: &SmtpPeer, ids: &HashMap<String, i64>) {
    let mut acknowledged: HashMap<String, usize> = HashMap::new();
    for message in peer.messages().into_iter().filter(ReceivedMessage::is_acknowledged) {
        *acknowledged.entry(message.rcpt_to[0].clone()).or_default() += 1;
    }
    assert_eq!(acknowledged.len(), ids.len(), "nothing is lost");
    assert!(
        acknowledged.iter().all(|(address, times)| *times == 1 && ids.contains_key(address)),
        "{acknowledged:?}"
    );
}

/// Share of the receiver's capacity that was used until its last message, in percent.
fn share_of_capacity(peer: &SmtpPeer) -> f64 {
    let share = peer.look_at_receiver(|receiver| {
        let first = receiver.accepted.first().expect("it took something").1;
        let last = receiver.accepted.last().expect("it took something").1;
        let reserve = match receiver.limits().rate.as_ref().map(|rate| (rate.per_minute, rate.window)) {
            Some((per_minute, Window::Bucket { reserve_secs })) => {
                per_minute * f64::from(reserve_secs) / 60.0
            }
            _ => 0.0,
        };
        let since_start = |micros: i64| Duration::from_micros(micros as u64);
        let (from, to) = (since_start(first.as_micros()), since_start(last.as_micros()));
        let capacity = reserve + receiver.limits().capacity(from, to);
        if capacity.is_finite() { 100.0 * receiver.accepted.len() as f64 / capacity } else { 100.0 }
    });
    share.expect("the peer has limits")
}

both_engines!(receivers_with_hidden_limits_get_all_their_mail_once);

async fn receivers_with_hidden_limits_get_all_their_mail_once(engine: Engine) {
    let outside = Outside::new();
    let receivers = receivers();
    let peers: Vec<SmtpPeer> = receivers
        .iter()
        .map(|receiver| outside.site(receiver.domain, Script::new().with_limits(receiver.limits.clone())))
        .collect();
    let open = outside.site("open.example", Script::new().offering(&["PIPELINING"]));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "3s")]);
    let mut ids = Vec::new();
    for receiver in &receivers {
        ids.push(send_all(&world, receiver.domain, receiver.messages).await);
    }
    let tarpit = peers.last().expect("there are peers");
    tarpit.wait_until(|record| !record.messages.is_empty()).await;
    let open_ids = send_all(&world, "open.example", 20).await;

    for (receiver, peer) in receivers.iter().zip(&peers) {
        let all = receiver.messages;
        until_received(peer, all).await;
        peer.wait_until(|record| {
            record.messages.iter().filter(|message| message.is_acknowledged()).count() >= all
        })
        .await;
    }
    until_received(&open, 20).await;
    for (receiver, (peer, ids)) in receivers.iter().zip(peers.iter().zip(&ids)) {
        assert_each_once(peer, ids);
        let refused = peer.look_at_receiver(|it| it.refused.len()).unwrap_or_default();
        let share = share_of_capacity(peer);
        eprintln!("{engine:?} {}: {share:.0} % of its capacity, {refused} refusals", receiver.domain);
        assert!(receiver.refusals.contains(&refused), "{}: {refused} refusals", receiver.domain);
        assert!(share >= receiver.share_min, "{}: {share:.0} % of its capacity", receiver.domain);
    }
    assert_each_once(&open, &open_ids);
    // A receiver that takes two seconds for a message delays no other receiver, and gets more than two connections.
    let last_at = |peer: &SmtpPeer| peer.look(|record| record.messages.last().map(|message| message.at));
    assert!(last_at(&open) < last_at(tarpit), "the open site waited for the tarpit");
    assert!(tarpit.open_connections_max() > 2, "{} connections", tarpit.open_connections_max());
    let limited = receivers.iter().position(|receiver| receiver.domain == "connections.example");
    let open_peak = peers[limited.expect("it is in the table")].look_at_receiver(|it| it.open_peak);
    assert_eq!(open_peak, Some(2));

    for id in ids.iter().flat_map(HashMap::values).chain(open_ids.values()) {
        world.until_status(*id, "Sent").await;
    }
    let store = world.stopped_store().await;
    let servers = store.list_servers().await.expect("the store can be read");
    let dev = servers.iter().find(|server| server.name == "dev").expect("`dev` has its server").id;
    for (receiver, (peer, ids)) in receivers.iter().zip(peers.iter().zip(&ids)) {
        let refused = peer.look_at_receiver(|it| it.refused.len()).unwrap_or_default();
        let mut delays = Vec::new();
        for (address, id) in ids {
            let of_message = delays_before_delivery(&store, dev, MessageId(*id)).await;
            let times = of_message.len();
            assert!(receiver.delays.contains(&times), "{address} was delayed {times} times");
            delays.extend(of_message);
        }
        assert!(delays.len() <= refused, "{}: {} delays, {refused} refusals", receiver.domain, delays.len());
        if receiver.domain == "step.example" && refused > 0 {
            assert!(delays.iter().any(|event| event.contains(SLOWED)), "{delays:?}");
        }
    }
    for id in open_ids.values() {
        assert_eq!(delays_before_delivery(&store, dev, MessageId(*id)).await, [""; 0]);
    }
}

/// Returns the delay events of a message. Asserts that a refusal caused each, and that one delivery came last.
async fn delays_before_delivery(store: &Store, server: ServerId, id: MessageId) -> Vec<String> {
    let events = store.list_events(server, id).await.expect("the store can be read");
    let [accepted, delayed @ .., delivered] = &events[..] else { panic!("{events:?}") };
    let ends = (accepted.kind, delivered.kind);
    assert_eq!(ends, (EventKind::Accepted, EventKind::Delivered), "{events:?}");
    for event in delayed {
        assert_eq!(event.kind, EventKind::Delayed, "{events:?}");
        let data: Value = serde_json::from_str(&event.data).expect("events hold JSON");
        let code = data["attempt"]["code"].as_u64().or(data["code"].as_u64());
        assert!(code.is_some_and(|code| (400..500).contains(&code)), "it was not offered: {data}");
    }
    delayed.iter().map(|event| event.data.clone()).collect()
}
