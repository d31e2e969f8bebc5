//! Complaints: the message keeps its status, and its recipient is suppressed.

use postroad_model::EventKind;
use serde_json::json;

use super::{mail_back, send_and_catch};
use crate::world::{World, both_engines, good_but};

fn complaint(recipient: &str) -> String {
    format!(
        "From: feedback@isp.example\r\nSubject: FW: Your order\r\nMessage-ID: <arf-1@isp.example>\r\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\r\nAn abuse report.\r\n\
         --b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n\
         User-Agent: Isp/1\r\nOriginal-Rcpt-To: <{recipient}>\r\n\r\n--b--\r\n"
    )
}

both_engines!(a_complaint_suppresses_the_recipient_and_the_next_message_is_held);

async fn a_complaint_suppresses_the_recipient_and_the_next_message_is_held(world: World) {
    let mut world = world;
    let sent = send_and_catch(&world, "angry@example.com").await;
    for _ in 0..2 {
        let reply = mail_back(&world, &sent.return_path, &complaint("angry@example.com")).await;
        assert_eq!(reply, "250 2.0.0 OK");
    }
    assert_eq!(world.expanded(sent.id).await["status"]["status"], "Sent");
    let next = world.accepted_id(&good_but(json!({"to": [sent.recipient]}))).await;
    let held = world.until_status(next, "Held").await;
    assert!(held[0]["details"].as_str().unwrap().contains("complaint"), "{held:?}");
    let events = world.events_at_the_end(sent.id).await;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Delivered, EventKind::Complained]);
}
