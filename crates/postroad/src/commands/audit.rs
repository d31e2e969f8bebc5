//! `postroad audit …`: checks the audit log.

use super::admin::print_answer;
use super::client::Client;
use crate::cli::AuditArgs;
use crate::control::Request;

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    let answer = client.execute(Request::Audit(args.command)).await?;
    print_answer(&answer, client.json);
    Ok(())
}
