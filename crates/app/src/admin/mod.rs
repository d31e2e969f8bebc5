//! Administration: the commands of an operator. A command is data, so that it can also be sent to a running
//! server over its control socket; the answer is JSON.

mod account_keys;
mod accounts;
mod ceilings;
mod command;
mod domains;
mod keys;
mod pools;
mod servers;
mod suppressions;
mod tracking;

use postroad_boxed_futures::boxed_futures;
use postroad_store::{AuditSubject, Server, Store, StoreError};
use serde_json::{Value, json};

pub use command::{
    Command, DaysCeiling, NamedDomain, NewAccountKeyCommand, NewKey, SetDomainTracking, SetServerTracking,
    Switch,
};
pub use pools::WarmUpState;

use crate::access::{Actor, Operation, Subject, permit};
use crate::accounts::Requester;
use crate::domains::ReportPeriod;
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
    /// Executes a command and returns the created or found objects.
    pub async fn execute(&self, command: Command) -> Result<Value, AdminError> {
        permit(&Actor::CommandLine, command.operation(), Subject::Installation)
            .map_err(|denial| AdminError::refused(format!("{denial:?}")))?;
        let answer = match command {
            Command::AccountCreate { name } => self.create_account(name).await,
            Command::AccountList => self.list_accounts().await,
            Command::AccountSuspend { name, reason } => self.suspend_account(&name, Some(reason)).await,
            Command::AccountResume { name } => self.suspend_account(&name, None).await,
            Command::ServerCreate { name, account, mode } => self.create_server(name, &account, mode).await,
            Command::ServerList => self.list_servers().await,
            Command::ServerSuspend { server, reason } => self.suspend_server(&server, Some(reason)).await,
            Command::ServerResume { server } => self.suspend_server(&server, None).await,
            Command::ServerSetMode { server, mode } => self.set_server_mode(&server, mode).await,
            Command::ServerSetPool { server, pool } => self.set_server_pool(&server, pool.as_deref()).await,
            Command::ServerSetRate { server, rate } => self.set_server_rate(&server, rate).await,
            Command::ServerSetHourlyLimit { server, limit } => self.set_server_limit(&server, limit).await,
            Command::ServerSetRetention { server, bodies_days, messages_days } => {
                self.set_server_retention(&server, bodies_days, messages_days).await
            }
            Command::ServerSetTracking(order) => self.set_server_tracking(order).await,
            Command::DomainSetTracking(order) => self.set_domain_tracking(order).await,
            Command::DomainCreate { domain, key } => self.add_domain(domain, key).await,
            Command::DomainList { server, account } => {
                self.show_domains(server.as_deref(), account.as_deref()).await
            }
            Command::DomainSetVerified { domain, verified } => {
                self.set_domain_verified(&domain, verified).await
            }
            Command::DomainRecords(domain) => self.domain_records(&domain).await,
            Command::DomainVerify(domain) => self.check_domain(&domain).await,
            Command::DomainDelete(domain) => self.remove_domain(&domain).await,
            Command::DomainRotateDkim { domain, key } => self.give_new_key(&domain, key).await,
            Command::DomainZone(domain) => self.domain_zone_of(&domain).await,
            Command::DomainReports { domain, from, to } => {
                self.show_domain_reports(&domain, ReportPeriod { from, to }).await
            }
            Command::InstallationRecords => self.installation_records().await,
            Command::InstallationZone => self.installation_zone().await,
            Command::InstallationSetHost { host } => self.rename_installation(&host).await,
            Command::PoolCreate { name, shared } => self.create_pool(name, shared).await,
            Command::PoolList => self.list_pools().await,
            Command::PoolDelete { name } => self.delete_pool(&name).await,
            Command::PoolAddAddress { pool, address, helo, weight, warm_up } => {
                self.add_address(&pool, address, &helo, weight, warm_up).await
            }
            Command::PoolRemoveAddress { address } => self.remove_address(address).await,
            Command::PoolWarmUp { address, state } => self.set_warm_up(address, state).await,
            Command::PoolHistory { address } => self.address_history(address).await,
            Command::KeyCreate(new) => self.create_key(new).await,
            Command::KeyList { server } => self.list_keys(server.as_deref()).await,
            Command::KeyRevoke { id } => self.revoke_key(id).await,
            Command::KeyRotate { id, grace_seconds } => self.rotate_key(id, grace_seconds).await,
            Command::SuppressionAdd { server, item } => self.add_suppression(&server, item).await,
            Command::SuppressionImport { server, items } => self.import_suppressions(&server, &items).await,
            Command::SuppressionRemove { server, address } => self.remove_suppression(&server, address).await,
            Command::SuppressionList { server, reason, limit } => {
                self.show_suppressions(&server, reason, limit).await
            }
            Command::SuppressionExport { server, after } => self.export_page(&server, after).await,
            Command::AccountKeyCreate(new) => self.make_account_key(new).await,
            Command::AccountKeyList { account } => self.show_account_keys(account.as_deref()).await,
            Command::AccountKeyRevoke { account, id } => self.end_account_key(account.as_deref(), id).await,
            Command::AuditVerify => self.check_audit().await,
            Command::Reports { domain } => self.domain_reports(domain.as_deref()).await,
            Command::Maintenance { on } => {
                self.set_maintenance(on).await?;
                Ok(json!({ "maintenance": on }))
            }
        };
        self.forget_setup();
        answer
    }

    /// Finds a server by id, `NAME` (if unique) or `ACCOUNT/NAME`.
    pub async fn find_server_id(&self, given: &str) -> Result<postroad_model::ServerId, AdminError> {
        Ok(self.find_server(given).await?.id)
    }

    /// The server of an installation with exactly one.
    pub async fn only_server_id(&self) -> Result<postroad_model::ServerId, AdminError> {
        match self.inner.store.list_servers().await?.as_slice() {
            [only] => Ok(only.id),
            [] => {
                Err(AdminError::refused("there is no server yet; `postroad admin server create` makes one"))
            }
            _ => Err(AdminError::refused("there are several servers; say which one with --server")),
        }
    }

    /// The store, for one change by the operator at the command line.
    fn by_operator(&self, operation: Operation, subject: AuditSubject) -> Store {
        self.recording(&Requester::command_line(), operation, subject)
    }

    fn changing_server(&self, id: postroad_model::ServerId) -> Store {
        self.by_operator(Operation::ServersUpdate, AuditSubject::Server(id))
    }

    /// Current state of a server that was found before.
    async fn server_by_id(&self, id: postroad_model::ServerId) -> Result<Server, AdminError> {
        self.inner.store.find_server(id).await?.ok_or_else(|| StoreError::NotFound.into())
    }

    /// Finds a server by id, `NAME` (if unique) or `ACCOUNT/NAME`.
    async fn find_server(&self, given: &str) -> Result<Server, AdminError> {
        let servers = self.inner.store.list_servers().await?;
        let is_meant = |server: &&Server| {
            server.name == given
                || format!("{}/{}", server.account_name, server.name) == given
                || server.id.to_string() == given
        };
        let mut meant = servers.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(server), None) => Ok(server.clone()),
            (Some(one), Some(other)) => Err(AdminError::refused(format!(
                "several servers are called `{given}`: say {}/{} (id {}) or {}/{} (id {})",
                one.account_name, one.name, one.id, other.account_name, other.name, other.id
            ))),
            (None, _) => Err(AdminError::refused(format!(
                "there is no server `{given}`; `postroad admin server list` shows them"
            ))),
        }
    }
}

/// Checks and trims the name.
fn check_name(name: &str) -> Result<String, AdminError> {
    match names::find_problem(name) {
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
