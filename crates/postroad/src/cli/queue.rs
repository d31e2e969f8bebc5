//! Arguments of `postroad queue`. The control socket carries the same types.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::InstallationArgs;
use crate::config::parse_duration;

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub(crate) command: QueueCommand,
    #[command(flatten)]
    pub(crate) installation: InstallationArgs,
}

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum QueueCommand {
    /// List queued messages, the earliest due first
    List {
        /// Only messages of this server: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: Option<String>,
        /// Only messages to this recipient domain
        #[arg(long)]
        domain: Option<String>,
        /// Maximum number of messages to list
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show one message and say why it is waiting
    Show {
        /// Id of the message, as `queue list` and the API show it
        id: i64,
    },
    /// Count queued messages, and show suspended and slowed scopes
    Stats,
    /// Try messages again now; releases held ones
    Retry {
        /// Ids of messages
        #[arg(required = true)]
        ids: Vec<i64>,
    },
    /// Cancel messages
    Cancel {
        /// Ids of messages
        #[arg(required = true)]
        ids: Vec<i64>,
    },
    /// Stop sending, or slow it down, for a part of the queue; messages wait and are not changed
    Suspend {
        /// everything, pool:NAME, server:NAME, domain:NAME, lane:POOL/DOMAIN, provider:NAME, path:SOURCE/SITE, source-provider:SOURCE/PROVIDER
        scope: String,
        /// Shown to anybody who asks why a message waits
        #[arg(long)]
        reason: String,
        /// Ends automatically after this long, such as 30m or 2h
        #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
        for_: Option<Duration>,
        /// Only slow down, to this many messages a minute
        #[arg(long, value_name = "PER_MINUTE", value_parser = clap::value_parser!(u32).range(1..))]
        slow: Option<u32>,
    },
    /// Lift a suspension or slow-down; waiting messages continue at once
    Resume {
        /// A scope that `queue stats` shows as suspended or slowed, such as domain:example.com
        scope: String,
    },
}
