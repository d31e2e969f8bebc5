//! Simulated receiver with limits that senders do not know: connections, messages a minute, greylisting,
//! blocks, slow replies. A pure state machine with time as an argument, so hours of mail take seconds.

mod limits;
mod rate;

use std::collections::HashMap;

use postroad_model::Timestamp;

pub use limits::{BlockedTime, Greylist, HiddenLimits, RateLimit, RefusedAt, Window};

use rate::RateCount;

/// Reply that stands for a broken connection.
const LOST_CONNECTION_REPLY: &str = "421 4.4.2 connection lost";

/// Reply that refuses a connection or a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub at: RefusedAt,
    pub reply: String,
    /// Whether the connection ends: after a 421, and after any refusal at the banner.
    pub closes: bool,
}

/// Message offered to the receiver.
#[derive(Debug, Clone, Copy)]
pub struct OfferedMessage<'a> {
    pub id: i64,
    pub sender: &'a str,
    pub recipient: &'a str,
}

/// Simulated receiver. Source addresses are numbers.
#[derive(Debug)]
pub struct HiddenReceiver {
    limits: HiddenLimits,
    start: Timestamp,
    rate: HashMap<i64, RateCount>,
    /// Open connections by number, with their source and the number of accepted messages.
    open: HashMap<u64, (i64, u32)>,
    connections_made: u64,
    /// First offer of each sender, recipient and source, for greylisting.
    first_seen: HashMap<(String, String, i64), Timestamp>,
    /// Accepted messages in order.
    pub accepted: Vec<(i64, Timestamp)>,
    /// Refused messages and connections.
    pub refused: Vec<(RefusedAt, Timestamp)>,
    /// Maximum number of connections open at the same time.
    pub open_peak: usize,
}

impl HiddenReceiver {
    pub fn new(limits: HiddenLimits, start: Timestamp) -> Self {
        Self {
            limits,
            start,
            rate: HashMap::new(),
            open: HashMap::new(),
            connections_made: 0,
            first_seen: HashMap::new(),
            accepted: Vec::new(),
            refused: Vec::new(),
            open_peak: 0,
        }
    }

    pub fn limits(&self) -> &HiddenLimits {
        &self.limits
    }

    /// Opens a connection from this source address; returns its number, or the refusing banner.
    pub fn connect(&mut self, source: i64, now: Timestamp) -> Result<u64, Refusal> {
        if let Some(reply) = self.block_reply(now, RefusedAt::Banner) {
            return Err(self.refuse(RefusedAt::Banner, reply, now));
        }
        let is_refused_here = self.limits.connections_refused_at == RefusedAt::Banner;
        if is_refused_here && self.is_beyond_connections(source, self.connections_made + 1) {
            let reply = self.limits.connections_reply.clone();
            return Err(self.refuse(RefusedAt::Banner, reply, now));
        }
        let rate = self.limits.rate.clone().filter(|rate| rate.at == RefusedAt::Banner);
        if let Some(rate) = rate
            && !self.is_within_rate(source, now)
        {
            return Err(self.refuse(RefusedAt::Banner, rate.reply, now));
        }
        self.connections_made += 1;
        self.open.insert(self.connections_made, (source, 0));
        self.open_peak = self.open_peak.max(self.open.len());
        Ok(self.connections_made)
    }

    pub fn disconnect(&mut self, connection: u64) {
        self.open.remove(&connection);
    }

