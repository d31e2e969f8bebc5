//! A model of the store in plain lists, without optimisation.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use postroad_model::{EventKind, Status, SuppressionReason, Timestamp};
use postroad_store::{
    Accepted, CancelResult, InitialState, NewDelivery, NewEvent, NewSend, Outcome, RetryResult, StoredAnswer,
};
use serde_json::json;

#[derive(Default)]
pub(super) struct StoreModel {
    messages: Vec<Message>,
    queue: Vec<Entry>,
    keys: Vec<Key>,
    /// Since when an address is suppressed, by server and address.
    suppressed: HashMap<(usize, String), Timestamp>,
    /// Facts of each message, in the order of `messages`.
    facts: Vec<MessageFacts>,
}

/// Facts of a message that never change and are not compared with the store.
struct MessageFacts {
    server: usize,
    domain: String,
    expires_at: Option<Timestamp>,
}

/// The visible state of a message.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) status: Status,
    pub(super) hold_expiry: Option<Timestamp>,
    pub(super) last_delivery_at: Option<Timestamp>,
    pub(super) next_attempt_at: Option<Timestamp>,
    pub(super) rcpt_to: String,
    pub(super) test: bool,
    pub(super) body_bytes: usize,
    pub(super) deliveries: Vec<NewDelivery>,
    pub(super) events: Vec<(i64, Timestamp, bool, NewEvent)>,
}

/// Answer of `begin` for a message.
#[derive(Debug, PartialEq)]
pub(super) enum BeginVerdict {
    Go,
    Suppressed,
    Gone,
}

#[derive(Debug)]
struct Entry {
    message: usize,
    domain: String,
    due_at: Timestamp,
    expires_at: Option<Timestamp>,
    attempts: u32,
    claimed: bool,
    begun: bool,
    scheduled: bool,
}

impl Entry {
    fn release(&mut self) {
        (self.claimed, self.begun) = (false, false);
    }
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) server: usize,
    pub(super) text: String,
    pub(super) fingerprint: u8,
    pub(super) answer: String,
    pub(super) expires_at: Timestamp,
}

impl Message {
    fn add_event(&mut self, at: Timestamp, kind: EventKind, data: &str) {
        let seq = self.events.len() as i64 + 1;
        self.events.push((seq, at, self.test, NewEvent { kind, data: data.to_owned() }));
    }
}

impl StoreModel {
    pub(super) fn message(&self, number: usize) -> &Message {
        &self.messages[number]
    }

    pub(super) fn claimed(&self) -> Vec<usize> {
        let mut claimed: Vec<usize> =
            self.queue.iter().filter(|entry| entry.claimed).map(|entry| entry.message).collect();
        claimed.sort_unstable();
        claimed
    }

    pub(super) fn accept(
        &mut self,
        send: &NewSend,
        server: usize,
        key: Option<Key>,
        now: Timestamp,
    ) -> Accepted {
        if let Some(key) = key {
            let same = |known: &Key| (known.server, &known.text) == (server, &key.text);
            if let Some(known) = self.keys.iter().find(|known| same(known) && known.expires_at > now) {
                let (fingerprint, answer) = ([known.fingerprint; 32], known.answer.clone());
                return Accepted::Repeated(StoredAnswer { fingerprint, answer });
            }
            self.keys.retain(|known| !same(known));
            self.keys.push(key);
        }
        for recipient in &send.recipients {
            let mut message = Message {
                status: Status::Pending,
                hold_expiry: None,
                last_delivery_at: None,
                next_attempt_at: None,
                rcpt_to: recipient.rcpt_to.clone(),
                test: send.info.test,
                body_bytes: send.info.size as usize,
                deliveries: Vec::new(),
                events: Vec::new(),
            };
            message.add_event(now, EventKind::Accepted, "{}");
            let since = self.suppressed.get(&(server, recipient.rcpt_to.clone()));
            let suppressed = since.map(|since| format!("The address is suppressed: manual since {since}"));
            let first = match (&send.state, &suppressed) {
                (InitialState::Pending | InitialState::Scheduled(_), Some(details)) => {
                    message.hold_expiry = Some(now.plus(Duration::from_hours(7 * 24)));
                    let data = json!({
                        "status": "Held", "details": details, "reason": "suppressed",
                        "suppression": { "reason": "manual", "since": since.map(Timestamp::to_string) },
                    });
                    Some((Status::Held, details, EventKind::Held, data))
                }
                (InitialState::Pending, None) => {
                    message.next_attempt_at = Some(now);
                    None
                }
                (InitialState::Scheduled(at), None) => {
                    message.status = Status::Scheduled;
                    message.next_attempt_at = Some(*at);
                    None
                }
                (InitialState::Held { reason, details, expiry }, _) => {
                    message.hold_expiry = Some(*expiry);
                    let data = json!({ "status": "Held", "details": details, "reason": reason });
                    Some((Status::Held, details, EventKind::Held, data))
                }
                (InitialState::TestSent { details }, _) => {
                    let data = json!({ "status": "Sent", "details": details });
                    Some((Status::Sent, details, EventKind::Delivered, data))
                }
            };
            if let Some((status, details, kind, data)) = first {
                message.status = status;
                message.last_delivery_at = Some(now);
                message.deliveries.push(NewDelivery::local(now, status, details));
                message.add_event(now, kind, &data.to_string());
            }
            if let Some(due_at) = message.next_attempt_at {
                self.queue.push(Entry {
                    message: self.messages.len(),
                    domain: recipient.domain.to_string(),
                    due_at,
                    expires_at: send.info.options.expires_at,
                    attempts: 0,
                    claimed: false,
                    begun: false,
                    scheduled: message.status == Status::Scheduled,
                });
            }
            let (domain, expires_at) = (recipient.domain.to_string(), send.info.options.expires_at);
            self.facts.push(MessageFacts { server, domain, expires_at });
            self.messages.push(message);
        }
        Accepted::Stored(Vec::new())
    }

