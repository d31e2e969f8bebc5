//! What the delivery engine goes by: pools and their source addresses, gates, and how servers may send.

use std::net::IpAddr;

use postroad_model::{DomainName, PoolId, SendRate, ServerId, SourceId, Timestamp};

use crate::gates::Gate;

/// Everything at once, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySetup {
    pub servers: Vec<ServerDelivery>,
    pub pools: Vec<Pool>,
    pub sources: Vec<Source>,
    /// Those that have not ended.
    pub gates: Vec<Gate>,
    /// Nodes that share the work, this one among them.
    pub live_nodes: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDelivery {
    pub id: ServerId,
    pub name: String,
    /// Its own or its account's.
    pub suspended_reason: Option<String>,
    pub pool_id: Option<PoolId>,
    pub send_rate: Option<SendRate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub id: PoolId,
    pub name: String,
    /// The one that others overflow to.
    pub shared: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    pub pool_id: PoolId,
    pub address: IpAddr,
    /// The name it greets with, which its PTR record should give.
    pub helo: DomainName,
    pub weight: u32,
    pub warmup_started_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub id: SourceId,
    pub pool_id: PoolId,
    pub address: IpAddr,
    pub helo: DomainName,
    pub weight: u32,
    /// `None` for an address that is warm.
    pub warmup_started_at: Option<Timestamp>,
    pub warmup_paused_reason: Option<String>,
    /// When the warm-up was paused; from then on the days of its plan stand still.
    pub warmup_paused_at: Option<Timestamp>,
    /// Days of earlier pauses, which the plan does not count.
    pub warmup_days_paused: u32,
    /// Since midnight UTC.
    pub sent_today: u64,
    pub bounced_today: u64,
    pub complained_today: u64,
    /// The same by group of receivers.
    pub today_by_provider: Vec<(String, SourceCounts)>,
    /// Of today's counts, those since the warm-up was started or resumed: only they can pause it.
    pub to_judge: SourceCounts,
}

impl Source {
    /// The day of the warm-up plan, from zero; days on which it was paused do not count. `None` for a warm address.
    pub fn warmup_day(&self, now: Timestamp) -> Option<u32> {
        let day_of = |moment: Timestamp| moment.as_secs().div_euclid(86_400);
        let days = day_of(now) - day_of(self.warmup_started_at?) - i64::from(self.warmup_days_paused);
        Some(u32::try_from(days).unwrap_or(0))
    }
}

/// Messages that left from a source, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceCounts {
    pub sent: u64,
    pub bounced: u64,
    pub complained: u64,
}

/// What a source did on one UTC day at one group of receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDay {
    /// Midnight, when it began.
    pub day: Timestamp,
    pub provider: String,
    pub counts: SourceCounts,
}

/// A warm-up that has to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmupPause {
    pub source_id: SourceId,
    pub reason: String,
    /// The name of the address's pool.
    pub pool: String,
    /// Those to be told: they send from the pool.
    pub servers: Vec<ServerId>,
}
