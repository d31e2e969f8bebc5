//! Timeline items of a delivery record: the wait before the attempt, the DNS answer, the attempt, and the wait after
//! it.

use std::time::Duration;

use postroad_model::{Status, Timestamp};
use postroad_store::{Delivery, NewDelivery};
use serde_json::json;

use super::{TimelineItem, TimelineKind};

/// Prefix of the transcript line with the DNS answer.
const DNS_PREFIX: &str = "-- DNS: ";
/// Prefix of the transcript line about the time in the queue.
const QUEUE_PREFIX: &str = "-- queue: ";

pub(super) fn of_delivery(delivery: Delivery, transcript: Option<&str>) -> Vec<TimelineItem> {
    let Delivery { id, record } = delivery;
    let lines: Vec<&str> = transcript.unwrap_or_default().lines().collect();
    let duration = Duration::from_micros(record.duration_us.unwrap_or(0).unsigned_abs());
    let begun_at = record.at.minus(duration);
    let mut items = Vec::new();
    if let Some(wait) = lines.iter().find_map(|line| wait_before(line, begun_at)) {
        items.push(wait);
    }
    if let Some(answer) = lines.iter().find_map(|line| line.strip_prefix(DNS_PREFIX)) {
        let text = format!("The DNS says: {answer}");
        items.push(TimelineItem {
            at: begun_at,
            kind: TimelineKind::Dns,
            text,
            data: json!({ "answer": answer }),
        });
    }
    let keys: Vec<&str> = record.dkim.as_deref().unwrap_or_default().split_whitespace().collect();
    let is_attempt = record.mx.is_some() || !lines.is_empty();
    items.push(TimelineItem {
        at: record.at,
        kind: if is_attempt { TimelineKind::Attempt } else { kind_of(record.status) },
        text: record.details.clone(),
        data: json!({
            "delivery_id": id.0,
            "status": record.status,
            "output": record.output,
            "mx": record.mx,
            "remote_ip": record.remote_ip,
            "source_ip": record.source_ip,
            "tls": record.tls,
            "tls_policy": record.tls_policy,
            "dkim": keys,
            "code": record.code,
            "enhanced_code": record.enhanced_code,
            "bounce_class": record.bounce_class,
            "time": record.duration_us.map(|micros| micros as f64 / 1e6),
            "possible_duplicate": record.possible_duplicate,
            "transcript": lines,
        }),
    });
    items.extend(wait_after(&record));
    items
}

/// Reads the line about the time in the queue: `waited 2.5 s because …`.
fn wait_before(line: &str, begun_at: Timestamp) -> Option<TimelineItem> {
    let (seconds, cause) = line.strip_prefix(QUEUE_PREFIX)?.strip_prefix("waited ")?.split_once(" s ")?;
    let seconds: f64 = seconds.parse().ok()?;
    let since = begun_at.minus(Duration::try_from_secs_f64(seconds).ok()?);
    let cause = cause.strip_prefix("because ").unwrap_or(cause);
    Some(TimelineItem {
        at: since,
        kind: TimelineKind::Wait,
        text: format!("Waited {seconds} s: {cause}"),
        data: json!({ "until": begun_at.to_rfc3339(), "cause": cause, "seconds": seconds }),
    })
}

fn kind_of(status: Status) -> TimelineKind {
    match status {
        Status::Held => TimelineKind::Held,
        Status::Sent => TimelineKind::Sent,
        Status::SoftFail => TimelineKind::Delayed,
        Status::HardFail => TimelineKind::Failed,
        Status::Bounced => TimelineKind::Bounced,
        Status::Cancelled | Status::HoldCancelled => TimelineKind::Cancelled,
        Status::Pending | Status::Scheduled => TimelineKind::Queued,
    }
}

/// A soft failure is followed by a wait.
fn wait_after(record: &NewDelivery) -> Option<TimelineItem> {
    let next = record.next_attempt_at.filter(|_| record.status == Status::SoftFail)?;
    Some(TimelineItem {
        at: record.at,
        kind: TimelineKind::Wait,
        text: format!("Waits for its next attempt at {}", next.to_rfc3339()),
        data: json!({ "until": Timestamp::to_rfc3339(next), "cause": "retry" }),
    })
}
