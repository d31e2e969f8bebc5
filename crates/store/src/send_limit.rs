//! A server's hourly limit that is nearly or wholly used up, and what is told of it: each once an hour, in the
//! transaction whose messages crossed the line.

use postroad_model::{EventKind, Timestamp};
use serde_json::json;

use crate::records::NewEvent;

const HOUR_MICROS: i64 = 3_600_000_000;

/// What to tell when the messages of an hour have grown from `before` to `after`.
pub(crate) fn crossed(limit: u32, hour: i64, before: i64, after: i64) -> Vec<NewEvent> {
    // Also a limit of nothing is reached by a first message only.
    let full = i64::from(limit).max(1);
    let nearly = (i64::from(limit) * 9 + 9) / 10;
    let is_crossed = |line: i64| before < line && line <= after;
    let tell = |kind| {
        let hour = Timestamp::from_micros(hour * HOUR_MICROS).to_rfc3339();
        let data = json!({ "limit": limit, "volume": after, "hour": hour });
        NewEvent { kind, data: data.to_string() }
    };
    let mut events = Vec::new();
    // Of small limits nine tenths are all of it.
    if nearly < full && is_crossed(nearly) {
        events.push(tell(EventKind::SendLimitApproaching));
    }
    if is_crossed(full) {
        events.push(tell(EventKind::SendLimitExceeded));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(limit: u32, before: i64, after: i64) -> Vec<EventKind> {
        crossed(limit, 0, before, after).into_iter().map(|event| event.kind).collect()
    }

    #[test]
    fn each_line_is_told_when_it_is_crossed_and_never_again() {
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
    fn small_limits_are_only_exceeded() {
        for limit in [0, 1, 9] {
            let line = i64::from(limit).max(1);
            assert_eq!(kinds(limit, 0, line - 1), []);
            assert_eq!(kinds(limit, line - 1, line), [EventKind::SendLimitExceeded]);
        }
        assert_eq!(kinds(0, 0, 0), []);
        assert_eq!(kinds(10, 8, 9), [EventKind::SendLimitApproaching]);
    }
}
