//! `postroad admin pool`.

use std::net::IpAddr;

use clap::Subcommand;
use postroad_app::App;
use postroad_app::admin::AdminError;
use postroad_app::ip_pools::WarmUpChange;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum PoolCommand {
    /// Create a pool
    Create {
        /// Its name
        name: String,
        /// Pool for servers without a pool of their own, and for messages that a warming address may not take
        #[arg(long, conflicts_with = "account")]
        shared: bool,
        /// Account that it is reserved for, whose keys may see it and control its warm-up: NAME or id
        #[arg(long)]
        account: Option<String>,
    },
    /// List pools with their addresses and their warm-up
    List,
    /// Show one pool
    Show {
        /// Name of the pool
        name: String,
    },
    /// Delete an unused pool
    Delete {
        /// Name of the pool
        name: String,
    },
    /// Add an address of this machine to a pool
    AddAddress {
        /// Name of the pool
        pool: String,
        /// IPv4 or IPv6 address that this machine can send from
        address: IpAddr,
        /// HELO name; its PTR record should match
        #[arg(long)]
        helo: String,
        /// Its share of the pool's mail
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        weight: u32,
        /// Start with few messages a day and increase
        #[arg(long)]
        warm_up: bool,
    },
    /// Change the HELO name or the weight of an address
    UpdateAddress {
        /// Address as `pool list` shows it
        address: IpAddr,
        /// HELO name; its PTR record should match
        #[arg(long)]
        helo: Option<String>,
        /// Its share of the pool's mail
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
        weight: Option<u32>,
    },
    /// Remove an address
    RemoveAddress {
        /// Address as `pool list` shows it
        address: IpAddr,
    },
    /// Start an address's warm-up from its first day, pause it, resume a paused one, or end it
    WarmUp {
        /// Address as `pool list` shows it
        address: IpAddr,
        /// start, pause, resume or end
        #[arg(value_parser = parse_warm_up)]
        change: WarmUpChange,
    },
    /// Show how many messages an address sent per day and provider, with bounces and complaints
    History {
        /// Address as `pool list` shows it
        address: IpAddr,
    },
}

impl PoolCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { name, shared, account } => app.create_pool(name, shared, account.as_deref()).await,
            Self::List => app.list_pools().await,
            Self::Show { name } => app.show_pool(&name).await,
            Self::Delete { name } => app.delete_pool(&name).await,
            Self::AddAddress { pool, address, helo, weight, warm_up } => {
                app.add_address(&pool, address, helo, weight, warm_up).await
            }
            Self::UpdateAddress { address, helo, weight } => app.update_address(address, helo, weight).await,
            Self::RemoveAddress { address } => app.remove_address(address).await,
            Self::WarmUp { address, change } => app.set_warm_up(address, change).await,
            Self::History { address } => app.address_history(address).await,
        }
    }
}

fn parse_warm_up(text: &str) -> Result<WarmUpChange, String> {
    let known = WarmUpChange::ALL.iter().find(|(name, _)| *name == text);
    known.map(|(_, change)| *change).ok_or_else(|| "use start, pause, resume or end".to_owned())
}
