//! Ceilings that the operator sets on a server: its own key can set lower values, never higher ones.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{SendRate, ServerMode};
use serde_json::Value;

use super::AdminError;
use super::servers::shown;
use crate::App;

/// Ceiling on a server's retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaysCeiling {
    Days(u32),
    /// No ceiling: the installation's retention.
    None,
}

impl From<DaysCeiling> for Option<u32> {
    fn from(ceiling: DaysCeiling) -> Self {
        match ceiling {
            DaysCeiling::Days(days) => Some(days),
            DaysCeiling::None => None,
        }
    }
}

#[boxed_futures]
impl App {
    /// A development server cannot be made live by its own key; a live server can be set to either mode.
    pub async fn set_server_mode(&self, name_or_id: &str, mode: ServerMode) -> Result<Value, AdminError> {
        let id = self.find_server(name_or_id).await?.id;
        self.changing_server(id).set_server_mode(id, mode).await?;
        Ok(shown(&self.server_by_id(id).await?))
    }

    pub async fn set_server_rate(
        &self,
        name_or_id: &str,
        rate: Option<SendRate>,
    ) -> Result<Value, AdminError> {
        let id = self.find_server(name_or_id).await?.id;
        self.changing_server(id).set_server_send_rate(id, rate).await?;
        Ok(shown(&self.server_by_id(id).await?))
    }

    pub async fn set_server_limit(&self, name_or_id: &str, limit: Option<u32>) -> Result<Value, AdminError> {
        let id = self.find_server(name_or_id).await?.id;
        self.changing_server(id).set_server_hourly_limit(id, limit).await?;
        Ok(shown(&self.server_by_id(id).await?))
    }

    /// Changes only the ceilings that are given.
    pub async fn set_server_retention(
        &self,
        name_or_id: &str,
        bodies_days: Option<DaysCeiling>,
        messages_days: Option<DaysCeiling>,
    ) -> Result<Value, AdminError> {
        let server = self.find_server(name_or_id).await?;
        let bodies = bodies_days.map_or(server.set_ceilings.operator.bodies_days, Into::into);
        let messages = messages_days.map_or(server.set_ceilings.operator.messages_days, Into::into);
        self.changing_server(server.id).set_server_retention(server.id, bodies, messages).await?;
        Ok(shown(&self.server_by_id(server.id).await?))
    }
}
