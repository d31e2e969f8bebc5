//! Events about a server's hourly limit (nearly reached, reached), and the thresholds that all limits share. Each event
//! is written in the transaction that crosses the threshold.

use postroad_model::{EventKind, ServerId, Timestamp};
use serde_json::{Map, Value, json};

use crate::events::NewEvent;

const HOUR_MICROS: i64 = 3_600_000_000;

/// Events for the thresholds of an hourly limit that are crossed when the count of `hour` (in hours since 1970) grows
/// from `before` to `after`.
pub(crate) fn threshold_events(limit: u32, hour: i64, before: i64, after: i64) -> Vec<NewEvent> {
    let event = |kind| {
        let hour = Timestamp::from_micros(hour * HOUR_MICROS).to_rfc3339();
        let data = json!({ "limit": limit, "volume": after, "hour": hour });
        NewEvent { kind, data: data.to_string() }
    };
    crossed_thresholds(limit, before, after).map(event).collect()
}

/// Thresholds of a limit (nine tenths, all of it) that are crossed when the count grows from `before` to `after`.
pub(crate) fn crossed_thresholds(limit: u32, before: i64, after: i64) -> impl Iterator<Item = EventKind> {
    // A limit of 0 is reached only by the first message.
    let full = i64::from(limit).max(1);
    let nearly = (i64::from(limit) * 9 + 9) / 10;
    let is_crossed = |threshold: i64| before < threshold && threshold <= after;
    // For small limits nine tenths are the whole limit.
    let approaching = (nearly < full && is_crossed(nearly)).then_some(EventKind::SendLimitApproaching);
    let exceeded = is_crossed(full).then_some(EventKind::SendLimitExceeded);
    approaching.into_iter().chain(exceeded)
}

/// Adds the server to an event about its limit.
pub(crate) fn with_server(event: &NewEvent, id: ServerId, name: Option<&str>) -> NewEvent {
    let mut data = Map::from_iter([("server".to_owned(), json!({ "id": id.0, "name": name }))]);
    if let Ok(Value::Object(own)) = serde_json::from_str(&event.data) {
        data.extend(own);
    }
    NewEvent { kind: event.kind, data: Value::Object(data).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(limit: u32, before: i64, after: i64) -> Vec<EventKind> {
        threshold_events(limit, 0, before, after).into_iter().map(|event| event.kind).collect()
    }

    #[test]
    fn each_threshold_has_one_event_when_it_is_crossed() {
        use EventKind::{SendLimitApproaching as Approaching, SendLimitExceeded as Exceeded};
        assert_eq!(kinds(100, 0, 89), []);
        assert_eq!(kinds(100, 89, 90), [Approaching]);
        assert_eq!(kinds(100, 90, 99), []);
        assert_eq!(kinds(100, 99, 100), [Exceeded]);
        assert_eq!(kinds(100, 100, 150), []);
        assert_eq!(kinds(100, 0, 500), [Approaching, Exceeded]);
        assert_eq!(kinds(101, 90, 91), [Approaching], "rounded up");
    }

    #[test]
    fn event_names_the_server_of_the_limit() {
        let event = threshold_events(1, 0, 0, 1).remove(0);
        let with_name = with_server(&event, ServerId(7), Some("shop"));
        let expected =
            r#"{"server":{"id":7,"name":"shop"},"limit":1,"volume":1,"hour":"1970-01-01T00:00:00Z"}"#;
        assert_eq!(with_name.data, expected);
    }

    #[test]
    fn small_limits_have_no_approaching_event() {
        for limit in [0, 1, 9] {
            let threshold = i64::from(limit).max(1);
            assert_eq!(kinds(limit, 0, threshold - 1), []);
            assert_eq!(kinds(limit, threshold - 1, threshold), [EventKind::SendLimitExceeded]);
        }
        assert_eq!(kinds(0, 0, 0), []);
        assert_eq!(kinds(10, 8, 9), [EventKind::SendLimitApproaching]);
    }
}
