//! Haraka with its disk queue and one worker process per core, routed to the sink by our plugin.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::{Setup, System, free_port, wait_for_port};
use postroad_test_programs::install;

/// npm installs no package that is newer than this date.
const PACKAGES_BEFORE: &str = "2026-06-01";

/// Allows relaying for everybody, and routes everything to the sink. To hold messages in the queue, it does not call
/// `next` when Haraka asks for the route, so Haraka waits for ever.
const PLUGIN: &str = "'use strict'
exports.register = function () {
  this.register_hook('connect_init', 'relay')
  this.register_hook('get_mx', 'route')
}
exports.relay = function (next, connection) { connection.relaying = true; next() }
exports.route = function (next) {
  if (HOLDS) return // and never goes on
  next(OK, { priority: 0, exchange: '127.0.0.1', port: SINK_PORT })
}
";

/// Installs Haraka beside our builds and returns its folder.
pub(super) fn ensure_installed(programs: &Path) -> anyhow::Result<PathBuf> {
    install::ensure_packages(&[("node", "nodejs"), ("npm", "npm")])?;
    let home = programs.join("bench-peers/haraka");
    if !home.join("node_modules/.bin/haraka").exists() {
        fs::create_dir_all(&home)?;
        eprintln!("installing Haraka with npm");
        let before = format!("--before={PACKAGES_BEFORE}");
        let status = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--omit=optional", &before, "Haraka"])
            .current_dir(&home)
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "npm cannot install Haraka ({status})");
    }
    Ok(home.canonicalize()?)
}

pub(super) struct Haraka {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Haraka {
    pub(super) fn start(home: &Path, Setup { sink_port, holds, .. }: Setup) -> anyhow::Result<Self> {
        let program = home.join("node_modules/.bin/haraka");
        let folder = TempDir::with_prefix("postroad-bench-haraka")?;
        let path = folder.path().join("haraka");
        let made = Command::new(&program).arg("-i").arg(&path).output().context("haraka -i")?;
        ensure!(made.status.success(), "haraka -i failed: {}", String::from_utf8_lossy(&made.stderr));
        let port = free_port()?;
        fs::copy(home.join("node_modules/Haraka/config/connection.ini"), path.join("config/connection.ini"))?;
        let plugin = PLUGIN.replace("SINK_PORT", &sink_port.to_string()).replace("HOLDS", &holds.to_string());
        for (name, text) in [
            ("plugins/bench.js", plugin),
            ("config/plugins", "bench\n".to_owned()),
            ("config/plugin_timeout", "0\n".to_owned()),
            ("config/loglevel", "LOGWARN\n".to_owned()),
            ("config/smtp.ini", format!("listen=127.0.0.1:{port}\nnodes=cpus\n")),
            ("config/outbound.ini", "concurrency_max=100\nenable_tls=false\n".to_owned()),
        ] {
            fs::write(path.join(name), text)?;
        }
        let mut command = Command::new(&program);
        command.arg("-c").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("Haraka does not start")?;
        wait_for_port(port)?;
        Ok(Self { child, port, _folder: folder })
    }
}

impl System for Haraka {
    fn smtp(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn sender(&self) -> String {
        "shop@shop.example".to_owned()
    }

    fn roots(&self) -> Vec<u32> {
        vec![self.child.id()]
    }
}

impl Drop for Haraka {
    fn drop(&mut self) {
        // SIGTERM instead of SIGKILL: otherwise its workers would keep running.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
