//! Body in the format `standard`. The endpoint events/list returns events in the same form.

use postroad_store::{EventMessage, FeedEvent};
use serde_json::{Map, Value, json};

use super::{event_data, event_id_text};

/// Body with the keys `type`, `timestamp`, `id`, `seq` and `data`.
pub fn standard_body(event: &FeedEvent) -> Value {
    let mut data = Map::new();
    if event.kind.is_about_message() {
        let message = match &event.message {
            Some(message) => message_object(message, event.test),
            // The message was removed, for example by retention.
            None => json!({ "id": event.message_id.0 }),
        };
        data.insert("message".to_owned(), message);
    }
    if event.test {
        data.insert("test".to_owned(), true.into());
    }
    for (key, value) in event_data(event) {
        data.entry(key).or_insert(value);
    }
    json!({
        "type": event.kind.as_str(),
        "timestamp": event.at.to_rfc3339(),
        "id": event_id_text(event.id),
        "seq": event.seq,
        "data": data,
    })
}

fn message_object(message: &EventMessage, test: bool) -> Value {
    json!({
        "id": message.id.0,
        "token": message.token.0,
        "direction": message.direction.as_str(),
        "message_id": message.message_id,
        "to": message.rcpt_to,
        "from": message.mail_from,
        "subject": message.subject,
        "timestamp": message.accepted_at.to_rfc3339(),
        "tag": message.tag,
        "metadata": message.metadata,
        "size": message.size,
        "bounce": message.bounce,
        "test": test,
    })
}
