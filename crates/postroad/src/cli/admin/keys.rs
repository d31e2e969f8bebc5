//! `postroad admin key`.

use std::time::Duration;

use clap::{Args, Subcommand};
use ipnet::IpNet;
use postroad_app::App;
use postroad_app::accounts::CredentialChangeRequest;
use postroad_app::admin::{AdminError, NewKey};
use postroad_model::{Change, CredentialId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{parse_network, parse_time};
use crate::config::parse_duration;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key; key and secret are shown only once
    Create {
        /// Server that it belongs to: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// Purpose of the key
        #[arg(long, default_value = "key")]
        name: String,
        /// full, send or read
        #[arg(long, default_value = "full", value_parser = parse_scope)]
        scope: Scope,
        /// Everything sent with it is validated and stored, but not delivered; it cannot change the server
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
        /// User name for SMTP programs that require an e-mail address, such as shop@example.com; the password is the
        /// API secret
        #[arg(long, value_name = "NAME", conflicts_with = "address")]
        login: Option<String>,
        /// Expiry time, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
        expires_at: Option<Timestamp>,
    },
    /// List keys (without the keys themselves, which are not stored)
    List {
        /// Only of this server: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: Option<String>,
    },
    /// Show a key (without the key itself)
    Get {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
    },
    /// Change a key; omitted settings stay as they are
    Update {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
        #[command(flatten)]
        changes: KeyChanges,
    },
    /// Revoke a key at once
    Revoke {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
    },
    /// Create a new key with the same rights; the old one stays valid for a while
    Rotate {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
        /// How long the old key stays valid, such as 30m, 24h or 7d
        #[arg(long, default_value = "24h", value_parser = parse_duration)]
        grace: Duration,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct KeyChanges {
    /// Purpose of the key
    #[arg(long)]
    name: Option<String>,
    /// Whether everything sent with it is held
    #[arg(long, value_name = "true|false")]
    hold: Option<bool>,
    /// Network it may be used from, such as 192.0.2.0/24; replaces the current list; can be given several times
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    allow: Vec<IpNet>,
    /// Let it be used from everywhere
    #[arg(long, conflicts_with = "allow")]
    allow_all: bool,
    /// Expiry time, such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    expires_at: Option<Timestamp>,
    /// Remove the expiry time
    #[arg(long, conflicts_with = "expires_at")]
    no_expiry: bool,
}

impl From<KeyChanges> for CredentialChangeRequest {
    fn from(args: KeyChanges) -> Self {
        Self {
            if_version: None,
            name: args.name,
            allow: (args.allow_all || !args.allow.is_empty()).then_some(args.allow),
            hold: args.hold,
            expires_at: match args.expires_at {
                Some(at) => Change::Set(at),
                None if args.no_expiry => Change::Clear,
                None => Change::Keep,
            },
        }
    }
}

impl KeyCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { server, name, scope, test, hold, allow, address, login, expires_at } => {
                let new = NewKey { server, name, scope, test, hold, allow, address, login, expires_at };
                app.create_key(new).await
            }
            Self::List { server } => app.list_keys(server.as_deref()).await,
            Self::Get { id } => app.show_key(id).await,
            Self::Update { id, changes } => app.change_key(id, changes.into()).await,
            Self::Revoke { id } => app.revoke_key(id).await,
            Self::Rotate { id, grace } => app.rotate_key(id, grace.as_secs()).await,
        }
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    // The scope for networks is chosen by `--address`.
    let scope = Scope::parse(text).filter(|scope| *scope != Scope::Address);
    scope.ok_or_else(|| "use full, send or read".to_owned())
}

fn parse_key_id(text: &str) -> Result<CredentialId, String> {
    text.parse().map(CredentialId).map_err(|_| "use the number that `key list` shows".to_owned())
}
