//! Systems under test, each in a private folder on its own ports, stopped when dropped.

mod haraka;
mod postfix;
mod postroad;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_testkit::Cluster;

pub(super) use self::postroad::Postroad;

/// Number of ports to choose from, beginning with 20,000.
const OWN_PORTS: u64 = 10_000;

/// Systems to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postroad,
    PostroadOnPostgres,
    /// Another build of Postroad, to compare with (`--before`).
    Before,
    BeforeOnPostgres,
    Postfix,
    Haraka,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Postroad => "postroad",
            Self::PostroadOnPostgres => "postroad on postgres",
            Self::Before => "postroad before",
            Self::BeforeOnPostgres => "postroad on postgres before",
            Self::Postfix => "postfix",
            Self::Haraka => "haraka",
        }
    }

    /// This build of Postroad, on either engine.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::Postroad | Self::PostroadOnPostgres)
    }

    pub(super) fn is_peer(self) -> bool {
        matches!(self, Self::Postfix | Self::Haraka)
    }
}

/// Setup of a system for a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) sink_port: u16,
    pub(super) dkim: bool,
    /// Accept and queue only; deliver nothing.
    pub(super) holds: bool,
}

/// A running system.
pub(super) trait System {
    /// Address at which the system accepts mail from this machine, without TLS and password.
    fn smtp(&self) -> SocketAddr;
    /// Sender that it accepts.
    fn sender(&self) -> String;
    /// Its root processes; CPU and memory of their descendants count too.
    fn roots(&self) -> Vec<u32>;
    fn as_postroad(&self) -> Option<&Postroad> {
        None
    }
}

/// Systems that can be started.
pub(super) struct Systems {
    kinds: Vec<Kind>,
    program: PathBuf,
    before: Option<PathBuf>,
    haraka_home: Option<PathBuf>,
    cluster: Option<ClusterAddress>,
}

struct ClusterAddress {
    url: String,
    pid: u32,
}

impl Systems {
    /// Finds the systems; installs missing ones. Without `needs_sink`, leaves out Postfix and Haraka: only work with a
    /// sink is compared with them.
    pub(super) fn find(
        programs: &Path,
        needs_sink: bool,
        with_peers: bool,
        before: Option<&Path>,
        cluster: Option<&Cluster>,
    ) -> anyhow::Result<Self> {
        let mut kinds = vec![Kind::Postroad];
        kinds.extend(before.map(|_| Kind::Before));
        if needs_sink {
            // smtp-source and smtp-sink belong to Postfix.
            postfix::ensure_installed()?;
        }
        let mut haraka_home = None;
        if needs_sink && with_peers {
            haraka_home = Some(haraka::ensure_installed(programs)?);
            kinds.extend([Kind::Postfix, Kind::Haraka]);
        }
        let cluster =
            cluster.map(|cluster| ClusterAddress { url: cluster.url().to_owned(), pid: cluster.pid() });
        kinds.extend(cluster.is_some().then_some(Kind::PostroadOnPostgres));
        kinds.extend((cluster.is_some() && before.is_some()).then_some(Kind::BeforeOnPostgres));
        let before = before.map(Path::to_owned);
        Ok(Self { kinds, program: programs.join("postroad"), before, haraka_home, cluster })
    }

    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub(super) fn start(&self, kind: Kind, setup: Setup) -> anyhow::Result<Box<dyn System>> {
        let cluster = self.cluster.as_ref().map(|cluster| (cluster.url.as_str(), cluster.pid));
        let before = || self.before.as_deref().context("a program to compare with");
        Ok(match kind {
            Kind::Postroad => Box::new(Postroad::start(&self.program, setup, None)?),
            Kind::PostroadOnPostgres => Box::new(Postroad::start(&self.program, setup, cluster)?),
            Kind::Before => Box::new(Postroad::start(before()?, setup, None)?),
            Kind::BeforeOnPostgres => Box::new(Postroad::start(before()?, setup, cluster)?),
            Kind::Postfix => Box::new(postfix::Postfix::start(setup)?),
            Kind::Haraka => {
                let home = self.haraka_home.as_ref().context("Haraka is installed")?;
                Box::new(haraka::Haraka::start(home, setup)?)
            }
        })
    }
}

/// Free port outside the ephemeral range (above 32768 on Linux): otherwise another starting program might take
/// it.
pub(super) fn free_port() -> anyhow::Result<u16> {
    // Every hasher of the standard library has a random state.
    let first = RandomState::new().build_hasher().finish();
    (0..OWN_PORTS)
        .map(|step| 20_000 + (first.wrapping_add(step) % OWN_PORTS) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no port is free")
}

/// Waits until a program listens on the port.
pub(super) fn wait_for_port(port: u16) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(Instant::now() < deadline, "nobody listens on port {port}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
