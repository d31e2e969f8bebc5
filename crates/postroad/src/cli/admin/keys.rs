//! `postroad admin key`.

use std::time::Duration;

use clap::Subcommand;
use ipnet::IpNet;
use postroad_app::App;
use postroad_app::admin::{AdminError, NewKey};
use postroad_model::{CredentialId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{parse_network, parse_time};
use crate::config::parse_duration;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key; key and secret are shown this once
    Create {
        /// Server it is for: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// Purpose of the key
        #[arg(long, default_value = "key")]
        name: String,
        /// full, send or read
        #[arg(long, default_value = "full", value_parser = parse_scope)]
        scope: Scope,
        /// Everything sent with it is validated, stored and not delivered; it cannot change the server
        #[arg(long)]
        test: bool,
        /// Everything sent with it is held
        #[arg(long)]
        hold: bool,
        /// Network it may be used from, such as 192.0.2.0/24; can be given several times
        #[arg(long, value_name = "CIDR", value_parser = parse_network)]
        allow: Vec<IpNet>,
        /// Network that may submit on `smtp.plain_listen` without key and secret, and nothing else; can be given
        /// several times
        #[arg(long, value_name = "CIDR", value_parser = parse_network, conflicts_with_all = ["allow", "scope"])]
        address: Vec<IpNet>,
        /// User name for SMTP programs that insist on an e-mail address, such as shop@example.com; the password is the
        /// API secret
        #[arg(long, value_name = "NAME", conflicts_with = "address")]
        login: Option<String>,
        /// When it ends, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
        expires_at: Option<Timestamp>,
    },
    /// List keys (without the keys themselves, which nobody knows any more)
    List {
        /// Only of this server: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: Option<String>,
    },
    /// End a key at once
    Revoke {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
    },
    /// Make a new key with the same rights; the old one stays good for a while
    Rotate {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
        /// How long the old key stays good, such as 30m, 24h or 7d
        #[arg(long, default_value = "24h", value_parser = parse_duration)]
        grace: Duration,
    },
}

impl KeyCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { server, name, scope, test, hold, allow, address, login, expires_at } => {
                let new = NewKey { server, name, scope, test, hold, allow, address, login, expires_at };
                app.create_key(new).await
            }
            Self::List { server } => app.list_keys(server.as_deref()).await,
            Self::Revoke { id } => app.revoke_key(id).await,
            Self::Rotate { id, grace } => app.rotate_key(id, grace.as_secs()).await,
        }
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    // A scope that comes with networks is asked for by them (`--address`).
    let scope = Scope::parse(text).filter(|scope| *scope != Scope::Address);
    scope.ok_or_else(|| "use full, send or read".to_owned())
}

fn parse_key_id(text: &str) -> Result<CredentialId, String> {
    text.parse().map(CredentialId).map_err(|_| "use the number that `key list` shows".to_owned())
}
