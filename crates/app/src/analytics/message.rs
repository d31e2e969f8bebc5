//! analytics/message: figures of one message, computed from its events.

use std::collections::BTreeMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventKind, MessageId, Status, Timestamp};
use postroad_store::Event;
use serde_json::Value;

use crate::find_message::LookupError;
use crate::{App, Caller};

/// Maximum number of links listed; clicks on further links count only in the totals.
const LINKS_MAX: usize = 500;

#[derive(Debug, Clone)]
pub struct MessageMetrics {
    pub status: Status,
    /// Finished attempts, with any outcome.
    pub attempts: u64,
    pub soft_fails: u64,
    pub holds: u64,
    pub complaints: u64,
    pub unsubscribes: u64,
    /// Opens by people.
    pub opens: u64,
    /// Clicks by people.
    pub clicks: u64,
    pub bot_opens: u64,
    pub bot_clicks: u64,
    /// First open by a person, not by a program.
    pub first_opened_at: Option<Timestamp>,
    pub first_clicked_at: Option<Timestamp>,
    /// Sorted by clicks of people, most first.
    pub links: Vec<LinkClicks>,
    /// Seconds from acceptance, or from the scheduled time, to the start of the first attempt. `None` without an
    /// attempt.
    pub first_attempt_after: Option<f64>,
    /// Seconds from acceptance, or from the scheduled time, until the receiver accepted the message.
    pub sent_after: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkClicks {
    pub url: String,
    pub clicks: u64,
    pub bot_clicks: u64,
}

#[boxed_futures]
impl App {
    pub async fn analytics_message(
        &self,
        caller: &Caller,
        id: MessageId,
    ) -> Result<MessageMetrics, LookupError> {
        let store = &self.inner.store;
        let message = store.find_message(caller.server_id, id).await?.ok_or(LookupError::NotFound)?;
        let events = store.list_events(caller.server_id, id).await?;
        let accepted_at = message.send.created_at;
        let due_at = message.send_at.map_or(accepted_at, |at| at.max(accepted_at));
        Ok(metrics_of(message.status, due_at, &events))
    }
}

fn metrics_of(status: Status, due_at: Timestamp, events: &[Event]) -> MessageMetrics {
    let mut metrics = MessageMetrics {
        status,
        attempts: 0,
        soft_fails: 0,
        holds: 0,
        complaints: 0,
        unsubscribes: 0,
        opens: 0,
        clicks: 0,
        bot_opens: 0,
        bot_clicks: 0,
        first_opened_at: None,
        first_clicked_at: None,
        links: Vec::new(),
        first_attempt_after: None,
        sent_after: None,
    };
    let mut links: BTreeMap<String, LinkClicks> = BTreeMap::new();
    for event in events {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let is_bot = data["bot"] == true;
        match event.kind {
            EventKind::Delivered | EventKind::Delayed | EventKind::Failed => {
                metrics.add_outcome(event, &data, due_at);
            }
            // The message was refused in an attempt, not returned later.
            EventKind::Bounced if data["bounce"]["kind"] != "async" => {
                metrics.add_outcome(event, &data, due_at);
            }
            EventKind::Held => metrics.holds += 1,
            EventKind::Complained => metrics.complaints += 1,
            EventKind::Unsubscribed => metrics.unsubscribes += 1,
            EventKind::Opened if is_bot => metrics.bot_opens += 1,
            EventKind::Opened => {
                metrics.opens += 1;
                metrics.first_opened_at.get_or_insert(event.at);
            }
            EventKind::Clicked => {
                count_click(&mut links, &data, is_bot);
                if is_bot {
                    metrics.bot_clicks += 1;
                } else {
                    metrics.clicks += 1;
                    metrics.first_clicked_at.get_or_insert(event.at);
                }
            }
            _ => {}
        }
    }
    metrics.links = links.into_values().collect();
    metrics.links.sort_by_key(|link| std::cmp::Reverse(link.clicks));
    metrics
}

impl MessageMetrics {
    fn add_outcome(&mut self, event: &Event, data: &Value, due_at: Timestamp) {
        let after = |moment: Timestamp| moment.since(due_at).as_secs_f64();
        // Without a contacted host there was no attempt: for example, the domain does not exist.
        if let Some(attempt) = data["attempt"].as_u64() {
            if attempt > self.attempts && self.attempts == 0 {
                let taken = std::time::Duration::try_from_secs_f64(data["time"].as_f64().unwrap_or(0.0));
                self.first_attempt_after = Some(after(event.at.minus(taken.unwrap_or_default())));
            }
            self.attempts = self.attempts.max(attempt);
        }
        match event.kind {
            EventKind::Delayed if data["attempt"].is_u64() => self.soft_fails += 1,
            EventKind::Delivered => self.sent_after = Some(after(event.at)),
            _ => {}
        }
    }
}

fn count_click(links: &mut BTreeMap<String, LinkClicks>, data: &Value, is_bot: bool) {
    let Some(url) = data["url"].as_str() else { return };
    if links.len() >= LINKS_MAX && !links.contains_key(url) {
        return;
    }
    let new = || LinkClicks { url: url.to_owned(), clicks: 0, bot_clicks: 0 };
    let link = links.entry(url.to_owned()).or_insert_with(new);
    if is_bot { link.bot_clicks += 1 } else { link.clicks += 1 }
}

#[cfg(test)]
mod tests {
    use postroad_model::EventId;

    use super::*;

    fn event(second: i64, kind: EventKind, data: &str) -> Event {
        Event {
            id: EventId(second),
            message_id: MessageId(1),
            seq: second,
            at: Timestamp::from_micros(second * 1_000_000),
            test: false,
            kind,
            data: data.to_owned(),
        }
    }

    #[test]
    fn attempts_and_tracking_events_are_distinguished() {
        let events = [
            event(1, EventKind::Accepted, "{}"),
            event(2, EventKind::Delayed, r#"{"attempt": null, "class": "dns"}"#),
            event(3, EventKind::Delayed, r#"{"attempt": 1, "time": 0.5}"#),
            event(4, EventKind::Delivered, r#"{"attempt": 2, "time": 0.5}"#),
            event(5, EventKind::Opened, r#"{"bot": true}"#),
            event(6, EventKind::Opened, r#"{"bot": false}"#),
            event(7, EventKind::Clicked, r#"{"bot": false, "url": "https://a.example/"}"#),
            event(8, EventKind::Clicked, r#"{"bot": true, "url": "https://b.example/"}"#),
            event(9, EventKind::Bounced, r#"{"bounce": {"kind": "async"}}"#),
        ];
        let metrics = metrics_of(Status::Bounced, Timestamp::from_micros(1_000_000), &events);
        assert_eq!((metrics.attempts, metrics.soft_fails), (2, 1));
        assert_eq!((metrics.first_attempt_after, metrics.sent_after), (Some(1.5), Some(3.0)));
        assert_eq!((metrics.opens, metrics.bot_opens, metrics.clicks, metrics.bot_clicks), (1, 1, 1, 1));
        assert_eq!(metrics.first_opened_at, Some(Timestamp::from_micros(6_000_000)));
        assert_eq!(
            metrics.links[0],
            LinkClicks { url: "https://a.example/".into(), clicks: 1, bot_clicks: 0 }
        );
        assert_eq!(metrics.links.len(), 2);
    }
}
