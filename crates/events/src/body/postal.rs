//! Body in the format `postal`, for receivers written for Postal's webhooks.

use aws_lc_rs::digest::{SHA256, digest};
use postroad_model::{EventKind, Timestamp};
use postroad_store::{EventMessage, FeedEvent};
use serde_json::{Map, Value, json};

use super::event_data;

/// Body with the keys `event`, `timestamp`, `payload` and `uuid`; `None` for events that Postal does not have.
pub(super) fn postal_body(event: &FeedEvent) -> Option<Value> {
    let data = event_data(event);
    let name = postal_event_name(event.kind, &data)?;
    let mut payload = payload(name, event, &data);
    // The test mark goes into the payload: the top level may have only these four keys.
    if let (true, Some(payload)) = (event.test, payload.as_object_mut()) {
        payload.insert("test".to_owned(), true.into());
    }
    Some(json!({
        "event": name,
        "timestamp": event.at.as_epoch_seconds(),
        "payload": payload,
        "uuid": uuid(event),
    }))
}

/// Postal's name of an event. A bounce that came back as a message has another name than a refusal in the SMTP session.
fn postal_event_name(kind: EventKind, data: &Map<String, Value>) -> Option<&'static str> {
    if kind == EventKind::Bounced && is_async(data) { Some("MessageBounced") } else { kind.postal_name() }
}

fn is_async(data: &Map<String, Value>) -> bool {
    data.get("bounce").and_then(|bounce| bounce.get("kind")).is_some_and(|kind| kind == "async")
}

fn payload(name: &str, event: &FeedEvent, data: &Map<String, Value>) -> Value {
    let field = |key: &str| data.get(key).cloned().unwrap_or(Value::Null);
    let message = || match &event.message {
        Some(message) => message_object(message),
        None => json!({ "id": event.message_id.0 }),
    };
    match name {
        "MessageBounced" => {
            json!({ "original_message": message(), "bounce": bounce_object(event, &field("bounce")) })
        }
        "MessageLinkClicked" => json!({
            "message": message(),
            "url": field("url"),
            "token": field("token"),
            "ip_address": field("ip_address"),
            "user_agent": field("user_agent"),
        }),
        "MessageLoaded" => json!({
            "message": message(),
            "ip_address": field("ip_address"),
            "user_agent": field("user_agent"),
        }),
        "DomainDNSError" => domain_object(event, data),
        _ if event.kind.is_about_message() => json!({
            "message": message(),
            "status": field("status"),
            "details": field("details"),
            "output": data.get("output").cloned().unwrap_or_else(|| "".into()),
            "sent_with_ssl": data.get("sent_with_ssl").cloned().unwrap_or_else(|| false.into()),
            "timestamp": event.at.as_epoch_seconds(),
            "time": field("time"),
        }),
        _ => Value::Object(data.clone()),
    }
}

fn message_object(message: &EventMessage) -> Value {
    json!({
        "id": message.id.0,
        "token": message.token.0,
        "direction": message.direction.as_str(),
        "message_id": message.message_id,
        "to": message.rcpt_to,
        "from": message.mail_from,
        "subject": message.subject,
        "timestamp": message.accepted_at.as_epoch_seconds(),
        "spam_status": "NotChecked",
        "tag": message.tag,
    })
}

/// The returned message, which messages/message shows by its id. Fields that old events do not record are null.
fn bounce_object(event: &FeedEvent, bounce: &Value) -> Value {
    let field = |key: &str| bounce.get(key).cloned().unwrap_or(Value::Null);
    let returned = |key: &str| bounce["returned"].get(key).cloned().unwrap_or(Value::Null);
    json!({
        "id": field("message_id"),
        "token": returned("token"),
        "direction": "incoming",
        "message_id": returned("message_id"),
        "to": returned("to"),
        "from": returned("from"),
        "subject": returned("subject"),
        "timestamp": event.at.as_epoch_seconds(),
        "spam_status": "NotChecked",
        "tag": null,
        "class": field("class"),
        "code": field("code"),
        "enhanced_code": field("enhanced_code"),
        "diagnostic": field("diagnostic"),
    })
}

/// Domain in Postal's form. The statuses are `OK`, `Missing` and `Invalid`; MX records are not checked.
fn domain_object(event: &FeedEvent, data: &Map<String, Value>) -> Value {
    let name = data.get("domain").and_then(|domain| domain.get("name")).cloned().unwrap_or(Value::Null);
    let server = data.get("server").cloned().unwrap_or(Value::Null);
    let records = data.get("records").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // There is a DKIM record for each key: prefer the required record.
    let record = |purpose: &str| {
        let mut of_purpose = records.iter().filter(|record| record["purpose"] == purpose);
        let first = of_purpose.clone().next();
        of_purpose.find(|record| record["required"] == true).or(first)
    };
    let status = |purpose: &str| {
        let status = record(purpose)?.get("status")?.as_str()?;
        Some(match status {
            "verified" => "OK",
            "missing" => "Missing",
            "mismatch" | "multiple" => "Invalid",
            _ => return None,
        })
    };
    let error = |purpose: &str| match status(purpose) {
        Some("OK") | None => Value::Null,
        Some(_) => record(purpose).map_or(Value::Null, |record| record["hint"].clone()),
    };
    let checked_at = data.get("checked_at").and_then(Value::as_str).and_then(Timestamp::parse_rfc3339);
    json!({
        "domain": name,
        "uuid": uuid_of(&format!("postroad domain {} {name}", event.server_id.0)),
        "dns_checked_at": checked_at.unwrap_or(event.at).as_epoch_seconds(),
        "spf_status": status("spf"),
        "spf_error": error("spf"),
        "dkim_status": status("dkim"),
        "dkim_error": error("dkim"),
        "mx_status": null,
        "mx_error": null,
        "return_path_status": status("return_path"),
        "return_path_error": error("return_path"),
        "server": {
            "uuid": uuid_of(&format!("postroad server {}", event.server_id.0)),
            "name": server["name"],
            "permalink": server["name"],
            "organization": server["account"],
        },
    })
}

/// UUID of an event, derived from its id, so that it is equal at every attempt and on every node.
fn uuid(event: &FeedEvent) -> String {
    uuid_of(&format!("postroad event {} {}", event.server_id.0, event.id.0))
}

fn uuid_of(text: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(&SHA256, text.as_bytes()).as_ref()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
