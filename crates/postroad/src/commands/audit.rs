//! `postroad audit …`: checks the audit log.

use postroad_app::admin::Command;

use super::admin::readable;
use super::admin_client::AdminClient;
use super::load_config;
use crate::cli::{AuditArgs, AuditCommand};
use crate::terminal::print;

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let AuditCommand::Verify = args.command;
    let file = args.config.as_deref().filter(|_| args.data_dir.is_none());
    let mut config = load_config(file, args.json)?;
    if let Some(data_dir) = args.data_dir {
        config.data_dir = data_dir;
    }
    let answer = AdminClient::new(config, args.json).execute(Command::AuditVerify).await?;
    let text = if args.json { answer.to_string() } else { readable(&answer) };
    print(text.trim_end());
    Ok(())
}
