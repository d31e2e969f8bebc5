//! Message limits of an account, for all its servers together: how many new messages fit, and which thresholds they
//! cross. Also the event for an account that approaches or reaches a ceiling.

use postroad_model::{EventKind, MessageId, Timestamp};
use serde_json::json;

use super::hourly_limit::crossed_thresholds;
use super::initial::{HoldCause, HoldCauses};
use super::limit_values::{LimitOwner, LimitUse, Window};
use crate::events::NewEvent;

/// A window of an account, with the number of messages (`before`) that were counted in it before the new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowCount {
    pub(crate) window: Window,
    pub(crate) before: i64,
}

/// How many of the new messages fit into all windows of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) admitted: usize,
    /// Why the messages that do not fit are held; `None` if all fit.
    pub(crate) cause: Option<HoldCause>,
    counts: Vec<WindowCount>,
}

impl Admission {
    pub(crate) fn of(counts: Vec<WindowCount>, requested: usize) -> Self {
        let room = |count: &WindowCount| (i64::from(count.window.limit) - count.before).max(0);
        let fullest = counts.iter().min_by_key(|count| room(count));
        let admitted = fullest.map_or(requested, |count| room(count).min(requested as i64) as usize);
        let cause = fullest.filter(|_| admitted < requested).map(|count| HoldCause::OverAccountLimit {
            limit: count.window.limit,
            period: count.window.period,
        });
        Self { admitted, cause, counts }
    }

    /// Adds a hold cause for each of `messages` after the first `admitted`, which fit.
    pub(crate) fn hold_beyond(&self, messages: &[MessageId], causes: &mut HoldCauses) {
        if let Some(cause) = &self.cause {
            causes.extend(messages[self.admitted..].iter().map(|id| (*id, cause.clone())));
        }
    }

    /// Each limit of the account, with its usage after the admitted messages.
    pub(crate) fn uses(&self, now: Timestamp) -> impl Iterator<Item = LimitUse> {
        let admitted = self.admitted as i64;
        let used = move |count: &WindowCount| {
            LimitUse::new(LimitOwner::Account, count.window, count.before + admitted, now)
        };
        self.counts.iter().map(used)
    }

    /// Events for windows that the admitted messages fill or nearly fill.
    pub(crate) fn events(&self) -> Vec<NewEvent> {
        let mut events = Vec::new();
        for WindowCount { window: Window { period, number, limit }, before } in &self.counts {
            let after = before + self.admitted as i64;
            for kind in crossed_thresholds(*limit, *before, after) {
                let since = period.start(*number).to_rfc3339();
                let data =
                    json!({ "limit": limit, "volume": after, "period": period.as_str(), "since": since });
                events.push(NewEvent { kind, data: data.to_string() });
            }
        }
        events
    }
}

/// Event for an account whose `count` of objects approaches or reaches a ceiling. `kind` is the threshold that
/// `crossed_thresholds` returned.
pub(crate) fn ceiling_event(kind: EventKind, ceiling: &str, limit: u32, count: i64) -> NewEvent {
    let kind = match kind {
        EventKind::SendLimitApproaching => EventKind::CeilingApproaching,
        _ => EventKind::CeilingReached,
    };
    NewEvent { kind, data: json!({ "ceiling": ceiling, "limit": limit, "count": count }).to_string() }
}

#[cfg(test)]
mod tests {
    use postroad_model::LimitPeriod;

    use super::*;

    fn counts(values: &[(LimitPeriod, u32, i64)]) -> Vec<WindowCount> {
        let count = |(period, limit, before): &(LimitPeriod, u32, i64)| WindowCount {
            window: Window { period: *period, number: 0, limit: *limit },
            before: *before,
        };
        values.iter().map(count).collect()
    }

    #[test]
    fn window_with_the_least_room_decides_how_many_messages_are_admitted() {
        let of = |values: &[_], requested| Admission::of(counts(values), requested);
        assert_eq!(of(&[], 5).admitted, 5);
        let both = [(LimitPeriod::Hour, 10, 2), (LimitPeriod::Month, 100, 97)];
        let admission = of(&both, 5);
        assert_eq!(admission.admitted, 3);
        let cause = HoldCause::OverAccountLimit { limit: 100, period: LimitPeriod::Month };
        assert_eq!(admission.cause, Some(cause));
        let uses: Vec<(i64, u32)> = {
            let uses = admission.uses(Timestamp::from_micros(0));
            uses.map(|used| (used.used, used.remaining())).collect()
        };
        assert_eq!(uses, [(5, 5), (100, 0)]);
        assert_eq!((of(&both, 3).admitted, of(&both, 3).cause), (3, None));
        assert_eq!(of(&[(LimitPeriod::Day, 0, 0)], 1).admitted, 0);
        assert_eq!(of(&[(LimitPeriod::Day, 5, 9)], 1).admitted, 0, "the limit was lowered");
    }

    #[test]
    fn only_admitted_messages_cross_thresholds() {
        let kinds = |values: &[_], requested: usize| -> Vec<EventKind> {
            Admission::of(counts(values), requested).events().iter().map(|event| event.kind).collect()
        };
        let day = |before| [(LimitPeriod::Day, 10, before)];
        assert_eq!(kinds(&day(0), 8), []);
        assert_eq!(kinds(&day(8), 1), [EventKind::SendLimitApproaching]);
        assert_eq!(kinds(&day(9), 7), [EventKind::SendLimitExceeded]);
        assert_eq!(kinds(&day(10), 7), [], "nobody is notified twice");
        assert_eq!(kinds(&[(LimitPeriod::Day, 0, 0)], 1), [], "nothing is admitted");
    }
}
