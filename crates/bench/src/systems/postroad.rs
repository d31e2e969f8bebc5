//! Postroad as a user starts it, with the sink as its smart host.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use postroad_testkit::Daemon;
use postroad_testkit::postgres::Database;
use tempfile::TempDir;

use super::{Setup, System, free_port};

/// Provider rules for the sink: as many connections as `main.cf` of the Postfix benchmark allows, and no other limit.
const PROVIDERS: &str = "[default]
connections_max = 50
connections_per_minute = 0
messages_per_connection_max = 100000
slow_start_connections = 50
basis = \"The sink of the benchmark\"
";

pub(crate) struct Postroad {
    daemon: Daemon,
    port: u16,
    /// Processes of the database count too.
    postgres_pid: Option<u32>,
    // Dropped after the process that uses them.
    _folder: TempDir,
    _database: Option<Database>,
}

impl Postroad {
    pub(crate) fn start(program: &Path, setup: Setup, cluster: Option<(&str, u32)>) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("postroad-bench")?;
        let providers = folder.path().join("providers.toml");
        fs::write(&providers, PROVIDERS)?;
        let data = folder.path().join("data");
        let port = free_port()?;
        let database = cluster.map(|(url, _)| Database::create_on(url));
        let (listen, smarthost) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", setup.sink_port));
        let mut envs = vec![
            ("POSTROAD_SMTP_PLAIN_LISTEN", listen.as_str()),
            ("POSTROAD_DELIVERY_SMARTHOST", smarthost.as_str()),
            ("POSTROAD_DELIVERY_SMARTHOST_TLS", "off"),
            ("POSTROAD_DELIVERY_PROVIDERS_FILE", providers.to_str().context("a plain path")?),
            ("POSTROAD_DELIVERY_DKIM", if setup.dkim { "true" } else { "false" }),
        ];
        if let Some(database) = &database {
            envs.push(("POSTROAD_DATABASE", database.url()));
        }
        let data = data.to_str().context("a plain path")?;
        let args = ["dev", "--json", "--http-port", "0", "--smtp-port", "0", "--smtps-port", "0"];
        let daemon =
            Daemon::start(program, [&args[..], &["--bounce-port", "0", "--data-dir", data]].concat(), &envs);
        let run = |arguments: &[&str]| {
            let output = Command::new(program).args(arguments).args(["--data-dir", data]).output()?;
            ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Ok(())
        };
        run(&["admin", "key", "create", "--server", "dev", "--address", "127.0.0.0/8"])?;
        if setup.holds {
            run(&["queue", "suspend", "everything", "--reason", "benchmark"])?;
        }
        let postgres_pid = cluster.map(|(_, pid)| pid);
        Ok(Self { daemon, port, postgres_pid, _folder: folder, _database: database })
    }

    /// Field of its ready line: `url`, `api_key`, `api_secret`, …
    pub(crate) fn text(&self, name: &str) -> String {
        self.daemon.ready()[name].as_str().unwrap_or_default().to_owned()
    }

    /// Port with STARTTLS and a password.
    pub(crate) fn submission(&self) -> anyhow::Result<SocketAddr> {
        let settings = &self.daemon.ready()["smtp"];
        let port = settings["starttls_port"].as_u64().and_then(|port| u16::try_from(port).ok());
        Ok(([127, 0, 0, 1], port.with_context(|| format!("no port in {settings}"))?).into())
    }
}

impl System for Postroad {
    fn smtp(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn sender(&self) -> String {
        format!("shop@{}", self.text("domain"))
    }

    fn roots(&self) -> Vec<u32> {
        std::iter::once(self.daemon.pid()).chain(self.postgres_pid).collect()
    }

    fn as_postroad(&self) -> Option<&Postroad> {
        Some(self)
    }
}
