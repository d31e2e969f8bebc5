//! What sends: Postfix's `smtp-source` for SMTP, a tool of ours for HTTP.

use std::path::Path;
use std::process::Stdio;

use anyhow::ensure;
use tokio::process::Command;

use super::Sizes;

pub(super) async fn smtp(port: u16, sender: &str, sizes: Sizes) -> anyhow::Result<()> {
    let Sizes { messages, sessions, bytes, .. } = sizes;
    let mut command = Command::new("smtp-source");
    // As a mail program does: many messages over one connection.
    command.arg("-d");
    command.args(["-s", &sessions.to_string(), "-m", &messages.to_string(), "-l", &bytes.to_string()]);
    command.args(["-f", sender, "-t", "someone@dest.example", &format!("127.0.0.1:{port}")]);
    let status = command.stdout(Stdio::null()).status().await?;
    ensure!(status.success(), "smtp-source failed ({status})");
    Ok(())
}

pub(super) async fn http(
    release: &Path,
    url: &str,
    key: &str,
    sender: &str,
    recipients: usize,
    sizes: Sizes,
) -> anyhow::Result<()> {
    let mut command = Command::new(release.join("examples/http_load"));
    command.args(["--url", url, "--key", key, "--from", sender]);
    command.args(["--recipients", &recipients.to_string(), "--messages", &sizes.messages.to_string()]);
    command.args(["--callers", &sizes.sessions.to_string(), "--bytes", &sizes.bytes.to_string()]);
    let status = command.stdout(Stdio::null()).status().await?;
    ensure!(status.success(), "http_load failed ({status})");
    Ok(())
}
