//! Ceilings that the operator sets on a server: its keys and its account can set lower values, but not higher ones.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Change, SendRate, ServerMode};
use serde_json::Value;

use super::AdminError;
use super::servers::{server_json, update_of_settings};
use crate::accounts::{Requester, ServerUpdateRequest};
use crate::{App, ServerChangeRequest};

/// Ceiling on a server's retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaysCeiling {
    Days(u32),
    /// No ceiling by the operator on this server. Those of the account and the installation remain.
    None,
}

impl From<DaysCeiling> for Change<i64> {
    fn from(ceiling: DaysCeiling) -> Self {
        match ceiling {
            DaysCeiling::Days(days) => Self::Set(days.into()),
            DaysCeiling::None => Self::Clear,
        }
    }
}

#[boxed_futures]
impl App {
    /// Sets the mode, and the operator's ceiling on it: after `Development` only the operator can make the server live;
    /// `Live` removes the ceiling.
    pub async fn set_server_mode(&self, name_or_id: &str, mode: ServerMode) -> Result<Value, AdminError> {
        let mode = Some(mode.as_str().to_owned());
        self.set_server_ceilings(name_or_id, ServerChangeRequest { mode, ..ServerChangeRequest::default() })
            .await
    }

    pub async fn set_server_rate(
        &self,
        name_or_id: &str,
        rate: Option<SendRate>,
    ) -> Result<Value, AdminError> {
        let send_rate = rate.map(|rate| rate.to_string()).into();
        self.set_server_ceilings(
            name_or_id,
            ServerChangeRequest { send_rate, ..ServerChangeRequest::default() },
        )
        .await
    }

    pub async fn set_server_limit(&self, name_or_id: &str, limit: Option<u32>) -> Result<Value, AdminError> {
        let hourly_limit = limit.map(i64::from).into();
        self.set_server_ceilings(
            name_or_id,
            ServerChangeRequest { hourly_limit, ..ServerChangeRequest::default() },
        )
        .await
    }

    /// Changes the ceilings on retention. An absent ceiling stays as it is; `DaysCeiling::None` removes it.
    pub async fn set_server_retention(
        &self,
        name_or_id: &str,
        bodies_days: Option<DaysCeiling>,
        messages_days: Option<DaysCeiling>,
    ) -> Result<Value, AdminError> {
        let days = |ceiling: Option<DaysCeiling>| ceiling.map_or(Change::Keep, Into::into);
        let (bodies_days, messages_days) = (days(bodies_days), days(messages_days));
        let ceilings = ServerChangeRequest { bodies_days, messages_days, ..ServerChangeRequest::default() };
        self.set_server_ceilings(name_or_id, ceilings).await
    }

    async fn set_server_ceilings(
        &self,
        name_or_id: &str,
        ceilings: ServerChangeRequest,
    ) -> Result<Value, AdminError> {
        let id = self.find_server(name_or_id).await?.id;
        let request = ServerUpdateRequest { ceilings, ..update_of_settings(ServerChangeRequest::default()) };
        Ok(server_json(&self.update_server_as(&Requester::command_line(), id, request).await?))
    }
}
