//! Admin commands, as sent over the control socket.

use std::net::IpAddr;

use ipnet::IpNet;
use postroad_model::{
    AccountKeyId, AccountScope, CredentialId, Scope, SendRate, ServerMode, SuppressionReason, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::pools::WarmUpState;
use crate::access::Operation;
use crate::domains::ImportedDkimKey;
use crate::suppressions::SuppressionRequest;

/// One admin command. Servers are named by `NAME`, `ACCOUNT/NAME` or id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    AccountCreate {
        name: String,
    },
    AccountList,
    AccountSuspend {
        name: String,
        reason: String,
    },
    AccountResume {
        name: String,
    },
    ServerCreate {
        name: String,
        account: String,
        mode: ServerMode,
    },
    ServerList,
    ServerSuspend {
        server: String,
        reason: String,
    },
    ServerResume {
        server: String,
    },
    ServerSetMode {
        server: String,
        mode: ServerMode,
    },
    ServerSetPool {
        server: String,
        pool: Option<String>,
    },
    ServerSetRate {
        server: String,
        rate: Option<SendRate>,
    },
    ServerSetHourlyLimit {
        server: String,
        limit: Option<u32>,
    },
    /// Changes only the ceilings that are given.
    ServerSetRetention {
        server: String,
        bodies_days: Option<DaysCeiling>,
        messages_days: Option<DaysCeiling>,
    },
    ServerSetTracking(SetServerTracking),
    DomainCreate {
        domain: NamedDomain,
        key: ImportedDkimKey,
    },
    DomainList {
        server: Option<String>,
        account: Option<String>,
    },
    DomainSetVerified {
        domain: NamedDomain,
        verified: bool,
    },
    DomainSetTracking(SetDomainTracking),
    DomainRecords(NamedDomain),
    DomainVerify(NamedDomain),
    DomainDelete(NamedDomain),
    DomainRotateDkim {
        domain: NamedDomain,
        key: ImportedDkimKey,
    },
    DomainZone(NamedDomain),
    /// What receivers report of its mail, summed up.
    DomainReports {
        domain: NamedDomain,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    },
    InstallationRecords,
    InstallationZone,
    /// The host name that customers' records lead to.
    InstallationSetHost {
        host: String,
    },
    PoolCreate {
        name: String,
        shared: bool,
    },
    PoolList,
    PoolDelete {
        name: String,
    },
    PoolAddAddress {
        pool: String,
        address: IpAddr,
        helo: String,
        weight: u32,
        warm_up: bool,
    },
    PoolRemoveAddress {
        address: IpAddr,
    },
    PoolWarmUp {
        address: IpAddr,
        state: WarmUpState,
    },
    PoolHistory {
        address: IpAddr,
    },
    KeyCreate(NewKey),
    KeyList {
        server: Option<String>,
    },
    KeyRevoke {
        id: CredentialId,
    },
    KeyRotate {
        id: CredentialId,
        grace_seconds: u64,
    },
    SuppressionAdd {
        server: String,
        item: SuppressionRequest,
    },
    SuppressionImport {
        server: String,
        items: Vec<SuppressionRequest>,
    },
    SuppressionRemove {
        server: String,
        address: String,
    },
    SuppressionList {
        server: String,
        reason: Option<SuppressionReason>,
        limit: usize,
    },
    SuppressionExport {
        server: String,
        after: Option<String>,
    },
    AccountKeyCreate(NewAccountKeyCommand),
    /// Of the operator if there is no account.
    AccountKeyList {
        account: Option<String>,
    },
    AccountKeyRevoke {
        account: Option<String>,
        id: AccountKeyId,
    },
    AuditVerify,
    Reports {
        domain: Option<String>,
    },
    Maintenance {
        on: bool,
    },
}

