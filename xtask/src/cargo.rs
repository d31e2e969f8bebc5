//! Cargo command and its target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The running cargo, in the top folder of the repository.
pub(crate) fn cargo(repository: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository);
    cargo
}

/// Folder that cargo builds in.
pub(crate) fn target_folder(repository: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository.join(named.unwrap_or_else(|| "target".into()))
}
