//! Arguments of `postroad admin`, a file for each noun. The control socket carries the same types; `execute` calls the
//! matching method of `App`.

mod account_keys;
mod accounts;
mod domains;
mod keys;
mod pools;
mod servers;
mod suppressions;
mod users;

use clap::{Args, Subcommand};
use postroad_app::App;
use postroad_app::admin::AdminError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use account_keys::{AccountKeyCommand, OperatorKeyCommand};
use domains::DomainCommand;
use keys::KeyCommand;
use pools::PoolCommand;
use servers::ServerCommand;
use users::UserCommand;

pub(crate) use accounts::AccountCommand;
pub(crate) use suppressions::SuppressionCommand;

use super::InstallationArgs;
use super::values::OnOff;

#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
    #[command(flatten)]
    pub(crate) installation: InstallationArgs,
}

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AdminCommand {
    /// Customers: they own servers
    #[command(subcommand)]
    Account(AccountCommand),
    /// Sending environments of an account
    #[command(subcommand)]
    Server(ServerCommand),
    /// Domains of servers and accounts, from which their servers may send
    #[command(subcommand)]
    Domain(DomainCommand),
    /// API keys of a server
    #[command(subcommand)]
    Key(KeyCommand),
    /// API keys of an account
    #[command(subcommand)]
    AccountKey(AccountKeyCommand),
    /// API keys of the operator, for all accounts
    #[command(subcommand)]
    OperatorKey(OperatorKeyCommand),
    /// People who sign in to the portal
    #[command(subcommand)]
    User(UserCommand),
    /// Pools of source addresses
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Addresses to which a server no longer sends
    #[command(subcommand)]
    Suppression(SuppressionCommand),
    /// Sum up receivers' reports about our domains (DMARC and TLS reports)
    Reports {
        /// Only this domain, with its newest reports
        #[arg(long)]
        domain: Option<String>,
    },
    /// Refuse API calls and SMTP submission temporarily (503 and 451), or accept them again
    Maintenance {
        /// on refuses them, off accepts them again
        #[arg(value_enum)]
        state: OnOff,
    },
}

impl AdminCommand {
    /// Returns the created, changed or found objects.
    pub(crate) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Account(command) => command.execute(app).await,
            Self::Server(command) => command.execute(app).await,
            Self::Domain(command) => command.execute(app).await,
            Self::Key(command) => command.execute(app).await,
            Self::AccountKey(command) => command.execute(app).await,
            Self::OperatorKey(command) => command.execute(app).await,
            Self::User(command) => command.execute(app).await,
            Self::Pool(command) => command.execute(app).await,
            Self::Suppression(command) => command.execute(app).await,
            Self::Reports { domain } => app.domain_reports(domain.as_deref()).await,
            Self::Maintenance { state } => {
                app.set_maintenance(state.is_on()).await?;
                Ok(json!({ "maintenance": state.is_on() }))
            }
        }
    }
}