impl Command {
    /// The row of the permission table that the command is under.
    pub fn operation(&self) -> Operation {
        match self {
            Self::AccountCreate { .. } => Operation::AccountsCreate,
            Self::AccountList => Operation::AccountsList,
            Self::AccountSuspend { .. } => Operation::AccountsSuspend,
            Self::AccountResume { .. } => Operation::AccountsResume,
            Self::ServerCreate { .. } => Operation::ServersCreate,
            Self::ServerList => Operation::ServersList,
            Self::ServerSuspend { .. } => Operation::ServersSuspend,
            Self::ServerResume { .. } => Operation::ServersResume,
            Self::ServerSetMode { .. }
            | Self::ServerSetPool { .. }
            | Self::ServerSetRate { .. }
            | Self::ServerSetHourlyLimit { .. }
            | Self::ServerSetRetention { .. }
            | Self::ServerSetTracking(_) => Operation::ServersUpdate,
            Self::DomainCreate { .. } => Operation::DomainsCreate,
            Self::DomainList { .. } => Operation::DomainsList,
            Self::DomainSetVerified { .. } => Operation::DomainsSetVerified,
            Self::DomainSetTracking(_) => Operation::DomainsSetTracking,
            Self::DomainRecords(_) => Operation::DomainsGet,
            Self::DomainVerify(_) => Operation::DomainsVerify,
            Self::DomainDelete(_) => Operation::DomainsDelete,
            Self::DomainRotateDkim { .. } => Operation::DomainsRotateDkim,
            Self::DomainZone(_) => Operation::DomainsZone,
            Self::DomainReports { .. } => Operation::DomainsReports,
            Self::InstallationRecords | Self::InstallationZone => Operation::InstallationRecords,
            Self::InstallationSetHost { .. } => Operation::InstallationSetHost,
            Self::PoolCreate { .. } => Operation::IpPoolsCreate,
            Self::PoolList => Operation::IpPoolsList,
            Self::PoolDelete { .. } => Operation::IpPoolsDelete,
            Self::PoolAddAddress { .. } => Operation::IpPoolsAddAddress,
            Self::PoolRemoveAddress { .. } => Operation::IpPoolsRemoveAddress,
            Self::PoolWarmUp { .. } => Operation::IpPoolsWarmUp,
            Self::PoolHistory { .. } => Operation::IpPoolsHistory,
            Self::KeyCreate(_) => Operation::CredentialsCreate,
            Self::KeyList { .. } => Operation::CredentialsList,
            Self::KeyRevoke { .. } => Operation::CredentialsRevoke,
            Self::KeyRotate { .. } => Operation::CredentialsRotate,
            Self::SuppressionAdd { .. } => Operation::SuppressionsAdd,
            Self::SuppressionImport { .. } => Operation::SuppressionsImport,
            Self::SuppressionRemove { .. } => Operation::SuppressionsRemove,
            Self::SuppressionList { .. } => Operation::SuppressionsList,
            Self::SuppressionExport { .. } => Operation::SuppressionsExport,
            Self::AccountKeyCreate(NewAccountKeyCommand { account: Some(_), .. }) => {
                Operation::AccountKeysCreate
            }
            Self::AccountKeyCreate(_) => Operation::OperatorKeysCreate,
            Self::AccountKeyList { account: Some(_) } => Operation::AccountKeysList,
            Self::AccountKeyList { account: None } => Operation::OperatorKeysList,
            Self::AccountKeyRevoke { account: Some(_), .. } => Operation::AccountKeysRevoke,
            Self::AccountKeyRevoke { account: None, .. } => Operation::OperatorKeysRevoke,
            Self::AuditVerify => Operation::InstallationVerifyAudit,
            Self::Reports { .. } => Operation::InstallationReports,
            Self::Maintenance { .. } => Operation::InstallationMaintenance,
        }
    }
}

/// A domain, and whose it is: a server's, an account's, or the only one of that name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedDomain {
    pub name: String,
    pub server: Option<String>,
    pub account: Option<String>,
}

/// Ceiling on a server's retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// Omitted settings stay as they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetServerTracking {
    pub server: String,
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    pub excluded_hosts: Option<Vec<String>>,
}

/// Omitted settings stay as they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetDomainTracking {
    pub domain: NamedDomain,
    pub opens: Option<Switch>,
    pub clicks: Option<Switch>,
    /// Empty for the installation's host.
    pub host: Option<String>,
}

/// Setting of a domain: on, off, or inherited from its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    On,
    Off,
    Default,
}

impl From<Switch> for Option<bool> {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Some(true),
            Switch::Off => Some(false),
            Switch::Default => None,
        }
    }
}

/// A key of an account, or of the operator if there is no account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewAccountKeyCommand {
    pub account: Option<String>,
    pub name: String,
    pub scopes: Vec<AccountScope>,
    pub allow: Vec<IpNet>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewKey {
    pub server: String,
    pub name: String,
    pub scope: Scope,
    pub test: bool,
    pub hold: bool,
    pub allow: Vec<IpNet>,
    /// Networks that need no secret; the key then allows nothing else.
    #[serde(default)]
    pub address: Vec<IpNet>,
    /// User name in the form of an e-mail address, for SMTP programs that require one.
    #[serde(default)]
    pub login: Option<String>,
    pub expires_at: Option<Timestamp>,
}
