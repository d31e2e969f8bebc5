//! Arguments of `postroad audit`, which are also the command on the control socket.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::InstallationArgs;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    #[command(flatten)]
    pub(crate) installation: InstallationArgs,
}

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no entry was removed or changed
    Verify,
}
