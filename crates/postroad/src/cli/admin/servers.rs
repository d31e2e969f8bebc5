//! `postroad admin server`.

use clap::Subcommand;
use postroad_app::App;
use postroad_app::admin::{AdminError, DaysCeiling, SetServerTracking};
use postroad_model::{SendRate, ServerMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{LimitOrNone, OnOff, parse_number, parse_rate};

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum ServerCommand {
    /// Create a server
    Create {
        /// Its name: unique in the account; must not consist of digits only
        name: String,
        /// Name or id of the account it belongs to
        #[arg(long)]
        account: String,
        /// live, or development: accepts mail and holds all of it, and its own keys cannot make it live
        #[arg(long, default_value = "live", value_parser = parse_mode)]
        mode: ServerMode,
        /// Name of the pool that it sends from; the shared pool if left out
        #[arg(long)]
        pool: Option<String>,
    },
    /// List servers
    List,
    /// Show one server
    Show {
        /// NAME, ACCOUNT/NAME or id
        name: String,
    },
    /// Give a server another name
    Rename {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Its new name: unique in the account; must not consist of digits only
        new_name: String,
    },
    /// Refuse all calls of a server's keys; its mail waits
    Suspend {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Stored with the suspension and shown by `server list`
        #[arg(long)]
        reason: String,
    },
    /// Lift a suspension
    Resume {
        /// NAME, ACCOUNT/NAME or id
        name: String,
    },
    /// Delete a server with everything in it; it can be restored for seven days
    Delete {
        /// NAME, ACCOUNT/NAME or id
        name: String,
    },
    /// Restore a deleted server
    Restore {
        /// NAME, ACCOUNT/NAME or id
        name: String,
    },
    /// Switch between live and development; the server's own keys cannot make it live again
    SetMode {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// live or development
        #[arg(value_parser = parse_mode)]
        mode: ServerMode,
    },
    /// Send from the addresses of a pool
    SetPool {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Name of the pool; the shared pool if left out
        pool: Option<String>,
    },
    /// Limit the rate of a server's mail: faster messages wait, none is refused. Its own keys can set a lower rate, not
    /// a higher one
    SetRate {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Such as 10/s, 100/m or 1000/h; none (or nothing) for no limit
        #[arg(value_parser = parse_rate)]
        rate: Option<LimitOrNone<SendRate>>,
    },
    /// Hold messages that a server sends beyond this number an hour. Its own keys can set a lower limit, not a higher
    /// one
    SetHourlyLimit {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Messages an hour; none (or nothing) for no limit
        #[arg(value_parser = parse_number)]
        limit: Option<LimitOrNone<u32>>,
    },
    /// Keep a server's mail for at most these days. Its own keys can set fewer days, not more
    SetRetention {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Days for message bodies; none for the installation's retention
        #[arg(long, value_name = "DAYS", value_parser = parse_number, required_unless_present = "messages")]
        bodies: Option<LimitOrNone<u32>>,
        /// Days for messages with all their data; none for the installation's retention
        #[arg(long, value_name = "DAYS", value_parser = parse_number)]
        messages: Option<LimitOrNone<u32>>,
    },
    /// Track opens and clicks of a server's mail, unless a domain or message overrides it
    SetTracking {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Whether opens are tracked; leave out to keep it as it is
        #[arg(long, value_enum)]
        opens: Option<OnOff>,
        /// Whether clicks are tracked; leave out to keep it as it is
        #[arg(long, value_enum)]
        clicks: Option<OnOff>,
        /// Do not track links to this host; `*.example.com` for all below. Replaces the current list; "" for none
        #[arg(long = "exclude-host", value_name = "HOST")]
        exclude_hosts: Vec<String>,
    },
}

impl ServerCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { name, account, mode, pool } => {
                app.create_server(name, &account, mode, pool.as_deref()).await
            }
            Self::List => app.list_servers().await,
            Self::Show { name } => app.show_server(&name).await,
            Self::Rename { name, new_name } => app.rename_server(&name, &new_name).await,
            Self::Suspend { name, reason } => app.suspend_server(&name, Some(reason)).await,
            Self::Resume { name } => app.suspend_server(&name, None).await,
            Self::Delete { name } => app.set_server_deleted(&name, true).await,
            Self::Restore { name } => app.set_server_deleted(&name, false).await,
            Self::SetMode { name, mode } => app.set_server_mode(&name, mode).await,
            Self::SetPool { name, pool } => app.set_server_pool(&name, pool.as_deref()).await,
            Self::SetRate { name, rate } => {
                app.set_server_rate(&name, rate.and_then(LimitOrNone::limit)).await
            }
            Self::SetHourlyLimit { name, limit } => {
                app.set_server_limit(&name, limit.and_then(LimitOrNone::limit)).await
            }
            Self::SetRetention { name, bodies, messages } => {
                app.set_server_retention(&name, bodies.map(days_ceiling), messages.map(days_ceiling)).await
            }
            Self::SetTracking { name, opens, clicks, exclude_hosts } => {
                let change = SetServerTracking {
                    server: name,
                    opens: opens.map(OnOff::is_on),
                    clicks: clicks.map(OnOff::is_on),
                    excluded_hosts: (!exclude_hosts.is_empty()).then_some(exclude_hosts),
                };
                app.set_server_tracking(change).await
            }
        }
    }
}

fn days_ceiling(ceiling: LimitOrNone<u32>) -> DaysCeiling {
    ceiling.limit().map_or(DaysCeiling::None, DaysCeiling::Days)
}

fn parse_mode(text: &str) -> Result<ServerMode, String> {
    ServerMode::parse(text).ok_or_else(|| "use live or development".to_owned())
}
