//! Arguments of `postroad trace`.

use clap::Args;

use super::InstallationArgs;

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Id, token or Message-ID of the message
    #[arg(value_name = "ID|TOKEN|MESSAGE-ID")]
    pub(crate) message: String,
    #[command(flatten)]
    pub(crate) installation: InstallationArgs,
}
