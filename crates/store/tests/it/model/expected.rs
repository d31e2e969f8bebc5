//! What a store should do, in plain lists and without a thought of speed.

use postroad_model::{EventKind, Status, Timestamp};
use postroad_store::{Accepted, InitialState, NewDelivery, NewEvent, NewSend, Outcome, StoredAnswer};

#[derive(Default)]
pub(super) struct Expected {
    messages: Vec<Message>,
    queue: Vec<Entry>,
    keys: Vec<Key>,
}

/// What the outside can see of a message.
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

#[derive(Debug)]
struct Entry {
    message: usize,
    domain: String,
    due_at: Timestamp,
    expires_at: Option<Timestamp>,
    attempts: u32,
    claimed: bool,
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

impl Expected {
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
            let first = match &send.state {
                InitialState::Pending => {
                    message.next_attempt_at = Some(now);
                    None
                }
                InitialState::Scheduled(at) => {
                    message.status = Status::Scheduled;
                    message.next_attempt_at = Some(*at);
                    None
                }
                InitialState::Held { details, expiry } => {
                    message.hold_expiry = Some(*expiry);
                    Some((Status::Held, details, EventKind::Held))
                }
                InitialState::TestSent { details } => Some((Status::Sent, details, EventKind::Delivered)),
            };
            if let Some((status, details, kind)) = first {
                message.status = status;
                message.last_delivery_at = Some(now);
                message.deliveries.push(NewDelivery::local(now, status, details));
                message.add_event(now, kind, "{}");
            }
            if let Some(due_at) = message.next_attempt_at {
                self.queue.push(Entry {
                    message: self.messages.len(),
                    domain: recipient.domain.to_string(),
                    due_at,
                    expires_at: send.info.options.expires_at,
                    attempts: 0,
                    claimed: false,
                });
            }
            self.messages.push(message);
        }
        Accepted::Stored
    }

    pub(super) fn claim(
        &mut self,
        due_by: Timestamp,
        limit: usize,
    ) -> Vec<(usize, String, Timestamp, Option<Timestamp>, u32)> {
        self.queue.sort_by_key(|entry| (entry.due_at, entry.message));
        let due = self.queue.iter_mut().filter(|entry| !entry.claimed && entry.due_at <= due_by);
        due.take(limit)
            .map(|entry| {
                entry.claimed = true;
                (entry.message, entry.domain.clone(), entry.due_at, entry.expires_at, entry.attempts)
            })
            .collect()
    }

    pub(super) fn finish(&mut self, outcomes: &[(usize, Outcome)]) -> Vec<bool> {
        outcomes.iter().map(|(number, outcome)| self.settle(*number, outcome)).collect()
    }

    fn settle(&mut self, number: usize, outcome: &Outcome) -> bool {
        let entry = self.queue.iter_mut().find(|entry| entry.message == number && entry.claimed);
        let Some(entry) = entry else { return false };
        entry.claimed = false;
        let (message, delivery) = (&mut self.messages[number], &outcome.delivery);
        if !message.status.can_become(delivery.status) {
            return false;
        }
        message.status = delivery.status;
        message.last_delivery_at = Some(delivery.at);
        // Both engines keep what PostgreSQL can.
        let output = delivery.output.replace('\0', "\u{fffd}");
        message.deliveries.push(NewDelivery { output, ..delivery.clone() });
        message.add_event(delivery.at, outcome.event.kind, &outcome.event.data);
        if delivery.status == Status::SoftFail {
            entry.due_at = delivery.next_attempt_at.unwrap_or(delivery.at);
            entry.attempts += u32::from(outcome.counts_as_attempt);
            message.next_attempt_at = Some(entry.due_at);
        } else {
            message.next_attempt_at = None;
            self.queue.retain(|entry| entry.message != number);
        }
        true
    }

    pub(super) fn release(&mut self, numbers: &[usize]) {
        for entry in self.queue.iter_mut().filter(|entry| numbers.contains(&entry.message)) {
            entry.claimed = false;
        }
    }

    pub(super) fn forget_claims(&mut self) {
        for entry in &mut self.queue {
            entry.claimed = false;
        }
    }

    pub(super) fn purge(&mut self, now: Timestamp, limit: usize) -> usize {
        self.keys.sort_by(|a, b| (a.expires_at, a.server, &a.text).cmp(&(b.expires_at, b.server, &b.text)));
        let over = self.keys.iter().filter(|key| key.expires_at <= now).count().min(limit);
        self.keys.drain(..over);
        over
    }
}
