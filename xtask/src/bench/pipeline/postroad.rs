//! Postroad as a user starts it, with the sink as its smart host.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use postroad_testkit::Daemon;
use postroad_testkit::postgres::Database;
use tempfile::TempDir;

use super::{System, free_port};

/// The sink is a server of our own, so the limits for strangers' servers do not apply; as for Postfix.
const PROVIDERS: &str = "[default]
connections_max = 50
connections_per_minute = 0
messages_per_connection_max = 100000
slow_start_connections = 50
basis = \"The sink of the benchmark\"
";

pub(super) struct Postroad {
    daemon: Daemon,
    port: u16,
    // Dropped behind the process that uses them.
    _folder: TempDir,
    _database: Option<Database>,
}

impl Postroad {
    pub(super) fn start(
        release: &Path,
        sink_port: u16,
        dkim: bool,
        cluster: Option<&str>,
    ) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("postroad-bench")?;
        let providers = folder.path().join("providers.toml");
        fs::write(&providers, PROVIDERS)?;
        let data = folder.path().join("data");
        let port = free_port()?;
        let database = cluster.map(Database::create_on);
        let (listen, smarthost) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{sink_port}"));
        let mut envs = vec![
            ("POSTROAD_SMTP_PLAIN_LISTEN", listen.as_str()),
            ("POSTROAD_DELIVERY_SMARTHOST", smarthost.as_str()),
            ("POSTROAD_DELIVERY_SMARTHOST_TLS", "off"),
            ("POSTROAD_DELIVERY_PROVIDERS_FILE", providers.to_str().context("a plain path")?),
            ("POSTROAD_DELIVERY_DKIM", if dkim { "true" } else { "false" }),
        ];
        if let Some(database) = &database {
            envs.push(("POSTROAD_DATABASE", database.url()));
        }
        let program = release.join("postroad");
        let data = data.to_str().context("a plain path")?;
        let args = ["dev", "--json", "--http-port", "0", "--smtp-port", "0", "--smtps-port", "0"];
        let daemon =
            Daemon::start(&program, [&args[..], &["--bounce-port", "0", "--data-dir", data]].concat(), &envs);
        let mut key = Command::new(&program);
        key.args(["admin", "key", "create", "--server", "dev", "--address", "127.0.0.0/8"]);
        key.args(["--data-dir", data]);
        let made = key.output()?;
        ensure!(made.status.success(), "no key: {}", String::from_utf8_lossy(&made.stderr));
        Ok(Self { daemon, port, _folder: folder, _database: database })
    }

    fn text(&self, name: &str) -> String {
        self.daemon.ready()[name].as_str().unwrap_or_default().to_owned()
    }
}

impl System for Postroad {
    fn smtp_port(&self) -> u16 {
        self.port
    }

    fn sender(&self) -> String {
        format!("shop@{}", self.text("domain"))
    }

    fn http(&self) -> Option<(String, String)> {
        Some((self.text("url"), self.text("api_key")))
    }

    fn roots(&self) -> Vec<u32> {
        self.daemon.ready()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).into_iter().collect()
    }
}
