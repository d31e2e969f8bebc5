//! A change of a server's settings.

use postroad_model::{Change, SendRate, ServerMode};

/// Settings to change; those that are not named stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChange {
    pub name: Option<String>,
    pub mode: Option<ServerMode>,
    pub send_rate: Change<SendRate>,
    pub hourly_limit: Change<u32>,
    pub track_opens: Option<bool>,
    pub track_clicks: Option<bool>,
    pub track_excluded_hosts: Option<Vec<String>>,
    pub bodies_days: Change<u32>,
    pub messages_days: Change<u32>,
}
