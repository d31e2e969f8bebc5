//! Runs one of this binary's own tests as a child process, for tests that kill a process or limit the size of its
//! files.

use std::process::{Command, Stdio};

/// Environment variable with the child's task; without it, the child's test does nothing.
pub(crate) const TASK_VARIABLE: &str = "POSTROAD_STORE_CHILD";

/// Command that runs a test as a child process with this task. `test` is the full path of the test's function, such as
/// `crash::child`.
///
/// The child ignores SIGXFSZ, so that a write beyond its file size limit fails like one on a full disk.
pub(crate) fn command(test: &str, task: &str) -> Command {
    let program = std::env::current_exe().expect("this process has a program");
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(program);
    command.args(["--exact", test, "--nocapture", "--quiet"]).env(TASK_VARIABLE, task);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The task that the parent process gave; `None` if this process is no child.
pub(crate) fn task() -> Option<String> {
    std::env::var(TASK_VARIABLE).ok()
}
