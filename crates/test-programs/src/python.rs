//! Python libraries that tests use, in a virtual environment under the target folder: standardwebhooks (the official
//! library of Standard Webhooks), django-anymail (reads Postal's webhooks), schemathesis (calls an API by its OpenAPI
//! document) and typos (the spelling checker of CI).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Pinned, Django to a range of versions, so that a test fails only because of our changes.
const LIBRARIES: &[&str] = &[
    "standardwebhooks==1.1.0",
    "django-anymail[postal]==15.2",
    "Django>=4.2,<6",
    "typos==1.51.1",
    "schemathesis==4.32.0",
];
/// File that lists the installed versions.
const VERSIONS_FILE: &str = "postroad-libraries";

/// Installs the libraries and returns the interpreter that has them; `typos` and `schemathesis` are programs in the
/// same folder.
pub fn ensure(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("python-for-tests");
    let interpreter = folder.join("bin/python");
    let wanted = LIBRARIES.join("\n");
    if std::fs::read_to_string(folder.join(VERSIONS_FILE)).is_ok_and(|have| have == wanted)
        && works(&interpreter)
    {
        return Ok(interpreter);
    }
    eprintln!("the tests need {}: installing into {}", LIBRARIES.join(", "), folder.display());
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status();
    ensure!(
        made.context("cannot run python3")?.success(),
        "`python3 -m venv` failed; install Debian's python3-venv"
    );
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let installed = Command::new(&interpreter).args(pip).args(LIBRARIES).status()?;
    ensure!(installed.success(), "pip could not install {}", LIBRARIES.join(", "));
    std::fs::write(folder.join(VERSIONS_FILE), wanted)?;
    Ok(interpreter)
}

fn works(interpreter: &Path) -> bool {
    let import = "import standardwebhooks, anymail, django, cryptography, schemathesis";
    Command::new(interpreter).args(["-c", import]).status().is_ok_and(|status| status.success())
}
