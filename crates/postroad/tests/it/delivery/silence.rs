//! Peers that stop answering, at each moment at which a peer can.

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::Value;

use super::outcomes::assert_pause;
use super::outside::{Outside, to};
use crate::world::Engine;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_peer_is_left_and_tried_again() {
    let outside = Outside::new();
    let stages = [
        (Stage::Banner, "banner"),
        (Stage::Ehlo, "ehlo"),
        (Stage::MailFrom, "mail_from"),
        (Stage::RcptTo, "rcpt_to"),
        (Stage::Data, "data"),
        (Stage::Message, "final"),
    ];
    let silent_once = |stage| Script::new().first(1, stage, Answer::stall());
    let sites = stages.map(|(stage, phase)| {
        let domain = format!("{}.example", phase.replace('_', "-"));
        (outside.site(&domain, silent_once(stage)), domain, phase)
    });
    let envs =
        [("POSTROAD_DELIVERY_REPLY_TIMEOUT", "700ms"), ("POSTROAD_DELIVERY_FINAL_REPLY_TIMEOUT", "700ms")];
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for (_, domain, _) in &sites {
        ids.push(world.accepted_id(&to(&format!("ann@{domain}"))).await);
    }
    for ((peer, domain, phase), id) in sites.iter().zip(ids) {
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 2, "{phase}: {deliveries:#?}");
        let left = &deliveries[0];
        assert_eq!(left["status"], "SoftFail");
        assert_eq!(left["bounce_class"], "timeout", "{left}");
        assert_eq!((&left["code"], &left["output"]), (&Value::Null, &"".into()));
        let details = left["details"].as_str().unwrap();
        assert!(details.ends_with(&format!("the server did not answer in time ({phase})")), "{details}");
        assert!(details.contains(&format!("mx.{domain}")), "{details}");
        assert!(left["time"].as_f64().is_some_and(|time| (0.7..5.0).contains(&time)), "{left}");
        assert_pause(left, 0.3);
        // Only where the whole message was out may it have arrived.
        assert_eq!(left["possible_duplicate"], *phase == "final", "{left}");
        assert_eq!(peer.messages().len(), if *phase == "final" { 2 } else { 1 });
        assert_eq!(peer.connections().len(), 2, "{phase}");
    }
}
