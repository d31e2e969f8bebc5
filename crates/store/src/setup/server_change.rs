//! A change of a server's settings.

use postroad_model::{Change, PoolId, SendRate, ServerMode};

/// Another pool for a server. Applies only while the server's pool is `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolMove {
    pub from: Option<PoolId>,
    pub to: Option<PoolId>,
}

/// Settings to change; `None` and `Change::Keep` keep a setting.
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
    pub pool: Option<PoolMove>,
}

impl ServerChange {
    /// The change without the parts that remove limits.
    pub(super) fn without_clears(&self) -> Self {
        let mut change = self.clone();
        for limit in [&mut change.hourly_limit, &mut change.bodies_days, &mut change.messages_days] {
            keep_if(limit, |limit| matches!(limit, Change::Clear));
        }
        keep_if(&mut change.send_rate, |rate| matches!(rate, Change::Clear));
        change
    }

    /// The part of the change that removes limits.
    pub(super) fn clears(&self) -> Self {
        let mut change = Self { mode: None, ..self.clone() };
        for limit in [&mut change.hourly_limit, &mut change.bodies_days, &mut change.messages_days] {
            keep_if(limit, |limit| matches!(limit, Change::Set(_)));
        }
        keep_if(&mut change.send_rate, |rate| matches!(rate, Change::Set(_)));
        change
    }
}

/// Turns a change that is left out into `Keep`.
fn keep_if<T>(change: &mut Change<T>, is_left_out: impl Fn(&Change<T>) -> bool) {
    if is_left_out(change) {
        *change = Change::Keep;
    }
}