    pub(super) fn claim(
        &mut self,
        due_by: Timestamp,
        limit: usize,
        skipped: &[usize],
        now: Timestamp,
    ) -> Vec<(usize, String, Timestamp, Option<Timestamp>, u32)> {
        for entry in self.queue.iter_mut().filter(|entry| entry.scheduled && entry.due_at <= now) {
            entry.scheduled = false;
            // It counts against the limit of the hour in which it becomes pending, so its due time is in that hour.
            if entry.due_at.as_secs() / 3_600 < now.as_secs() / 3_600 {
                entry.due_at = now;
            }
            let message = &mut self.messages[entry.message];
            (message.status, message.next_attempt_at) = (Status::Pending, Some(entry.due_at));
        }
        self.queue.sort_by_key(|entry| (entry.due_at, entry.message));
        let facts = &self.facts;
        let is_open = |entry: &&mut Entry| {
            let is_skipped = skipped.contains(&facts[entry.message].server);
            !entry.claimed && !entry.scheduled && entry.due_at <= due_by && !is_skipped
        };
        let due = self.queue.iter_mut().filter(is_open);
        due.take(limit)
            .map(|entry| {
                entry.claimed = true;
                (entry.message, entry.domain.clone(), entry.due_at, entry.expires_at, entry.attempts)
            })
            .collect()
    }

    pub(super) fn finish(&mut self, outcomes: &[(usize, Outcome)]) -> Vec<bool> {
        let mut seen = HashSet::new();
        outcomes
            .iter()
            // Only the first outcome of a message in a batch counts, even if its claim is kept.
            .map(|(number, outcome)| seen.insert(*number) && self.settle(*number, outcome))
            .collect()
    }

    fn settle(&mut self, number: usize, outcome: &Outcome) -> bool {
        let entry = self.queue.iter_mut().find(|entry| entry.message == number && entry.claimed);
        let Some(entry) = entry else { return false };
        entry.release();
        let (message, delivery) = (&mut self.messages[number], &outcome.delivery);
        if !message.status.can_become(delivery.status) {
            return false;
        }
        message.status = delivery.status;
        message.last_delivery_at = Some(delivery.at);
        // PostgreSQL cannot store NUL, so both engines replace it.
        let output = delivery.output.replace('\0', "\u{fffd}");
        message.deliveries.push(NewDelivery { output, ..delivery.clone() });
        message.add_event(delivery.at, outcome.event.kind, &outcome.event.data);
        if delivery.status == Status::SoftFail {
            entry.due_at = delivery.next_attempt_at.unwrap_or(delivery.at);
            entry.attempts += u32::from(outcome.counts_as_attempt);
            entry.claimed = outcome.keep_claim;
            message.next_attempt_at = Some(entry.due_at);
        } else {
            message.next_attempt_at = None;
            message.hold_expiry = outcome.hold_expiry.filter(|_| delivery.status == Status::Held);
            self.queue.retain(|entry| entry.message != number);
        }
        true
    }

    pub(super) fn suppress(&mut self, server: usize, address: &str, now: Timestamp) {
        self.suppressed.entry((server, address.to_owned())).or_insert(now);
    }

    pub(super) fn unsuppress(&mut self, server: usize, address: &str) -> bool {
        self.suppressed.remove(&(server, address.to_owned())).is_some()
    }

