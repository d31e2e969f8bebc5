//! A server's settings: several at once by its own key, and the ceilings that the operator sets.

use postroad_model::{SendRate, ServerId, ServerMode};

use crate::records::{ServerChange, ServerUpdate};
use crate::verbs::{ceilings, server_change};
use crate::{Result, Store};

impl Store {
    /// Changes all of it or nothing, and nothing beyond the ceilings. `Conflict` if another server of the account has
    /// the name.
    pub async fn update_server(&self, id: ServerId, change: ServerChange) -> Result<ServerUpdate> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(server_change::update(sql, id, change, now))).await
    }

    /// The operator's word: a development server cannot be made live by its own key.
    pub async fn set_server_mode(&self, id: ServerId, mode: ServerMode) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(ceilings::set_mode(sql, id, mode, now))).await
    }

    /// The ceiling, and the rate in force if it was at the old ceiling or is above the new one.
    pub async fn set_server_send_rate(&self, id: ServerId, ceiling: Option<SendRate>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(ceilings::set_send_rate(sql, id, ceiling, now))).await
    }

    /// Likewise.
    pub async fn set_server_hourly_limit(&self, id: ServerId, ceiling: Option<u32>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(ceilings::set_hourly_limit(sql, id, ceiling, now))).await
    }

    /// Likewise, for the text of messages and for messages with everything about them.
    pub async fn set_server_retention(
        &self,
        id: ServerId,
        bodies_days: Option<u32>,
        messages_days: Option<u32>,
    ) -> Result<()> {
        let now = self.clock.now();
        let (bodies, messages) = (bodies_days, messages_days);
        self.change(move |sql| Box::pin(ceilings::set_retention(sql, id, bodies, messages, now))).await
    }
}
