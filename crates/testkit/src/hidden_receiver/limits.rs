//! Limits of a simulated receiver, as data.

use std::time::Duration;

/// Limits of a receiver; none by default.
#[derive(Debug, Clone)]
pub struct HiddenLimits {
    /// Concurrent connections from one source address.
    pub connections_max: Option<u32>,
    pub connections_reply: String,
    /// Stage at which a connection beyond the limit is refused: at its banner, or at a later stage of each message.
    pub connections_refused_at: RefusedAt,
    pub rate: Option<RateLimit>,
    /// Changes of the rate: time after the start, and the rate from then on.
    pub rate_steps: Vec<(Duration, f64)>,
    pub messages_per_connection: Option<u32>,
    pub greylist: Option<Greylist>,
    pub blocks: Vec<BlockedTime>,
    /// Recipient domains refused at RCPT, with their replies.
    pub refused_domains: Vec<(String, String)>,
    /// Numbers of source addresses refused at RCPT, with their replies.
    pub refused_sources: Vec<(i64, String)>,
    /// Time from connecting to the greeting.
    pub connect_time: Duration,
    /// Time for a message, including a tarpit's delay.
    pub message_time: Duration,
}

/// Rate of messages from one source address.
#[derive(Debug, Clone)]
pub struct RateLimit {
    pub per_minute: f64,
    pub window: Window,
    /// Stage at which a message beyond the rate is refused.
    pub at: RefusedAt,
    pub reply: String,
}

/// How the receiver counts a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last 60 seconds.
    Sliding,
    /// Minutes of the clock.
    Fixed,
    /// Token bucket with a reserve of this many seconds.
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
    /// Stage at which a message on an open connection is refused: MAIL instead of the banner.
    pub(super) fn of_message(self) -> Self {
        if self == Self::Banner { Self::MailFrom } else { self }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Greylist {
    pub wait: Duration,
    /// Whether a message that comes from another source address must wait again.
    pub by_source: bool,
}

/// Time range after the start in which everything is refused.
#[derive(Debug, Clone)]
pub struct BlockedTime {
    pub from: Duration,
    pub to: Duration,
    pub at: RefusedAt,
    /// Empty if the host is down: connections fail without a reply.
    pub reply: String,
}

impl Default for HiddenLimits {
    fn default() -> Self {
        Self {
            connections_max: None,
            connections_reply: "421 4.7.0 Too many connections from your address".to_owned(),
            connections_refused_at: RefusedAt::Banner,
            rate: None,
            rate_steps: Vec::new(),
            messages_per_connection: None,
            greylist: None,
            blocks: Vec::new(),
            refused_domains: Vec::new(),
            refused_sources: Vec::new(),
            connect_time: Duration::from_millis(60),
            message_time: Duration::from_millis(80),
        }
    }
}

impl HiddenLimits {
    /// Rate at this time after the start.
    pub(super) fn per_minute_at(&self, since_start: Duration) -> f64 {
        let step = self.rate_steps.iter().rev().find(|(from, _)| *from <= since_start);
        step.map_or_else(
            || self.rate.as_ref().map_or(f64::INFINITY, |rate| rate.per_minute),
            |(_, rate)| *rate,
        )
    }

    /// Maximum number of messages that the receiver accepts from one source address in a time range after the start,
    /// without the reserve of a token bucket.
    pub fn capacity(&self, from: Duration, to: Duration) -> f64 {
        let mut borders = vec![from, to];
        borders.extend(self.rate_steps.iter().map(|(at, _)| *at).filter(|at| (from..to).contains(at)));
        borders.sort_unstable();
        let parts = borders.windows(2).map(|part| {
            let minutes = part[1].saturating_sub(part[0]).as_secs_f64() / 60.0;
            let by_rate = self.per_minute_at(part[0]) * minutes;
            let by_connections = self.connections_max.map_or(f64::INFINITY, |max| {
                f64::from(max) * minutes * 60.0 / self.message_time.as_secs_f64()
            });
            by_rate.min(by_connections)
        });
        parts.sum()
    }
}
