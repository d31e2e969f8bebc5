//! Data of the event of an attempt.

use postroad_model::{EventKind, Status, Timestamp};
use postroad_store::NewDelivery;
use serde::Serialize;

/// Data of an event, in documented order. Serialised directly to text, because every outcome has an event.
#[derive(Serialize)]
pub(super) struct EventData<'a> {
    status: Status,
    details: &'a str,
    /// Counts from 1; `null` if the ending does not count as an attempt.
    attempt: Option<u32>,
    output: &'a str,
    sent_with_ssl: bool,
    time: Option<f64>,
    mx: Option<&'a str>,
    remote_ip: Option<&'a str>,
    source_ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_pool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_version: Option<&'a str>,
    code: Option<i64>,
    enhanced_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    possible_duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce: Option<Bounce<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
}

#[derive(Serialize)]
struct Bounce<'a> {
    kind: &'static str,
    class: Option<&'a str>,
    code: Option<i64>,
    enhanced_code: Option<&'a str>,
    diagnostic: &'a str,
}

impl<'a> EventData<'a> {
    pub(super) fn of(
        delivery: &'a NewDelivery,
        kind: EventKind,
        attempt: Option<u32>,
        ip_pool: Option<&'a str>,
    ) -> Self {
        let (class, enhanced_code) = (delivery.bounce_class.as_deref(), delivery.enhanced_code.as_deref());
        let is_bounce = kind == EventKind::Bounced;
        Self {
            status: delivery.status,
            details: &delivery.details,
            attempt,
            output: &delivery.output,
            sent_with_ssl: delivery.sent_with_ssl,
            time: delivery.duration_us.map(|us| us as f64 / 1e6),
            mx: delivery.mx.as_deref(),
            remote_ip: delivery.remote_ip.as_deref(),
            source_ip: delivery.source_ip.as_deref(),
            ip_pool,
            tls_version: delivery.tls.as_deref().and_then(|tls| tls.split_whitespace().next()),
            code: delivery.code,
            enhanced_code,
            next_attempt_at: delivery.next_attempt_at.map(Timestamp::to_rfc3339),
            possible_duplicate: delivery.possible_duplicate,
            bounce: is_bounce.then(|| Bounce {
                kind: "sync",
                class,
                code: delivery.code,
                enhanced_code,
                diagnostic: &delivery.output,
            }),
            class: class.filter(|_| !is_bounce),
        }
    }
}
