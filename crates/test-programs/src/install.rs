//! Installs the programs that tests need: PostgreSQL, python3 with its DKIM library, curl, jq, mail clients (swaks,
//! node with nodemailer), and Chromium with its driver.
//!
//! Uses apt-get. On systems without it the error says what to install.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{bail, ensure};

use crate::{NODE_LIBRARIES, find_dkim_verifier, find_server_programs};

/// Folder that Debian's postgresql-common reads. Without our file there, the package starts a system server, which is
/// not needed.
const CREATECLUSTER_FOLDER: &str = "/etc/postgresql-common/createcluster.d";
const CREATECLUSTER_FILE: &str = "/etc/postgresql-common/createcluster.d/postroad-tests.conf";

/// Installs the programs that are missing.
pub fn ensure() -> anyhow::Result<()> {
    let missing = list_missing();
    if missing.is_empty() {
        return Ok(());
    }
    let missing_text = missing.join(" and ");
    if !is_in_path("apt-get") {
        bail!(
            "the tests need {missing_text}; install it and put it into PATH (PostgreSQL: initdb and postgres; python3-dkim: \
             the Python module dkim)"
        );
    }
    eprintln!("the tests need {missing_text}: installing with apt-get");
    let written = prevent_system_server(&missing);
    let installed = written.and_then(|()| install(&missing));
    // The file is for this installation only: later ones by the machine's owner behave as usual.
    if missing.contains(&"postgresql") {
        as_root(&["rm", "-f", CREATECLUSTER_FILE])?;
    }
    installed?;
    let still_missing = list_missing();
    ensure!(
        still_missing.is_empty(),
        "apt-get has run, but {} is still not there",
        still_missing.join(" and ")
    );
    Ok(())
}

/// Installs the packages of missing programs: `(program, package)`.
pub fn ensure_packages(wanted: &[(&str, &'static str)]) -> anyhow::Result<()> {
    let missing: Vec<&str> =
        wanted.iter().filter(|(program, _)| !is_in_path(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    ensure!(is_in_path("apt-get"), "install {} and put it into PATH", missing.join(" and "));
    install(&missing)
}

/// Names of missing Debian packages.
fn list_missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if find_server_programs().is_none() {
        missing.push("postgresql");
    }
    missing.extend(["python3", "curl", "jq", "swaks"].into_iter().filter(|program| !is_in_path(program)));
    // swaks needs Net::SSLeay for TLS.
    if !runs("perl", &["-MNet::SSLeay", "-e", "1"]) {
        missing.push("libnet-ssleay-perl");
    }
    if !is_in_path("node") {
        missing.push("nodejs");
    }
    if !runs("node", &["-e", "require('nodemailer')"]) {
        missing.push("node-nodemailer");
    }
    // Creates virtual environments; a separate package in Debian.
    if !runs("python3", &["-c", "import ensurepip, venv"]) {
        missing.push("python3-venv");
    }
    // Tests open pages in a real browser.
    for (program, package) in [("chromium", "chromium"), ("chromedriver", "chromium-driver")] {
        if !is_in_path(program) {
            missing.push(package);
        }
    }
    if find_dkim_verifier().is_none() {
        missing.push("python3-dkim");
    }
    missing
}

/// Whether a program succeeds. Node also searches Debian's library folder, as Debian's own node does.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).env("NODE_PATH", NODE_LIBRARIES).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn prevent_system_server(missing: &[&str]) -> anyhow::Result<()> {
    if !missing.contains(&"postgresql") {
        return Ok(());
    }
    as_root(&["mkdir", "-p", CREATECLUSTER_FOLDER])?;
    as_root(&["sh", "-c", &format!("echo 'create_main_cluster = false' > {CREATECLUSTER_FILE}")])
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    as_root(&["apt-get", "update"])?;
    let install =
        ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends"];
    as_root(&[&install, packages].concat())
}

fn as_root(words: &[&str]) -> anyhow::Result<()> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let words = if is_root { words.to_vec() } else { [&["sudo"], words].concat() };
    ensure!(is_root || is_in_path("sudo"), "not root and no sudo: run `{}` as root", words[1..].join(" "));
    eprintln!("+ {}", words.join(" "));
    let status = Command::new(words[0]).args(&words[1..]).status()?;
    ensure!(status.success(), "`{}` failed ({status})", words.join(" "));
    Ok(())
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