    /// Offers a whole message: accepted, or refused at some stage.
    pub fn offer_message(
        &mut self,
        connection: u64,
        offered: OfferedMessage<'_>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        for at in [RefusedAt::MailFrom, RefusedAt::RcptTo, RefusedAt::EndOfData] {
            self.offer_stage(at, connection, offered, now)?;
        }
        Ok(())
    }

    /// Offers one stage of a message; it is accepted at the end of its data.
    pub fn offer_stage(
        &mut self,
        at: RefusedAt,
        connection: u64,
        offered: OfferedMessage<'_>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Some((source, messages_carried)) = self.open.get(&connection).copied() else {
            return Err(Refusal { at, reply: LOST_CONNECTION_REPLY.to_owned(), closes: true });
        };
        let is_refused_here = self.limits.connections_refused_at == at;
        let too_many = (is_refused_here && self.is_beyond_connections(source, connection))
            .then(|| self.limits.connections_reply.clone());
        if let Some(reply) = too_many.or_else(|| self.refusal_at(at, source, messages_carried, offered, now))
        {
            let refusal = self.refuse(at, reply, now);
            if refusal.closes {
                self.open.remove(&connection);
            }
            return Err(refusal);
        }
        if let Some(rate) = self.limits.rate.as_ref().filter(|rate| rate.at.of_message() == at) {
            // A message counts from the stage at which it is limited, so that concurrent messages do not all use the
            // same free slot.
            let per_minute = self.limits.per_minute_at(now.since(self.start));
            self.rate.entry(source).or_default().take(rate.window, per_minute, now);
        }
        if at == RefusedAt::EndOfData {
            if let Some((_, messages_carried)) = self.open.get_mut(&connection) {
                *messages_carried += 1;
            }
            self.accepted.push((offered.id, now));
        }
        Ok(())
    }

    /// Whether this source has its maximum number of older connections open.
    fn is_beyond_connections(&self, source: i64, connection: u64) -> bool {
        let before =
            self.open.iter().filter(|(id, (other, _))| **id < connection && *other == source).count();
        self.limits.connections_max.is_some_and(|max| before >= max as usize)
    }

    fn refusal_at(
        &mut self,
        at: RefusedAt,
        source: i64,
        messages_carried: u32,
        offered: OfferedMessage<'_>,
        now: Timestamp,
    ) -> Option<String> {
        if at == RefusedAt::MailFrom {
            if self.limits.messages_per_connection.is_some_and(|max| messages_carried >= max) {
                return Some("421 4.7.0 Too many messages per connection".to_owned());
            }
            // A block at the banner also refuses messages on connections that were opened before it began.
            if let Some(reply) = self.block_reply(now, RefusedAt::Banner) {
                let is_down = reply.is_empty();
                return Some(if is_down { LOST_CONNECTION_REPLY.to_owned() } else { reply });
            }
        }
        if let Some(reply) = self.block_reply(now, at) {
            return Some(reply);
        }
        let rate = self.limits.rate.as_ref().filter(|rate| rate.at.of_message() == at);
        if let Some(reply) = rate.map(|rate| rate.reply.clone())
            && !self.is_within_rate(source, now)
        {
            return Some(reply);
        }
        if at == RefusedAt::RcptTo { self.recipient_refusal(source, offered, now) } else { None }
    }

    fn recipient_refusal(
        &mut self,
        source: i64,
        offered: OfferedMessage<'_>,
        now: Timestamp,
    ) -> Option<String> {
        let domain = offered.recipient.rsplit('@').next().unwrap_or_default();
        let refused = self.limits.refused_domains.iter().find(|(name, _)| name == domain);
        if let Some((_, reply)) = refused {
            return Some(reply.clone());
        }
        if let Some((_, reply)) = self.limits.refused_sources.iter().find(|(refused, _)| *refused == source) {
            return Some(reply.clone());
        }
        let greylist = self.limits.greylist?;
        let of_source = if greylist.by_source { source } else { 0 };
        let triple = (offered.sender.to_owned(), offered.recipient.to_owned(), of_source);
        let first = *self.first_seen.entry(triple).or_insert(now);
        (now.since(first) < greylist.wait)
            .then(|| "450 4.2.0 Recipient address rejected: Greylisted, try again later".to_owned())
    }

    fn is_within_rate(&mut self, source: i64, now: Timestamp) -> bool {
        let Some(rate) = &self.limits.rate else { return true };
        let per_minute = self.limits.per_minute_at(now.since(self.start));
        self.rate.entry(source).or_default().has_room(rate.window, per_minute, now)
    }

    /// Reply of the block that is in force at this stage and time.
    fn block_reply(&self, now: Timestamp, at: RefusedAt) -> Option<String> {
        let since_start = now.since(self.start);
        let is_running =
            |block: &&BlockedTime| block.at == at && (block.from..block.to).contains(&since_start);
        self.limits.blocks.iter().find(is_running).map(|block| block.reply.clone())
    }

    fn refuse(&mut self, at: RefusedAt, reply: String, now: Timestamp) -> Refusal {
        self.refused.push((at, now));
        let closes = at == RefusedAt::Banner || reply.starts_with("421");
        Refusal { at, reply, closes }
    }
}
