//! `postroad queue …`: executes a command and prints the answer.

use anyhow::bail;

use super::admin::print_answer;
use super::client::Client;
use crate::cli::QueueArgs;
use crate::control::Request;

pub(crate) async fn run(args: QueueArgs) -> anyhow::Result<()> {
    let mut client = Client::new(args.installation)?;
    let answer = client.execute(Request::Queue(args.command)).await?;
    print_answer(&answer, client.json);
    let results = answer.as_array().map_or(&[][..], Vec::as_slice);
    let failed = results.iter().filter(|result| result["done"] == false).count();
    if failed > 0 {
        bail!("{failed} of {} messages were left as they are", results.len());
    }
    Ok(())
}
