//! `postroad admin account-key` and `postroad admin operator-key`.

use clap::{Args, Subcommand};
use ipnet::IpNet;
use postroad_app::App;
use postroad_app::accounts::AccountKeyRequest;
use postroad_app::admin::AdminError;
use postroad_model::{AccountKeyId, AccountScope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{parse_network, parse_time};

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AccountKeyCommand {
    /// Create a key; it is shown only once
    Create {
        /// Name or id of the account
        #[arg(long)]
        account: String,
        #[command(flatten)]
        key: NewKeyArgs,
    },
    /// List the keys of an account
    List {
        /// Name or id of the account
        #[arg(long)]
        account: String,
    },
    /// Revoke a key at once
    Revoke {
        /// The number that `account-key list` shows
        #[arg(value_parser = parse_id)]
        id: AccountKeyId,
        /// Name or id of the account
        #[arg(long)]
        account: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum OperatorKeyCommand {
    /// Create a key; it is shown only once
    Create(NewKeyArgs),
    /// List the keys
    List,
    /// Revoke a key at once
    Revoke {
        /// The number that `operator-key list` shows
        #[arg(value_parser = parse_id)]
        id: AccountKeyId,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub(crate) struct NewKeyArgs {
    /// Purpose of the key
    #[arg(long, default_value = "key")]
    pub(crate) name: String,
    /// full, read, a group such as servers, or servers:read; with commas or several times [default: full]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<AccountScope>,
    /// Only from this address or network; several times for more
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    pub(crate) allow: Vec<IpNet>,
    /// Expiry time, such as 2027-01-01T00:00:00Z; never if left out
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    pub(crate) expires_at: Option<Timestamp>,
}

impl AccountKeyCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { account, key } => app.create_account_key_by_name(Some(&account), key.into()).await,
            Self::List { account } => app.show_account_keys(Some(&account)).await,
            Self::Revoke { id, account } => app.revoke_account_key_by_name(Some(&account), id).await,
        }
    }
}

impl OperatorKeyCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create(key) => app.create_account_key_by_name(None, key.into()).await,
            Self::List => app.show_account_keys(None).await,
            Self::Revoke { id } => app.revoke_account_key_by_name(None, id).await,
        }
    }
}

impl From<NewKeyArgs> for AccountKeyRequest {
    fn from(args: NewKeyArgs) -> Self {
        let NewKeyArgs { name, scopes, allow, expires_at } = args;
        Self { name, scopes, allow, expires_at }
    }
}

fn parse_id(text: &str) -> Result<AccountKeyId, String> {
    text.parse().map(AccountKeyId).map_err(|_| "use the number that `list` shows".to_owned())
}
