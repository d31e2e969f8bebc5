//! What can be typed about API keys of accounts and of the operator.

use clap::{Args, Subcommand};
use ipnet::IpNet;
use postroad_model::{AccountKeyId, AccountScope, Timestamp};

use super::{parse_network, parse_time};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountKeyCommand {
    /// Create a key; it is shown this once
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
    /// End a key at once
    Revoke {
        /// The number that `account-key list` shows
        #[arg(value_parser = parse_id)]
        id: AccountKeyId,
        /// Name or id of the account
        #[arg(long)]
        account: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorKeyCommand {
    /// Create a key; it is shown this once
    Create(NewKeyArgs),
    /// List the keys
    List,
    /// End a key at once
    Revoke {
        /// The number that `operator-key list` shows
        #[arg(value_parser = parse_id)]
        id: AccountKeyId,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewKeyArgs {
    /// What the key is for
    #[arg(long, default_value = "key")]
    pub(crate) name: String,
    /// full, read, a group such as servers, or servers:read; with commas or several times [default: full]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<AccountScope>,
    /// Only from this address or network; several times for more
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    pub(crate) allow: Vec<IpNet>,
    /// When it ends, such as 2027-01-01T00:00:00Z; leave out for never
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    pub(crate) expires_at: Option<Timestamp>,
}

fn parse_id(text: &str) -> Result<AccountKeyId, String> {
    text.parse().map(AccountKeyId).map_err(|_| "use the number that `list` shows".to_owned())
}
