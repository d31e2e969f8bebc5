//! JavaScript libraries that tests run, in a folder under the target folder: the client of Mailpit's API, and axe-core,
//! which finds accessibility problems of pages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::install;

/// Pinned, so that a test fails only because of our changes.
const LIBRARIES: &[&str] = &["mailpit-api@2.1.0", "axe-core@4.14.0"];
/// File that lists the installed versions.
const VERSIONS_FILE: &str = "postroad-libraries";

/// Installs the libraries into `node-for-tests/node_modules`.
pub fn ensure(target: &Path) -> anyhow::Result<()> {
    let folder = target.join("node-for-tests");
    let wanted = LIBRARIES.join("\n");
    if std::fs::read_to_string(folder.join(VERSIONS_FILE)).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    install::ensure_packages(&[("node", "nodejs"), ("npm", "npm")])?;
    eprintln!("the tests need {}: installing into {}", LIBRARIES.join(", "), folder.display());
    std::fs::create_dir_all(&folder)?;
    let npm = ["install", "--silent", "--no-audit", "--no-fund", "--prefix"];
    let installed = Command::new("npm").args(npm).arg(&folder).args(LIBRARIES).status();
    ensure!(installed.context("cannot run npm")?.success(), "npm could not install {}", LIBRARIES.join(", "));
    std::fs::write(folder.join(VERSIONS_FILE), wanted)?;
    Ok(())
}
