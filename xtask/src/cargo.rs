//! Cargo command and its target folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cargo that runs this program, with the top folder of the repository as working directory.
pub(crate) fn cargo(repository: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository);
    cargo
}

/// Environment variables with which any cargo command compiles our crates with clippy's driver, as
/// `cargo clippy -- -D warnings` does when it calls `cargo check`. The driver is the compiler itself, with lints.
pub(crate) fn clippy_variables() -> [(&'static str, OsString); 2] {
    let beside_cargo =
        std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("clippy-driver"));
    let driver = beside_cargo.filter(|driver| driver.exists()).unwrap_or_else(|| "clippy-driver".into());
    let deny_warnings = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
    [("RUSTC_WORKSPACE_WRAPPER", driver.into()), ("CLIPPY_ARGS", deny_warnings.into())]
}

/// Folder that cargo builds in.
pub(crate) fn target_folder(repository: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository.join(named.unwrap_or_else(|| "target".into()))
}
