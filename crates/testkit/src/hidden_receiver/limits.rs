//! The limits of a receiver, as data.

use std::time::Duration;

/// Nothing is limited by default.
#[derive(Debug, Clone)]
pub struct HiddenLimits {
    /// Connections at once from one source address.
    pub connections_max: Option<u32>,
    pub connections_reply: String,
    pub rate: Option<RateLimit>,
    /// From so long after the start on, the rate is this.
    pub rate_steps: Vec<(Duration, f64)>,
    pub messages_per_connection: Option<u32>,
    pub greylist: Option<Greylist>,
    pub blocks: Vec<BlockedTime>,
    /// Recipient domains that refuse everything at RCPT, and what they say.
    pub refused_domains: Vec<(String, String)>,
    /// How long a connection takes until its greeting.
    pub connect_time: Duration,
    /// How long a message takes, with what a tarpit adds.
    pub message_time: Duration,
}

/// Messages from one source address.
#[derive(Debug, Clone)]
pub struct RateLimit {
    pub per_minute: f64,
    pub window: Window,
    pub at: RefusedAt,
    pub reply: String,
}

/// How a receiver counts a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Those of the last 60 seconds.
    Sliding,
    /// Minutes by the clock.
    Fixed,
    /// An even refill, with so many seconds' worth in reserve.
    Bucket { reserve_secs: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusedAt {
    Banner,
    MailFrom,
    RcptTo,
    EndOfData,
}

impl RefusedAt {
    /// The moment of a message on an open connection. Such a connection hears at MAIL what new ones hear at the banner.
    pub(super) fn of_message(self) -> Self {
        if self == Self::Banner { Self::MailFrom } else { self }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Greylist {
    pub wait: Duration,
    /// Whether another source address has to wait anew.
    pub by_source: bool,
}

/// Nothing is taken in this time.
#[derive(Debug, Clone)]
pub struct BlockedTime {
    pub from: Duration,
    pub to: Duration,
    pub at: RefusedAt,
    pub reply: String,
}

impl Default for HiddenLimits {
    fn default() -> Self {
        Self {
            connections_max: None,
            connections_reply: "421 4.7.0 Too many connections from your address".to_owned(),
            rate: None,
            rate_steps: Vec::new(),
            messages_per_connection: None,
            greylist: None,
            blocks: Vec::new(),
            refused_domains: Vec::new(),
            connect_time: Duration::from_millis(60),
            message_time: Duration::from_millis(80),
        }
    }
}

impl HiddenLimits {
    /// The rate so long after the start.
    pub(super) fn per_minute_at(&self, since_start: Duration) -> f64 {
        let step = self.rate_steps.iter().rev().find(|(from, _)| *from <= since_start);
        step.map_or_else(
            || self.rate.as_ref().map_or(f64::INFINITY, |rate| rate.per_minute),
            |(_, rate)| *rate,
        )
    }

    /// Messages that it would take from one source address between two moments after its start, at best.
    pub fn capacity(&self, from: Duration, to: Duration) -> f64 {
        let mut borders = vec![from, to];
        borders.extend(self.rate_steps.iter().map(|(at, _)| *at).filter(|at| (from..to).contains(at)));
        borders.sort_unstable();
        let parts = borders.windows(2).map(|part| {
            let minutes = part[1].saturating_sub(part[0]).as_secs_f64() / 60.0;
            let by_rate = self.per_minute_at(part[0]) * minutes;
            let by_connections = self.connections_max.map_or(f64::INFINITY, |most| {
                f64::from(most) * minutes * 60.0 / self.message_time.as_secs_f64()
            });
            by_rate.min(by_connections)
        });
        parts.sum()
    }
}
