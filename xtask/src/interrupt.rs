//! Runs a child until it ends, or until Ctrl-C, SIGTERM or SIGHUP.
//!
//! The child gets its own process group, so that an interrupt reaches the child and everything that it started (test
//! binaries, daemons under test) before the database of the tests is stopped.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Time for a process group to end after a signal, and for the last output of a child.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Signal numbers that end a run, with the names that `kill` takes.
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "INT"), (SIGTERM, "TERM"), (SIGHUP, "HUP")];

/// Listens for signals from its creation on. A signal that arrives before `run` is remembered: it ends the child as
/// soon as the child is started.
#[derive(Debug)]
pub(crate) struct Interrupts {
    /// Position in `SIGNALS` of the last signal, plus one; zero for none.
    received: Arc<AtomicUsize>,
}

impl Interrupts {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let received = Arc::new(AtomicUsize::new(0));
        for (index, (number, _)) in SIGNALS.iter().enumerate() {
            signal_hook::flag::register_usize(*number, Arc::clone(&received), index + 1)?;
        }
        Ok(Self { received })
    }

    /// Returns the exit code that a shell would report.
    pub(crate) fn run(&mut self, command: Command) -> anyhow::Result<u8> {
        let child = start(command)?;
        self.wait(child)
    }

    /// Like `run`, but also prints and returns the child's standard output; an empty text if another program keeps the
    /// output open.
    pub(crate) fn run_and_read(&mut self, mut command: Command) -> anyhow::Result<(u8, String)> {
        command.stdout(Stdio::piped());
        let mut child = start(command)?;
        let output = child.stdout.take().context("the output is not piped")?;
        let (done, text) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(print_and_keep(output)));
        let code = self.wait(child)?;
        // A program that outlives the child may hold the pipe open: then the output counts as unknown.
        let text = text.recv_timeout(GRACE_PERIOD).unwrap_or_else(|_| Ok(String::new()))?;
        Ok((code, text))
    }

    fn wait(&mut self, mut child: Child) -> anyhow::Result<u8> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(exit_code(status));
            }
            if let Some(index) = self.received.swap(0, Ordering::SeqCst).checked_sub(1) {
                let (number, name) = SIGNALS[index];
                stop(&mut child, name)?;
                return Ok(u8::try_from(128 + number)?);
            }
            sleep(POLL_INTERVAL);
        }
    }
}

fn start(mut command: Command) -> anyhow::Result<Child> {
    // A process group in the background would be stopped when it reads from the terminal.
    command.stdin(Stdio::null()).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("cannot start {program}"))
}

fn print_and_keep(output: impl Read) -> std::io::Result<String> {
    let mut kept = String::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(std::io::stdout(), "{line}")?;
        kept.push_str(&line);
        kept.push('\n');
    }
    Ok(kept)
}

fn stop(child: &mut Child, signal_name: &str) -> anyhow::Result<()> {
    let group = child.id().to_string();
    signal_group(signal_name, &group)?;
    // Cargo ends at once. Programs that it started may take until `end`; then they are killed.
    let end = Instant::now() + GRACE_PERIOD;
    while Instant::now() < end && signal_group("0", &group)? {
        child.try_wait()?;
        sleep(POLL_INTERVAL);
    }
    signal_group("KILL", &group)?;
    child.wait()?;
    Ok(())
}

/// Returns whether the group has a process; the signal "0" only checks.
fn signal_group(name: &str, group: &str) -> anyhow::Result<bool> {
    // The shell's own kill: a minimal machine has no kill program.
    let mut kill = Command::new("sh");
    kill.args(["-c", r#"kill -s "$1" -- "-$2" 2>/dev/null"#, "kill", name, group]);
    Ok(kill.status()?.success())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exit_codes_are_passed_on_and_remaining_processes_are_ended() {
        let mut interrupts = Interrupts::listen().unwrap();
        assert_eq!(interrupts.run(shell("exit 7")).unwrap(), 7);
        assert_eq!(interrupts.run(shell("kill -9 $$")).unwrap(), 137);
        let (code, text) = interrupts.run_and_read(shell("echo one; echo two; exit 3")).unwrap();
        assert_eq!((code, text.as_str()), (3, "one\ntwo\n"));
        let (code, text) = interrupts.run_and_read(shell("sleep 20 & echo left; exit 4")).unwrap();
        assert_eq!((code, text.as_str()), (4, ""));

        let mut child = shell("sleep 600 & wait").process_group(0).spawn().unwrap();
        let group = child.id().to_string();
        stop(&mut child, "TERM").unwrap();
        assert!(!signal_group("0", &group).unwrap());
    }
}
