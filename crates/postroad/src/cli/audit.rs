//! Arguments of `postroad audit`. The control socket carries the same types.

use clap::{Args, Subcommand};
use postroad_app::App;
use postroad_app::accounts::AuditPosition;
use postroad_app::admin::AdminError;
use postroad_model::Timestamp;
use postroad_store::{AuditFilter, HiddenActors};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InstallationArgs;
use super::values::parse_time;

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
    Verify(AuditVerifyArgs),
    /// Print entries as JSON lines, oldest first
    Export(AuditExportArgs),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, Args)]
pub(crate) struct AuditVerifyArgs {
    /// Also check that an entry that an earlier run printed in `heads` still exists, unchanged; several separated by spaces, or the option several times
    #[arg(long, value_name = "ACCOUNT:SEQ:HASH")]
    pub(crate) expect: Vec<String>,
    /// Where a part of the check begins
    #[arg(skip)]
    pub(crate) from: AuditPosition,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, Args)]
pub(crate) struct AuditExportArgs {
    /// Name or id of the account; the installation's own entries if left out
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// Only entries of this operation, such as servers/update
    #[arg(long)]
    operation: Option<String>,
    /// Only entries about this kind of object, such as server
    #[arg(long)]
    subject: Option<String>,
    /// Only entries about the object with this id
    #[arg(long)]
    subject_id: Option<i64>,
    /// Only entries by this kind of actor: command_line, operator_key, account_key, server_key, user
    #[arg(long)]
    actor: Option<String>,
    /// Only by the key or person with this id
    #[arg(long)]
    actor_id: Option<i64>,
    /// Only from this time on
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only entries before this time
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only entries after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: i64,
}

impl AuditCommand {
    pub(crate) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Verify(args) => app.check_audit(&args.expect, args.from).await,
            Self::Export(args) => {
                let AuditExportArgs {
                    account,
                    operation,
                    subject,
                    subject_id,
                    actor,
                    actor_id,
                    since,
                    until,
                    after,
                } = args;
                let hidden_actors = HiddenActors::default();
                let filter = AuditFilter {
                    operation,
                    subject,
                    subject_id,
                    actor,
                    actor_id,
                    hidden_actors,
                    since,
                    until,
                };
                app.show_audit(account.as_deref(), filter, after).await
            }
        }
    }
}