    /// When the message is due, if it is queued.
    pub(super) fn due_at(&self, number: usize) -> Option<Timestamp> {
        self.messages[number].next_attempt_at
    }

    pub(super) fn begin(&mut self, number: usize, due_at: Timestamp) -> BeginVerdict {
        let entry = self.queue.iter_mut().find(|entry| entry.message == number);
        match entry.filter(|entry| entry.claimed && !entry.begun && entry.due_at == due_at) {
            None => BeginVerdict::Gone,
            Some(entry) => {
                entry.begun = true;
                let address = self.messages[number].rcpt_to.clone();
                let is_suppressed = self.suppressed.contains_key(&(self.facts[number].server, address));
                if is_suppressed { BeginVerdict::Suppressed } else { BeginVerdict::Go }
            }
        }
    }

    fn is_begun(&self, number: usize) -> bool {
        self.queue.iter().any(|entry| entry.message == number && entry.begun)
    }

    pub(super) fn cancel(&mut self, number: usize, now: Timestamp) -> CancelResult {
        if self.is_begun(number) {
            return CancelResult::TooLate;
        }
        let (status, details) = match self.messages[number].status {
            Status::Pending | Status::Scheduled | Status::SoftFail => {
                (Status::Cancelled, "The message was cancelled before it was sent")
            }
            Status::Held => (Status::HoldCancelled, "The held message was cancelled"),
            _ => return CancelResult::NotWaiting,
        };
        self.end(number, status, details, now);
        CancelResult::Done(status)
    }

    fn end(&mut self, number: usize, status: Status, details: &str, now: Timestamp) {
        let message = &mut self.messages[number];
        (message.status, message.hold_expiry, message.next_attempt_at) = (status, None, None);
        message.last_delivery_at = Some(now);
        message.deliveries.push(NewDelivery::local(now, status, details));
        let data = json!({ "status": status, "details": details });
        message.add_event(now, EventKind::Cancelled, &data.to_string());
        self.queue.retain(|entry| entry.message != number);
    }

    pub(super) fn retry(&mut self, number: usize, now: Timestamp) -> RetryResult {
        if self.is_begun(number) {
            return RetryResult::TooLate;
        }
        let message = &mut self.messages[number];
        let key = (self.facts[number].server, message.rcpt_to.clone());
        if let Some(since) = self.suppressed.get(&key)
            && (message.status == Status::Held || message.status.is_queued())
        {
            return RetryResult::Suppressed { reason: SuppressionReason::Manual, since: *since };
        }
        if let Some(entry) = self.queue.iter_mut().find(|entry| entry.message == number) {
            entry.release();
            entry.due_at = now;
            message.next_attempt_at = Some(now);
            return RetryResult::Now;
        }
        if message.status != Status::Held {
            return RetryResult::NotWaiting;
        }
        (message.status, message.hold_expiry, message.next_attempt_at) = (Status::Pending, None, Some(now));
        message.add_event(now, EventKind::Released, &json!({ "status": "Pending" }).to_string());
        let MessageFacts { domain, expires_at, .. } = &self.facts[number];
        self.queue.push(Entry {
            message: number,
            domain: domain.clone(),
            due_at: now,
            expires_at: *expires_at,
            attempts: 0,
            claimed: false,
            begun: false,
            scheduled: false,
        });
        RetryResult::Released
    }

    pub(super) fn expire_holds(&mut self, now: Timestamp, limit: usize) -> usize {
        let mut expired: Vec<(Timestamp, usize, usize)> = Vec::new();
        for (number, (message, facts)) in self.messages.iter().zip(&self.facts).enumerate() {
            expired.extend(message.hold_expiry.filter(|at| *at <= now).map(|at| (at, facts.server, number)));
        }
        expired.sort_unstable();
        expired.truncate(limit);
        for (_, _, number) in &expired {
            self.end(*number, Status::HoldCancelled, "The hold ended without a release", now);
        }
        expired.len()
    }

    pub(super) fn release(&mut self, numbers: &[usize]) {
        for entry in self.queue.iter_mut().filter(|entry| numbers.contains(&entry.message)) {
            entry.release();
        }
    }

    pub(super) fn forget_claims(&mut self) {
        for entry in &mut self.queue {
            entry.release();
        }
    }

    pub(super) fn purge(&mut self, now: Timestamp, limit: usize) -> usize {
        self.keys.sort_by(|a, b| (a.expires_at, a.server, &a.text).cmp(&(b.expires_at, b.server, &b.text)));
        let expired = self.keys.iter().filter(|key| key.expires_at <= now).count().min(limit);
        self.keys.drain(..expired);
        expired
    }
}
