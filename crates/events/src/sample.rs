//! Sample event of each type, for webhooks/test and for the golden files of the formats.

use std::collections::BTreeMap;

use postroad_model::{Direction, EventId, EventKind, MessageId, MessageToken, ServerId, Timestamp};
use postroad_store::{EventMessage, FeedEvent};
use serde_json::{Value, json};

/// Builds a sample that is marked as a test.
pub fn sample(server_id: ServerId, id: i64, kind: EventKind, at: Timestamp) -> FeedEvent {
    let message_id = MessageId(i64::from(kind.is_about_message()));
    FeedEvent {
        server_id,
        id: EventId(id),
        message_id,
        seq: if kind == EventKind::Accepted || message_id.0 == 0 { 1 } else { 2 },
        at,
        test: true,
        kind,
        data: data(kind).to_string(),
        message: kind.is_about_message().then(|| message(message_id, at)),
    }
}

fn message(id: MessageId, at: Timestamp) -> EventMessage {
    EventMessage {
        id,
        token: MessageToken("SampleToken12345".to_owned()),
        rcpt_to: "recipient@example.com".to_owned(),
        mail_from: "sender@example.org".to_owned(),
        message_id: "b4cbc7c0-sample@rp.example.org".to_owned(),
        subject: "A sample".to_owned(),
        tag: Some("sample".to_owned()),
        metadata: BTreeMap::from([("order".to_owned(), "4711".to_owned())]),
        direction: Direction::Outgoing,
        size: 1_024,
        bounce: false,
        accepted_at: at,
    }
}

fn data(kind: EventKind) -> Value {
    match kind {
        EventKind::Accepted => json!({}),
        EventKind::Released => json!({ "status": "Pending" }),
        EventKind::Cancelled => {
            json!({ "status": "HoldCancelled", "details": "The hold ended without a release" })
        }
        EventKind::Delivered => attempt("Sent", "Message for recipient@example.com accepted", "250 2.0.0 OK"),
        EventKind::Delayed => {
            attempt("SoftFail", "Greylisted, tried again soon", "451 4.7.1 Try again later")
        }
        EventKind::Bounced => {
            let mut data = attempt("HardFail", "The mailbox does not exist", "550 5.1.1 User unknown");
            data["bounce"] = json!({
                "kind": "sync",
                "class": "bad_mailbox",
                "code": 550,
                "enhanced_code": "5.1.1",
                "diagnostic": "550 5.1.1 User unknown",
            });
            data
        }
        EventKind::Failed => attempt("HardFail", "Given up after 48 hours", ""),
        EventKind::Held => json!({
            "status": "Held",
            "details": "The address is suppressed: complaint since 2026-11-01T12:00:00Z",
            "reason": "suppressed",
            "suppression": { "reason": "complaint", "since": "2026-11-01T12:00:00Z" },
        }),
        EventKind::Complained => json!({
            "details": "Called spam by its recipient",
            "complaint": { "reporting_mta": "mx.example.com", "diagnostic": "abuse", "message_id": 2 },
        }),
        EventKind::Opened => open_or_click(&json!({})),
        EventKind::Clicked => open_or_click(&json!({ "url": "https://example.org/offer" })),
        EventKind::Unsubscribed => json!({ "ip_address": "192.0.2.1", "user_agent": "Mozilla/5.0" }),
        EventKind::DomainVerified => {
            json!({ "domain": { "name": "example.org" }, "verified_at": "2026-11-15T12:00:00Z" })
        }
        EventKind::DomainFailing => json!({
            "domain": { "name": "example.org" },
            "failing_since": "2026-11-15T12:00:00Z",
            "sending_stops_at": "2026-11-18T12:00:00Z",
            "checked_at": "2026-11-15T12:00:00Z",
            "records": [
                record("spf", "example.org", true, "verified", None),
                record("dkim", "pr-a1b2c3d4._domainkey.example.org", true, "missing", Some("Publish this record")),
                record("dmarc", "_dmarc.example.org", true, "verified", None),
                record("return_path", "rp.example.org", false, "verified", None),
                record("tracking", "track.example.org", false, "missing", Some("Publish this record")),
            ],
            "server": { "id": 1, "name": "shop", "account": "acme" },
        }),
        EventKind::SendLimitApproaching => limit(900),
        EventKind::SendLimitExceeded => limit(1_000),
        EventKind::WebhookDisabled => {
            json!({ "webhook": { "id": 1, "url": "https://example.org/hook", "reason": "410 Gone" } })
        }
        EventKind::IpWarmupPaused => json!({
            "address": "192.0.2.25",
            "pool": "fresh",
            "reason": "9 of 100 messages bounced, which is more than 4 %",
        }),
        EventKind::CeilingApproaching => ceiling(9),
        EventKind::CeilingReached => ceiling(10),
    }
}

fn record(purpose: &str, name: &str, required: bool, status: &str, hint: Option<&str>) -> Value {
    json!({ "purpose": purpose, "name": name, "required": required, "status": status, "hint": hint })
}

fn limit(volume: u32) -> Value {
    json!({
        "server": { "id": 1, "name": "shop" },
        "limit": 1_000,
        "volume": volume,
        "hour": "2026-11-15T12:00:00Z",
    })
}

fn ceiling(count: u32) -> Value {
    json!({
        "server": { "id": 1, "name": "shop" },
        "account": { "id": 1, "name": "acme" },
        "ceiling": "domains",
        "limit": 10,
        "count": count,
    })
}

fn attempt(status: &str, details: &str, output: &str) -> Value {
    json!({
        "status": status,
        "details": details,
        "output": output,
        "sent_with_ssl": true,
        "time": 0.42,
        "mx": "mx.example.com",
        "remote_ip": "192.0.2.2",
        "source_ip": "192.0.2.25",
        "attempt": 1,
    })
}

fn open_or_click(more: &Value) -> Value {
    let mut data = json!({
        "first": true,
        "bot": false,
        "first_including_bots": true,
        "ip_address": "192.0.2.1",
        "user_agent": "Mozilla/5.0",
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        data[key] = value.clone();
    }
    data
}
