//! What is changed of a server's settings at once.

use postroad_model::{Change, SendRate, ServerMode};

/// What is not named stays as it is.
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
