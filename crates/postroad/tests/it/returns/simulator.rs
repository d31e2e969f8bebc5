//! The simulator's recipients `bounce-later@` and `complaint@` return a bounce or a complaint by SMTP.

use postroad_model::EventKind;
use serde_json::{Value, json};

use crate::world::{World, both_engines, good_but};

both_engines!(a_simulated_bounce_comes_back_by_smtp, a_simulated_complaint_comes_back_by_smtp);

async fn a_simulated_bounce_comes_back_by_smtp(world: World) {
    let mut world = world;
    let to = |name: &str| good_but(json!({"to": [format!("{name}@sim.postroad.test")]}));
    let bounced = world.accepted_id(&to("bounce-later+order-7")).await;
    let deliveries = world.until_status(bounced, "Bounced").await;
    assert_eq!((&deliveries[0]["status"], deliveries.len()), (&json!("Sent"), 2));
    assert_eq!(
        (&deliveries[1]["bounce_class"], &deliveries[1]["code"]),
        (&json!("bad_mailbox"), &json!(550))
    );
    let pause = deliveries[1]["timestamp"].as_f64().unwrap() - deliveries[0]["timestamp"].as_f64().unwrap();
    assert!(pause > 0.5, "{pause}");
    // A simulated bounce suppresses nobody.
    let again = world.accepted_id(&to("bounce-later+order-7")).await;
    world.until_status(again, "Bounced").await;
    let events = world.events_at_the_end(bounced).await;
    let data: Value = serde_json::from_str(&events[2].data).unwrap();
    assert_eq!((events[2].kind, &data["bounce"]["kind"]), (EventKind::Bounced, &json!("async")));
}

async fn a_simulated_complaint_comes_back_by_smtp(world: World) {
    let mut world = world;
    let body = good_but(json!({"to": ["complaint@sim.postroad.test"]}));
    let id = world.accepted_id(&body).await;
    world.until_status(id, "Sent").await;
    world.until_logged("kind=\"complaint\"").await;
    let again = world.accepted_id(&body).await;
    world.until_status(again, "Sent").await;
    let kinds: Vec<EventKind> = world.events_at_the_end(id).await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Delivered, EventKind::Complained]);
}
