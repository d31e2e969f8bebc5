//! `postroad audit …`: checks and prints the audit log.

use super::admin::print_answer;
use super::client::Client;
use crate::cli::{AuditArgs, AuditCommand, AuditExportArgs};
use crate::control::Request;
use crate::terminal::print;

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    if let AuditCommand::Export(export_args) = args.command {
        return export(&mut client, export_args).await;
    }
    let answer = client.execute(Request::Audit(args.command)).await?;
    print_answer(&answer, client.json);
    Ok(())
}

/// A line of JSON for each entry, a part of the log at a time.
async fn export(client: &mut Client, mut args: AuditExportArgs) -> anyhow::Result<()> {
    loop {
        let part = client.execute(Request::Audit(AuditCommand::Export(args.clone()))).await?;
        for entry in part["entries"].as_array().into_iter().flatten() {
            print(&entry.to_string());
        }
        match part["next"].as_i64() {
            Some(next) => args.after = next,
            None => return Ok(()),
        }
    }
}
