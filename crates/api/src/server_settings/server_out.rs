//! JSON form of a server's settings.

use crate::documented::ToSchema;
use postroad_store::Server;
use serde::Serialize;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerOut {
    id: i64,
    #[schema(example = "shop")]
    name: String,
    /// `live`, or `development`: accepts mail like a live server and holds all of it.
    #[schema(example = "live")]
    mode: &'static str,
    /// Highest sending rate; null for no limit.
    #[schema(example = "100/m")]
    send_rate: Option<String>,
    /// Messages per hour; messages beyond it are held. Null for no limit.
    hourly_limit: Option<u32>,
    tracking: TrackingOut,
    retention: RetentionOut,
    ceilings: CeilingsOut,
    /// Incremented by every change; pass it as `if_version` to avoid overwriting a change that you have not seen.
    version: i64,
    #[schema(example = "2026-11-15T12:00:00Z")]
    created_at: String,
    updated_at: String,
}

/// Tracking defaults, unless a domain or a message overrides them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrackingOut {
    opens: bool,
    clicks: bool,
    /// Links to these hosts are not rewritten.
    excluded_hosts: Vec<String>,
}

/// Retention in days, if shorter than the installation's; null for the installation's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetentionOut {
    /// Message bodies.
    #[schema(example = 7)]
    bodies_days: Option<u32>,
    /// Messages with all their data.
    messages_days: Option<u32>,
}

/// Highest values that server/update accepts, set by the operator or the account; null for no ceiling.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CeilingsOut {
    /// With `development`, only the operator or account that set it can make the server live.
    mode: Option<&'static str>,
    send_rate: Option<String>,
    #[schema(example = 10000)]
    hourly_limit: Option<u32>,
    retention: RetentionCeilingsOut,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetentionCeilingsOut {
    pub(crate) bodies_days: Option<u32>,
    pub(crate) messages_days: Option<u32>,
}

impl From<Server> for ServerOut {
    fn from(server: Server) -> Self {
        Self {
            id: server.id.0,
            name: server.name,
            mode: server.mode.as_str(),
            send_rate: server.send_rate.map(|rate| rate.to_string()),
            hourly_limit: server.hourly_limit,
            tracking: TrackingOut {
                opens: server.tracking.opens,
                clicks: server.tracking.clicks,
                excluded_hosts: server.tracking.excluded_hosts,
            },
            retention: RetentionOut {
                bodies_days: server.retention.bodies_days,
                messages_days: server.retention.messages_days,
            },
            ceilings: CeilingsOut {
                mode: server.ceilings.mode.map(postroad_model::ServerMode::as_str),
                send_rate: server.ceilings.send_rate.map(|rate| rate.to_string()),
                hourly_limit: server.ceilings.hourly_limit,
                retention: RetentionCeilingsOut {
                    bodies_days: server.ceilings.bodies_days,
                    messages_days: server.ceilings.messages_days,
                },
            },
            version: server.version,
            created_at: server.created_at.to_rfc3339(),
            updated_at: server.updated_at.to_rfc3339(),
        }
    }
}
