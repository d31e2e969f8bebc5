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

use std::ops::Deref;

use postroad_boxed_futures::boxed_futures;
use postroad_store::{AuditSubject, Server, Store, StoreError};

pub use ceilings::DaysCeiling;
pub use domains::NamedDomain;
pub use keys::NewKey;
pub use tracking::{SetDomainTracking, SetServerTracking, Switch};

use crate::access::Operation;
use crate::accounts::Requester;
use crate::{App, names};

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

    /// The store, for one change by the operator at the command line. The process uses the change at once.
    fn by_operator(&self, operation: Operation, subject: AuditSubject) -> OperatorChange<'_> {
        OperatorChange { app: self, store: self.recording(&Requester::command_line(), operation, subject) }
    }

    fn changing_server(&self, id: postroad_model::ServerId) -> OperatorChange<'_> {
        self.by_operator(Operation::ServersUpdate, AuditSubject::Server(id))
    }

    /// Current state of a server that was found before.
    async fn server_by_id(&self, id: postroad_model::ServerId) -> Result<Server, AdminError> {
        self.inner.store.find_server(id).await?.ok_or_else(|| StoreError::NotFound.into())
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

/// The store during one change. Clears the caches of accounts, servers, keys and domains when it is dropped.
struct OperatorChange<'a> {
    app: &'a App,
    store: Store,
}

impl Deref for OperatorChange<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Drop for OperatorChange<'_> {
    fn drop(&mut self) {
        self.app.forget_setup();
    }
}

/// Checks and trims the name.
fn check_name(name: &str) -> Result<String, AdminError> {
    checked(name, names::find_problem(name))
}

fn check_account_name(name: &str) -> Result<String, AdminError> {
    checked(name, names::find_account_problem(name))
}

fn checked(name: &str, problem: Option<&str>) -> Result<String, AdminError> {
    match problem {
        None => Ok(name.trim().to_owned()),
        Some(problem) => Err(AdminError::refused(format!("a name {problem}"))),
    }
}

/// Turns a conflict into an error that names what exists already.
fn taken(what: impl Into<String>) -> impl FnOnce(StoreError) -> AdminError {
    let what = what.into();
    move |error| match error {
        StoreError::Conflict => AdminError::Refused(format!("{what} exists already")),
        other => other.into(),
    }
}
