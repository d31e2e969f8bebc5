//! Bodies of webhook posts. Every attempt to post an event has the same bytes.

mod postal;
mod standard;

use postroad_model::{EventId, EventKind, WebhookFormat};
use postroad_store::FeedEvent;
use serde_json::{Map, Value, json};

pub use standard::standard_body;

/// Id of an event in posts. The id never changes, so that receivers recognise repeated posts by it.
pub fn event_id_text(id: EventId) -> String {
    format!("evt_{}", id.0)
}

/// Body of the event; `None` if the format cannot express the event.
pub fn body(event: &FeedEvent, format: WebhookFormat) -> Option<Vec<u8>> {
    let value = match format {
        WebhookFormat::Standard => standard_body(event),
        WebhookFormat::Postal => postal::postal_body(event)?,
    };
    Some(value.to_string().into_bytes())
}

/// Data of the event beyond its message.
fn event_data(event: &FeedEvent) -> Map<String, Value> {
    let mut data = match serde_json::from_str(&event.data) {
        Ok(Value::Object(data)) => data,
        // The store wrote these rows, so anything else is a bug; posting the event without data is better than
        // posting nothing.
        _ => Map::new(),
    };
    let is_about_send_limit =
        matches!(event.kind, EventKind::SendLimitApproaching | EventKind::SendLimitExceeded);
    if is_about_send_limit && !data.contains_key("server") {
        // Old events do not record whose limit it was.
        data.insert("server".to_owned(), json!({ "id": event.server_id.0 }));
    }
    data
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use postroad_model::{ServerId, Timestamp, postal_events};

    use super::*;
    use crate::sample;

    fn sample_of(kind: EventKind) -> FeedEvent {
        let at = Timestamp::parse_rfc3339("2026-11-15T10:00:00.25Z").unwrap();
        let mut event = sample(ServerId(1), 5_123_456_789_012_345, kind, at);
        event.test = false;
        event
    }

    /// Bounce that came back as a message. In Postal's format, this bounce has another name than a refusal in the SMTP
    /// session.
    fn async_bounce() -> FeedEvent {
        let data = r#"{"status":"Bounced","details":"Sent back later","output":"550 5.1.1 no such user",
            "sent_with_ssl":false,"time":null,"bounce":{"kind":"async","class":"bad_mailbox","code":550,
            "enhanced_code":"5.1.1","diagnostic":"550 5.1.1 no such user","message_id":77,
            "returned":{"token":"BounceToken12345","to":"abc.def@rp.example.org","from":"",
            "subject":"Undelivered Mail","message_id":"dsn-1@mx.example.com"}}}"#;
        let mut event = sample_of(EventKind::Bounced);
        event.data = data.to_owned();
        event
    }

    #[test]
    fn every_event_looks_as_in_the_golden_files() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let mut events: Vec<(String, FeedEvent)> =
            EventKind::ALL.iter().map(|kind| (kind.to_string(), sample_of(*kind))).collect();
        events.push(("message.bounced-async".to_owned(), async_bounce()));
        for format in [WebhookFormat::Standard, WebhookFormat::Postal] {
            for (name, event) in &events {
                let Some(body) = body(event, format) else { continue };
                let value: Value = serde_json::from_slice(&body).unwrap();
                let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
                let path = folder.join(format!("{format}/{name}.json"));
                if std::env::var_os("UPDATE_GOLDEN").is_some() {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(&path, &text).unwrap();
                }
                let golden = std::fs::read_to_string(&path).unwrap_or_default();
                assert_eq!(text, golden, "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
            }
        }
    }

    #[test]
    fn the_body_of_an_event_has_the_same_bytes_at_every_attempt() {
        for kind in EventKind::ALL {
            for format in [WebhookFormat::Standard, WebhookFormat::Postal] {
                assert_eq!(body(&sample_of(*kind), format), body(&sample_of(*kind), format));
            }
        }
    }

    #[test]
    fn there_is_a_postal_golden_file_for_exactly_the_postal_events() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/postal");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut expected: BTreeSet<String> = EventKind::ALL
            .iter()
            .filter(|kind| postal_events().contains(**kind))
            .map(|kind| format!("{kind}.json"))
            .collect();
        expected.insert("message.bounced-async.json".to_owned());
        assert_eq!(files.collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn exactly_the_postal_events_have_a_postal_body() {
        for kind in EventKind::ALL {
            let has_body = body(&sample_of(*kind), WebhookFormat::Postal).is_some();
            assert_eq!(has_body, postal_events().contains(*kind), "{kind}");
        }
    }

    #[test]
    fn a_postal_body_has_exactly_its_four_keys() {
        for event in [sample_of(EventKind::Delivered), async_bounce()] {
            let body = body(&event, WebhookFormat::Postal).unwrap();
            let value: Value = serde_json::from_slice(&body).unwrap();
            let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["event", "timestamp", "payload", "uuid"]);
        }
    }

    #[test]
    fn test_events_are_marked_in_both_formats() {
        let at = Timestamp::parse_rfc3339("2026-11-15T10:00:00Z").unwrap();
        for kind in EventKind::ALL {
            let event = sample(ServerId(1), 7, *kind, at);
            assert_eq!(standard_body(&event)["data"]["test"], true, "{kind}");
            if let Some(postal) = postal::postal_body(&event) {
                assert_eq!(postal["payload"]["test"], true, "{kind}");
            }
            let real = body(&sample_of(*kind), WebhookFormat::Postal).unwrap_or_default();
            assert!(!String::from_utf8(real).unwrap().contains("\"test\""), "{kind}");
        }
    }

    #[test]
    fn an_event_whose_message_was_removed_still_has_the_message_id() {
        let mut event = sample_of(EventKind::Delivered);
        event.message = None;
        assert_eq!(standard_body(&event)["data"]["message"], serde_json::json!({ "id": 1 }));
    }
}
