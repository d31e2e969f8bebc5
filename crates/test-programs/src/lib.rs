//! Programs that tests run: finds and installs them, and starts a private PostgreSQL server.
//!
//! `cargo xtask` builds this crate before its first output, so it has few dependencies.

pub mod cluster;
pub mod install;
pub mod node;
pub mod python;

use std::process::{Command, Stdio};

pub use cluster::{Cluster, ClusterError, find_server_programs};

/// Environment variable with the URL of the PostgreSQL server that tests use.
pub const POSTGRES_VARIABLE: &str = "POSTROAD_TEST_POSTGRES";

/// Environment variable with the Python interpreter that has the tests' libraries; `cargo xtask test` sets it.
pub const PYTHON_VARIABLE: &str = "POSTROAD_TEST_PYTHON";

/// Folder of Debian's libraries for node: for `NODE_PATH`.
pub const NODE_LIBRARIES: &str = "/usr/share/nodejs";

/// Debian's own interpreter has Debian's packages; another one may come first in PATH.
const INTERPRETERS: &[&str] = &["python3", "/usr/bin/python3"];

/// Python interpreter with Debian's python3-dkim, if there is one.
pub fn find_dkim_verifier() -> Option<&'static str> {
    let knows_dkim = |interpreter: &&&str| {
        let import = Command::new(interpreter).args(["-c", "import dkim"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    INTERPRETERS.iter().find(knows_dkim).copied()
}
