//! `postroad audit …`: checks and prints the audit log.

use serde_json::json;

use super::admin::print_answer;
use super::client::Client;
use crate::cli::{AuditArgs, AuditCommand, AuditExportArgs, AuditVerifyArgs};
use crate::control::Request;
use crate::terminal::print;

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    match args.command {
        AuditCommand::Export(args) => export(&mut client, args).await,
        AuditCommand::Verify(args) => verify(&mut client, args).await,
    }
}

/// Checks the log, a part at a time; stops at the first entry that is missing or altered.
async fn verify(client: &mut Client, mut args: AuditVerifyArgs) -> anyhow::Result<()> {
    let (mut heads, mut entries) = (Vec::new(), 0);
    loop {
        let mut part = client.execute(Request::Audit(AuditCommand::Verify(args.clone()))).await?;
        entries += part["entries"].as_i64().unwrap_or(0);
        heads.extend(part["heads"].as_array_mut().map(std::mem::take).unwrap_or_default());
        if part["next"].is_null() {
            break;
        }
        // The expected entries were checked with the first part.
        args = AuditVerifyArgs { expect: Vec::new(), from: serde_json::from_value(part["next"].take())? };
    }
    let answer = json!({ "accounts": heads.len(), "entries": entries, "whole": true, "heads": heads });
    print_answer(&answer, client.json);
    Ok(())
}

/// Prints a line of JSON for each entry, a part of the log at a time.
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
