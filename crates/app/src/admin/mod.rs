//! Operations of the operator at the command line, one method of `App` each; the answer is JSON. Servers are named by
//! `NAME`, `ACCOUNT/NAME` or id.

mod account_keys;
mod accounts;
mod ceilings;
mod domains;
mod gates;
mod keys;
mod pools;
mod queue;
mod servers;
mod suppressions;
mod tracking;
mod users;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject};
use postroad_store::{Server, StoreError};
use serde_json::{Value, json};

pub use ceilings::DaysCeiling;
pub use domains::NamedDomain;
pub use keys::NewKey;
pub use tracking::{SetDomainTracking, SetServerTracking, Switch};

use crate::accounts::AccountRefusal;
use crate::{App, Refusal};

/// Why a command failed; the text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdminError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

#[boxed_futures]
impl App {
    /// Finds a server by id, `NAME` (if unique) or `ACCOUNT/NAME`.
    pub async fn find_server_id(&self, name_or_id: &str) -> Result<postroad_model::ServerId, AdminError> {
        Ok(self.find_server(name_or_id).await?.id)
    }

    /// The server of an installation with exactly one.
    pub async fn only_server_id(&self) -> Result<postroad_model::ServerId, AdminError> {
        match self.inner.store.list_servers().await?.as_slice() {
            [only] => Ok(only.id),
            [] => {
                Err(AdminError::refused("there is no server yet; `postroad admin server create` creates one"))
            }
            _ => Err(AdminError::refused("there are several servers; say which one with --server")),
        }
    }

    /// Tells in the answer when the account comes near its ceiling.
    async fn add_ceiling_warning(&self, answer: &mut Value, account_id: AccountId, what: LimitedObject) {
        if let Some(warning) = self.ceiling_warning(account_id, what).await {
            answer["warnings"] = json!([warning]);
        }
    }

    /// Finds a server by id, `NAME` (if unique) or `ACCOUNT/NAME`.
    async fn find_server(&self, name_or_id: &str) -> Result<Server, AdminError> {
        let servers = self.inner.store.list_servers().await?;
        let is_meant = |server: &&Server| {
            server.name == name_or_id
                || format!("{}/{}", server.account_name, server.name) == name_or_id
                || server.id.to_string() == name_or_id
        };
        let mut meant = servers.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(server), None) => Ok(server.clone()),
            (Some(one), Some(other)) => Err(AdminError::refused(format!(
                "several servers are called `{name_or_id}`: say {}/{} (id {}) or {}/{} (id {})",
                one.account_name, one.name, one.id, other.account_name, other.name, other.id
            ))),
            (None, _) => Err(AdminError::refused(format!(
                "there is no server `{name_or_id}`; `postroad admin server list` shows them"
            ))),
        }
    }
}

/// Turns a refusal into an error that names the object.
fn named(what: String) -> impl FnOnce(AccountRefusal) -> AdminError {
    move |refusal| match refusal {
        AccountRefusal::Exists(_) => AdminError::refused(format!("{what} exists already")),
        AccountRefusal::PoolInUse => AdminError::refused(format!(
            "{what} is in use: remove its addresses and give its servers another pool first"
        )),
        other => other.into(),
    }
}

impl From<AccountRefusal> for AdminError {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::Store(error) => error.into(),
            // All wrong fields, not only the first.
            AccountRefusal::Refused(Refusal::Validation(problems)) => {
                let texts: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                Self::refused(texts.join("; "))
            }
            other => Self::refused(other.to_string()),
        }
    }
}
