//! Load generators: Postfix's `smtp-source` for plain SMTP without a fixed rate, our own tool `load` for everything
//! else.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, ensure};
use postroad_testkit::mail_like_text;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::Bench;
use super::systems::{Postroad, System};

/// Number of concurrent sessions (docs/performance.md, Pipeline).
pub(super) const SESSIONS: usize = 100;
/// Size of one message.
pub(super) const BYTES: usize = 10_000;
const RECIPIENT: &str = "someone@dest.example";

/// Content that smtp-source sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The content of smtp-source itself: lines of `X`, which compress to almost nothing.
    Filling,
    /// Text that compresses like mail.
    Text,
}

/// Runs `smtp-source`: without TLS and password, with many messages per connection.
pub(super) async fn smtp_source(
    to: SocketAddr,
    sender: &str,
    messages: usize,
    content: Content,
) -> anyhow::Result<()> {
    let mut command = Command::new("smtp-source");
    command.arg("-d");
    command.args(["-s", &SESSIONS.to_string(), "-m", &messages.to_string()]);
    let mut file = NamedTempFile::new()?;
    match content {
        Content::Filling => command.args(["-l", &BYTES.to_string()]),
        Content::Text => {
            let text = mail_like_text(BYTES, "\n");
            write!(file, "From: <{sender}>\nTo: <{RECIPIENT}>\nSubject: Your order\n\n{text}\n")?;
            command.arg("-F").arg(file.path())
        }
    };
    command.args(["-f", sender, "-t", RECIPIENT, &to.to_string()]);
    let status = command.stdout(Stdio::null()).status().await?;
    ensure!(status.success(), "smtp-source failed ({status})");
    Ok(())
}

/// Runs the tool `load` and returns its figures.
pub(super) async fn run_tool(bench: &Bench, arguments: &[&str]) -> anyhow::Result<Value> {
    let output =
        Command::new(bench.program("load")).args(arguments).stderr(Stdio::inherit()).output().await?;
    ensure!(output.status.success(), "load {} failed ({})", arguments[0], output.status);
    serde_json::from_slice(&output.stdout).context("the load tool's figures")
}

/// Runs a `kind` of load on the HTTP port, with further `options`.
pub(super) async fn http(
    bench: &Bench,
    kind: &str,
    system: &Postroad,
    options: &[&str],
) -> anyhow::Result<Value> {
    let (url, key, sender) = (system.text("url"), system.text("api_key"), system.sender());
    let arguments = [kind, "--url", &url, "--key", &key, "--from", &sender];
    run_tool(bench, &[&arguments, options].concat()).await
}
