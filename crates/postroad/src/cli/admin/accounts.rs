//! `postroad admin account`.

use clap::Subcommand;
use postroad_app::App;
use postroad_app::admin::AdminError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// Its name: unique, and not a number
        name: String,
    },
    /// List accounts
    List,
    /// Stop all servers of an account
    Suspend {
        /// Name or id of the account
        name: String,
        /// Kept with the suspension and shown by `account list`
        #[arg(long)]
        reason: String,
    },
    /// Lift a suspension
    Resume {
        /// Name or id of the account
        name: String,
    },
    /// Delete an account with all it has; it can be restored for seven days
    Delete {
        /// Name or id of the account
        name: String,
    },
    /// Take a deletion back
    Restore {
        /// Name or id of the account
        name: String,
    },
}

impl AccountCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { name } => app.create_account(name).await,
            Self::List => app.list_accounts().await,
            Self::Suspend { name, reason } => app.suspend_account(&name, Some(reason)).await,
            Self::Resume { name } => app.suspend_account(&name, None).await,
            Self::Delete { name } => app.set_account_deleted(&name, true).await,
            Self::Restore { name } => app.set_account_deleted(&name, false).await,
        }
    }
}
