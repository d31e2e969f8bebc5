//! Bounded queue of tracking events waiting for the store. When the queue is full, events are dropped and counted, in
//! this order: opens, and clicks whose writing failed before; all other clicks; unsubscriptions. Within each group, the
//! oldest are dropped first.

use std::collections::VecDeque;

use parking_lot::Mutex;
use postroad_app::tracking_events::{CLICK_WINDOW, RecentClicks, TrackingEvent};
use postroad_mail::TrackKind;
use postroad_model::Timestamp;
use tokio::sync::Notify;

const WAITING_EVENTS_MAX: usize = 100_000;
/// Maximum memory of all waiting events, by estimate. Targets, addresses and user agents may be long.
const WAITING_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: Mutex<WaitingEvents>,
    /// Notified when an event was added.
    pub(crate) added: Notify,
}

/// New events are added at the back; events put back go to the front.
#[derive(Debug, Default)]
struct WaitingEvents {
    unsubscriptions: VecDeque<TrackingEvent>,
    /// Clicks, which wait for the end of their window.
    clicks: VecDeque<TrackingEvent>,
    /// Opens, and clicks whose writing failed before.
    others: VecDeque<TrackingEvent>,
    /// Estimated memory of all waiting events, in bytes.
    bytes: usize,
    recent_clicks: RecentClicks,
    dropped: u64,
}

impl EventQueue {
    pub(crate) fn add(&self, event: TrackingEvent) {
        let mut waiting = self.lock();
        waiting.bytes += estimated_bytes(&event);
        let token = &event.token;
        match &token.kind {
            TrackKind::Click { target } => {
                waiting.recent_clicks.record(token.server_id, token.message_id, target, event.at);
                waiting.clicks.push_back(event);
            }
            TrackKind::Unsubscribe { .. } => waiting.unsubscriptions.push_back(event),
            TrackKind::Open => waiting.others.push_back(event),
        }
        waiting.drop_oldest();
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes up to `count` events that are due. Clicks wait for the end of their window, because later clicks within
    /// the window show whether a bot clicked. With `everything`, which is used at shutdown, clicks do not wait.
    pub(crate) fn take(&self, count: usize, now: Timestamp, everything: bool) -> Vec<TrackingEvent> {
        let mut waiting = self.lock();
        let mut taken: Vec<TrackingEvent> = Vec::new();
        while taken.len() < count
            && let Some(event) = waiting.unsubscriptions.pop_front().or_else(|| waiting.others.pop_front())
        {
            taken.push(event);
        }
        while taken.len() < count
            && waiting.clicks.front().is_some_and(|event| everything || is_window_over(event.at, now))
            && let Some(mut event) = waiting.clicks.pop_front()
        {
            event.is_bot |=
                waiting.recent_clicks.is_burst(event.token.server_id, event.token.message_id, event.at);
            taken.push(event);
        }
        waiting.bytes -= taken.iter().map(estimated_bytes).sum::<usize>();
        let oldest_click = waiting.clicks.front().map(|event| event.at);
        waiting.recent_clicks.forget(now, oldest_click);
        taken
    }

    /// Puts back events that could not be written, at the front.
    pub(crate) fn put_back(&self, events: Vec<TrackingEvent>) {
        let mut waiting = self.lock();
        for event in events.into_iter().rev() {
            waiting.bytes += estimated_bytes(&event);
            // Clicks go into `others`: their window is over, so they need not wait again.
            let is_unsubscription = matches!(event.token.kind, TrackKind::Unsubscribe { .. });
            let queue = if is_unsubscription { &mut waiting.unsubscriptions } else { &mut waiting.others };
            queue.push_front(event);
        }
        waiting.drop_oldest();
    }

    /// Number of events dropped since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.lock().dropped)
    }

    pub(crate) fn len(&self) -> usize {
        let waiting = self.lock();
        waiting.len()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, WaitingEvents> {
        self.waiting.lock()
    }
}

impl WaitingEvents {
    fn len(&self) -> usize {
        self.unsubscriptions.len() + self.clicks.len() + self.others.len()
    }

