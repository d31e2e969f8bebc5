//! Limits that a node has learned about a receiver are still known after the node's restart, and on other nodes.

use std::time::Duration;

use postroad_testkit::SmtpPeer;
use postroad_testkit::eventually;
use postroad_testkit::hidden_receiver::{Greylist, HiddenLimits};
use postroad_testkit::postgres::Database;
use postroad_testkit::smtp_peer::Script;
use serde_json::json;

use super::limits::until_received;
use super::outside::{Outside, to};
use crate::world::{Engine, World, both_engines, good_but};

const MESSAGES: usize = 40;

/// Starts a site that accepts two connections at once, and refuses a third with `too many connections`.
fn start_narrow_site(outside: &Outside) -> SmtpPeer {
    let limits = HiddenLimits {
        connections_max: Some(2),
        connections_reply: "421 4.7.0 too many connections".to_owned(),
        connect_time: Duration::from_millis(20),
        message_time: Duration::from_millis(100),
        ..HiddenLimits::default()
    };
    outside.site("narrow.example", Script::new().with_limits(limits))
}

/// Sends the messages of a round; returns how often the site has refused a connection since the start.
async fn refusals_after_sending(world: &World, site: &SmtpPeer, round: usize) -> usize {
    let recipients: Vec<String> =
        (0..MESSAGES).map(|number| format!("user-{round}-{number}@narrow.example")).collect();
    world.accepted(&good_but(json!({ "to": recipients }))).await;
    until_received(site, MESSAGES * round).await;
    site.look_at_receiver(|receiver| receiver.refused.len()).unwrap_or_default()
}

fn learned_about(world: &World, name: &str) -> String {
    let stats = world.queue(&["stats"]);
    let paths = stats["engine"]["paths"].as_array().expect("paths in use");
    let path = paths.iter().find(|path| path["site"].as_str().is_some_and(|site| site.contains(name)));
    path.and_then(|path| path["learned"].as_str()).unwrap_or_default().to_owned()
}

both_engines!(
    a_learned_limit_survives_a_restart,
    greylisting_is_learned_from_a_message_that_waited_over_a_restart
);

async fn a_learned_limit_survives_a_restart(engine: Engine) {
    let outside = Outside::new();
    let site = start_narrow_site(&outside);
    let mut world = outside.start(engine, &[]);
    let before = refusals_after_sending(&world, &site, 1).await;
    assert!(before > 0, "the limit was found");
    let learned = "it seems to take at most 2 connections";
    assert_eq!(
        learned_about(&world, "narrow"),
        format!("{learned} (it said: 421 4.7.0 too many connections)")
    );

    world.daemon.terminate();
    world.restart();
    let sending = refusals_after_sending(&world, &site, 2);
    // While mail is sent, because only paths in use are listed.
    let looking = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        learned_about(&world, "narrow")
    };
    let (after, remembered) = tokio::join!(sending, looking);
    assert_eq!(after, before, "no connection beyond the limit was tried again");
    assert_eq!(remembered, learned);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_knows_a_learned_limit() {
    let outside = Outside::new();
    let site = start_narrow_site(&outside);
    let database = Database::create();
    let url = database.url().to_owned();
    let mut first = outside.start_on(&url, None, &[("POSTROAD_HOSTNAME", "one.mail.example")]);
    let before = refusals_after_sending(&first, &site, 1).await;
    assert!(before > 0, "the limit was found");
    first.daemon.terminate();

    let second = outside.start_on(&url, None, &[("POSTROAD_HOSTNAME", "two.mail.example")]);
    let after = refusals_after_sending(&second, &site, 2).await;
    assert_eq!(after, before, "the other node tried no connection beyond the limit");
}

async fn greylisting_is_learned_from_a_message_that_waited_over_a_restart(engine: Engine) {
    let outside = Outside::new();
    let greylist = Some(Greylist { wait: Duration::from_secs(5), by_source: false });
    let limits = HiddenLimits { greylist, ..HiddenLimits::default() };
    let site = outside.site("grey.example", Script::new().with_limits(limits));
    let mut world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "12s")]);
    let id = world.accepted_id(&to("ann@grey.example")).await;
    world.until_deliveries(id, 1).await;

    world.daemon.terminate();
    world.restart();
    world.until_status(id, "Sent").await;
    eventually(async || {
        let learned = learned_about(&world, "grey");
        if learned.contains("s of greylisting") { Ok(()) } else { Err(learned) }
    })
    .await;
    assert_eq!(site.look_at_receiver(|receiver| receiver.refused.len()), Some(1));
}
