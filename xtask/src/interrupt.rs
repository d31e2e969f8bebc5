//! Runs a child to its end, whatever ends it first: itself, Ctrl-C, SIGTERM or SIGHUP.
//!
//! The child gets a process group of its own, so that an interrupt reaches it and all it started (test binaries,
//! daemons under test), and reaches them before we take their database away.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

const GRACE: Duration = Duration::from_secs(5);

/// Listens from the moment it is made: a signal that comes before `run` ends its child at once.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The exit code, as a shell would tell it.
    pub(crate) async fn run(&mut self, mut command: Command) -> anyhow::Result<u8> {
        // A background group that reads from the terminal would be stopped.
        command.stdin(Stdio::null()).process_group(0);
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let (name, code) = tokio::select! {
            status = child.wait() => return Ok(exit_code(status?)),
            _ = self.interrupt.recv() => ("INT", 130),
            _ = self.terminate.recv() => ("TERM", 143),
            _ = self.hangup.recv() => ("HUP", 129),
        };
        stop(&mut child, name).await?;
        Ok(code)
    }
}

async fn stop(child: &mut Child, signal_name: &str) -> anyhow::Result<()> {
    let group = child.id().context("a child that was not waited for has an id")?.to_string();
    signal_group(signal_name, &group).await?;
    // Cargo ends at once; what it started may take a moment, and is killed if it takes longer.
    let end = tokio::time::Instant::now() + GRACE;
    while tokio::time::Instant::now() < end && signal_group("0", &group).await? {
        child.try_wait()?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    signal_group("KILL", &group).await?;
    child.wait().await?;
    Ok(())
}

/// Whether anybody was there to get it; the signal "0" only asks.
async fn signal_group(name: &str, group: &str) -> anyhow::Result<bool> {
    // The shell's own kill: a slim machine has no kill program.
    let mut kill = Command::new("sh");
    kill.args(["-c", r#"kill -s "$1" -- "-$2" 2>/dev/null"#, "kill", name, group]);
    Ok(kill.status().await?.success())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn exit_codes_are_passed_on_and_left_overs_ended() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let mut interrupts = Interrupts::listen().unwrap();
        assert_eq!(interrupts.run(shell("exit 7")).await.unwrap(), 7);
        assert_eq!(interrupts.run(shell("kill -9 $$")).await.unwrap(), 137);

        let mut child = shell("sleep 600 & wait").process_group(0).spawn().unwrap();
        let group = child.id().unwrap().to_string();
        stop(&mut child, "TERM").await.unwrap();
        assert!(!signal_group("0", &group).await.unwrap());
    }
}
