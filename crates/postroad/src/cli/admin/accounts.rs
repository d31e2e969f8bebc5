//! `postroad admin account`.

use clap::{Args, Subcommand};
use postroad_app::App;
use postroad_app::accounts::AccountCeilingsRequest;
use postroad_app::admin::AdminError;
use postroad_model::{Change, SendRate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::{LimitOrNone, parse_number, parse_rate};

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// Its name: unique; must not consist of digits only
        name: String,
    },
    /// List accounts
    List,
    /// Show one account
    Show {
        /// Name or id of the account
        name: String,
    },
    /// Give an account another name
    Rename {
        /// Name or id of the account
        name: String,
        /// Its new name: unique; must not consist of digits only
        new_name: String,
    },
    /// Show the usage of an account, with its ceilings
    Usage {
        /// Name or id of the account
        name: String,
    },
    /// Suspend an account: refuse its keys, lock out its people, and send none of its mail
    Suspend {
        /// Name or id of the account
        name: String,
        /// Stored with the suspension and shown by `account list`
        #[arg(long)]
        reason: String,
    },
    /// Lift a suspension
    Resume {
        /// Name or id of the account
        name: String,
    },
    /// Set ceilings on what an account may have and send; its own keys cannot lift them
    SetCeilings {
        /// Name or id of the account
        name: String,
        #[command(flatten)]
        ceilings: CeilingOptions,
    },
    /// Delete an account with everything in it; it can be restored for seven days
    Delete {
        /// Name or id of the account
        name: String,
    },
    /// Restore a deleted account
    Restore {
        /// Name or id of the account
        name: String,
    },
}

/// Ceilings to change; `none` removes one.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct CeilingOptions {
    /// Messages an hour of all servers together; messages beyond are held
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    hourly_limit: Option<LimitOrNone<u32>>,
    /// Messages a day
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    daily_limit: Option<LimitOrNone<u32>>,
    /// Messages a month
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    monthly_limit: Option<LimitOrNone<u32>>,
    /// Highest rate of all servers together, such as 10/s, 100/m or 1000/h
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    send_rate: Option<LimitOrNone<SendRate>>,
    /// Servers
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    servers: Option<LimitOrNone<u32>>,
    /// Domains, of the account and of its servers
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    domains: Option<LimitOrNone<u32>>,
    /// Webhooks of all servers together
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    webhooks: Option<LimitOrNone<u32>>,
    /// People, including invitations
    #[arg(long, value_name = "NUMBER", value_parser = parse_number)]
    users: Option<LimitOrNone<u32>>,
    /// Days for which servers keep message bodies
    #[arg(long, value_name = "DAYS", value_parser = parse_number)]
    bodies_days: Option<LimitOrNone<u32>>,
    /// Days for which servers keep messages with all their data
    #[arg(long, value_name = "DAYS", value_parser = parse_number)]
    messages_days: Option<LimitOrNone<u32>>,
}

impl From<CeilingOptions> for AccountCeilingsRequest {
    fn from(args: CeilingOptions) -> Self {
        let number = |limit: Option<LimitOrNone<u32>>| match limit {
            None => Change::Keep,
            Some(LimitOrNone::None) => Change::Clear,
            Some(LimitOrNone::Limit(limit)) => Change::Set(i64::from(limit)),
        };
        Self {
            hourly_limit: number(args.hourly_limit),
            daily_limit: number(args.daily_limit),
            monthly_limit: number(args.monthly_limit),
            send_rate: match args.send_rate {
                None => Change::Keep,
                Some(LimitOrNone::None) => Change::Clear,
                Some(LimitOrNone::Limit(rate)) => Change::Set(rate.to_string()),
            },
            servers: number(args.servers),
            domains: number(args.domains),
            webhooks: number(args.webhooks),
            users: number(args.users),
            bodies_days: number(args.bodies_days),
            messages_days: number(args.messages_days),
        }
    }
}

impl AccountCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { name } => app.create_account(name).await,
            Self::List => app.list_accounts().await,
            Self::Show { name } => app.show_account(&name).await,
            Self::Rename { name, new_name } => app.rename_account(&name, new_name).await,
            Self::Usage { name } => app.show_account_usage(&name).await,
            Self::Suspend { name, reason } => app.suspend_account(&name, Some(reason)).await,
            Self::Resume { name } => app.suspend_account(&name, None).await,
            Self::SetCeilings { name, ceilings } => app.set_account_ceilings(&name, ceilings.into()).await,
            Self::Delete { name } => app.set_account_deleted(&name, true).await,
            Self::Restore { name } => app.set_account_deleted(&name, false).await,
        }
    }
}
