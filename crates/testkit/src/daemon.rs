//! The binary under test as a child process, run as by a user's shell or init system.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::eventually_blocking;

const READY_SECS_MAX: u64 = 30;
const STOP_SECS_MAX: u64 = 10;

/// Command that inherits no `POSTROAD_*` variables, and gets those in `envs`.
pub fn command(program: impl AsRef<OsStr>, envs: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("POSTROAD_") {
            command.env_remove(name);
        }
    }
    command.envs(envs.iter().copied());
    command
}

/// Running service that has printed its ready line. Killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    ready: serde_json::Value,
    /// Lines of standard output, read by a thread so that the pipe never fills.
    lines: Receiver<String>,
    folder: TempDir,
}

impl Daemon {
    /// Blocks until the ready line; panics with the log if the child ends without it or takes too long.
    pub fn start(
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        envs: &[(&str, &str)],
    ) -> Self {
        let folder = TempDir::new().expect("the temporary folder is writable");
        let log = File::create(folder.path().join("stderr")).expect("the temporary folder is writable");
        let mut child = command(program, envs)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let output = child.stdout.take().expect("standard output is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Keep reading even if the `Daemon` is dropped already.
                drop(sender.send(line));
            }
        });
        let mut daemon = Self { child, ready: serde_json::Value::Null, lines, folder };
        match daemon.lines.recv_timeout(Duration::from_secs(READY_SECS_MAX)) {
            Ok(line) => {
                daemon.ready = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("the ready line is not JSON ({error}): {line}"));
            }
            Err(RecvTimeoutError::Timeout) => {
                panic!("no ready line within {READY_SECS_MAX} s; the log says:\n{}", daemon.stderr_text())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = daemon.wait();
                panic!("ended before it was ready ({status}); the log says:\n{}", daemon.stderr_text())
            }
        }
        daemon
    }

    /// First line of standard output, as JSON.
    pub fn ready(&self) -> &serde_json::Value {
        &self.ready
    }

    /// Lines of standard output after the ready line, since the last call.
    pub fn more_output(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    pub fn stderr_text(&self) -> String {
        log_text(self.folder.path())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL: no destructor, no flush, as in a crash.
    pub fn kill9(&mut self) {
        // Fails only if the child has ended already.
        drop(self.child.kill());
        self.child.wait().expect("our child can be waited for");
    }

    /// Sends SIGTERM, as an init system stops a service; panics if it takes longer than 10 s.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Sends a signal by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        // The shell's own kill: a minimal machine has no kill program.
        let pid = self.pid().to_string();
        let mut kill = Command::new("sh");
        let status = kill.args(["-c", r#"kill -s "$1" "$2""#, "kill", name, &pid]).status();
        let status = status.expect("a POSIX shell is there");
        assert!(status.success(), "cannot send {name} to {}", self.pid());
    }

    /// Waits for the end; panics with the log after 10 s.
    pub fn wait(&mut self) -> ExitStatus {
        let (child, folder) = (&mut self.child, self.folder.path());
        eventually_blocking(Duration::from_secs(STOP_SECS_MAX), || {
            let status = child.try_wait().expect("our child can be waited for");
            status.ok_or_else(|| {
                fmt::from_fn(|f| write!(f, "it still runs; the log says:\n{}", log_text(folder)))
            })
        })
    }
}

fn log_text(folder: &Path) -> String {
    let bytes = fs::read(folder.join("stderr")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill9();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Daemon {
        Daemon::start(Path::new("sh"), ["-c", script], &[("POSTROAD_GIVEN", "yes")])
    }

    #[test]
    fn ready_line_is_parsed_and_the_rest_kept_apart() {
        let mut daemon = shell(r#"echo "{\"given\": \"$POSTROAD_GIVEN\"}"; echo more; echo log >&2"#);
        assert_eq!(daemon.ready()["given"], "yes");
        assert!(daemon.wait().success());
        assert_eq!(daemon.lines.recv().unwrap(), "more");
        assert_eq!(daemon.stderr_text(), "log\n");
    }

    #[test]
    fn sigterm_lets_the_child_choose_its_exit_code() {
        let mut daemon = shell(r"trap 'exit 7' TERM; echo '{}'; while :; do sleep 0.01; done");
        assert_eq!(daemon.terminate().code(), Some(7));
    }

    #[test]
    #[should_panic(expected = "cannot open the store")]
    fn early_end_panics_with_the_log() {
        shell("echo 'cannot open the store' >&2; exit 1");
    }

    #[test]
    fn drop_kills_the_child() {
        let daemon = shell("echo '{}'; exec sleep 600");
        let pid = daemon.pid();
        drop(daemon);
        let alive = Command::new("sh").args(["-c", &format!("kill -0 {pid}")]).output().unwrap();
        assert!(!alive.status.success());
    }
}