    /// Drops events until the limits are kept. A lost unsubscription would mean mail that nobody wants, so
    /// unsubscriptions are dropped last.
    fn drop_oldest(&mut self) {
        while self.len() > WAITING_EVENTS_MAX || self.bytes > WAITING_BYTES_MAX {
            let oldest = self.others.pop_front().or_else(|| self.clicks.pop_front());
            let Some(oldest) = oldest.or_else(|| self.unsubscriptions.pop_front()) else { return };
            self.bytes -= estimated_bytes(&oldest);
            self.dropped += 1;
        }
    }
}

/// Estimate of the event's memory, in bytes.
fn estimated_bytes(event: &TrackingEvent) -> usize {
    let text = match &event.token.kind {
        TrackKind::Click { target: text } | TrackKind::Unsubscribe { address: text } => text.len(),
        TrackKind::Open => 0,
    };
    256 + text + event.user_agent.len()
}

/// Whether a click's window is over. Also true if the click lies a window or more in the future: the clock was set
/// back.
fn is_window_over(at: Timestamp, now: Timestamp) -> bool {
    now.since(at).max(at.since(now)) >= CLICK_WINDOW
}

#[cfg(test)]
mod tests {
    use postroad_mail::TrackToken;
    use postroad_model::{MessageId, ServerId};

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000_000 + millis * 1_000)
    }

    fn event(kind: TrackKind, message: i64, millis: i64) -> TrackingEvent {
        TrackingEvent {
            token: TrackToken { server_id: ServerId(1), message_id: MessageId(message), kind },
            link: String::new(),
            at: at(millis),
            ip_address: [192, 0, 2, 1].into(),
            user_agent: "x".to_owned(),
            is_bot: false,
        }
    }

    fn click(target: &str, millis: i64) -> TrackingEvent {
        event(TrackKind::Click { target: target.to_owned() }, 7, millis)
    }

    #[test]
    fn opens_are_taken_at_once_and_clicks_after_their_window() {
        let queue = EventQueue::default();
        queue.add(click("a", 0));
        queue.add(event(TrackKind::Open, 7, 10));
        let taken = queue.take(10, at(20), false);
        assert_eq!(taken.iter().map(|event| &event.token.kind).collect::<Vec<_>>(), [&TrackKind::Open]);
        assert_eq!(queue.take(10, at(1_999), false).len(), 0);
        let taken = queue.take(10, at(2_000), false);
        assert!(taken.len() == 1 && !taken[0].is_bot);
    }

    #[test]
    fn clicks_on_many_links_at_once_are_all_marked_as_from_a_bot() {
        let queue = EventQueue::default();
        for (target, millis) in [("a", 0), ("b", 100), ("c", 200)] {
            queue.add(click(target, millis));
        }
        assert!(queue.take(10, at(5_000), false).iter().all(|event| event.is_bot));
    }

    #[test]
    fn clicks_that_wait_long_are_still_judged_together() {
        let queue = EventQueue::default();
        for (target, millis) in [("a", 0), ("b", 100), ("c", 200)] {
            queue.add(click(target, millis));
        }
        for number in 0..4 {
            queue.add(event(TrackKind::Open, number, 300));
        }
        // The first batches contain only opens, so the clicks wait much longer than their window.
        for millis in [10_000, 20_000] {
            let taken = queue.take(2, at(millis), false);
            assert!(taken.len() == 2 && taken.iter().all(|event| event.token.kind == TrackKind::Open));
        }
        for millis in [30_000, 40_000] {
            let taken = queue.take(2, at(millis), false);
            assert!(!taken.is_empty() && taken.iter().all(|event| event.is_bot), "{taken:?}");
        }
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn events_put_back_keep_their_order_and_shutdown_takes_everything() {
        let queue = EventQueue::default();
        for number in 0..5 {
            queue.add(event(TrackKind::Open, number, number));
        }
        queue.add(click("a", 6));
        let taken = queue.take(3, at(10), false);
        queue.put_back(taken);
        let ids: Vec<i64> =
            queue.take(10, at(10), true).iter().map(|event| event.token.message_id.0).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 7]);
    }

    #[test]
    fn beyond_the_limits_the_oldest_events_are_dropped_and_counted() {
        let queue = EventQueue::default();
        for number in 0..WAITING_EVENTS_MAX as i64 + 3 {
            queue.add(event(TrackKind::Open, number, number));
        }
        assert_eq!((queue.len(), queue.take_dropped(), queue.take_dropped()), (WAITING_EVENTS_MAX, 3, 0));
        assert_eq!(queue.take(1, at(0), false)[0].token.message_id, MessageId(3));
        let long = "x".repeat(4_000);
        for number in 0..20_000 {
            queue.add(click(&long, number));
        }
        assert!(queue.len() < 20_000 && queue.lock().bytes <= WAITING_BYTES_MAX);
        let left = queue.len();
        assert_eq!(queue.take(left, at(0), true).len(), left);
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn unsubscriptions_are_dropped_last() {
        let queue = EventQueue::default();
        queue.add(event(TrackKind::Unsubscribe { address: "jane@example.com".to_owned() }, 1, 0));
        queue.add(click("a", 1));
        for number in 2..WAITING_EVENTS_MAX as i64 + 3 {
            queue.add(click("b", number));
        }
        let taken = queue.take(1, at(0), true);
        queue.put_back(taken);
        for number in 0..10 {
            queue.add(event(TrackKind::Open, number, number));
        }
        let taken = queue.take(1, at(0), true);
        assert_eq!(taken[0].token.message_id, MessageId(1), "{taken:?}");
    }
}
