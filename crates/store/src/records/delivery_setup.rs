//! What the delivery engine goes by: pools and their source addresses, gates, and how servers may send.

use postroad_model::{PoolId, SendRate, ServerId};

use crate::gates::Gate;
use crate::pools::{Pool, Source};

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
