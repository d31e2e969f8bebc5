//! Postfix tuned for throughput as an expert would: a private instance on the loopback, fsync kept.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use super::{Setup, System, free_port, wait_for_port};
use postroad_test_programs::install;

/// Contents of `main.cf`. Its limits on clients are higher than the number of sessions of smtp-source.
const MAIN: &str = "compatibility_level = 3.6
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
shlib_directory = /usr/lib/postfix
meta_directory = /etc/postfix
mail_owner = postfix
setgid_group = postdrop
myhostname = peer.localhost
mydestination =
local_recipient_maps =
alias_maps =
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions = permit_mynetworks, reject
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
disable_dns_lookups = yes
smtpd_peername_lookup = no
smtp_tls_security_level = none
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
default_process_limit = 200
default_destination_concurrency_limit = 50
initial_destination_concurrency = 50
smtp_connection_cache_on_demand = yes
qmgr_message_active_limit = 50000
qmgr_message_recipient_limit = 50000
in_flow_delay = 0
max_use = 100000
";

/// Lines of `main.cf` that hold everything in the queue.
const HOLD: &str =
    "smtpd_recipient_restrictions = check_recipient_access static:HOLD, permit_mynetworks, reject\n";

/// Services and limits as in the package's own file, without chroot.
const MASTER: &str = "pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
";

pub(super) fn ensure_installed() -> anyhow::Result<()> {
    install::ensure_packages(&[("smtp-source", "postfix")])
}

pub(super) struct Postfix {
    folder: TempDir,
    port: u16,
    master: u32,
}

impl Postfix {
    pub(super) fn start(Setup { sink_port, holds, .. }: Setup) -> anyhow::Result<Self> {
        let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
        ensure!(is_root, "Postfix starts as root only: run the benchmark as root");
        let folder = TempDir::with_prefix("postroad-bench-postfix")?;
        let path = folder.path();
        let port = free_port()?;
        for name in ["conf", "queue", "data"] {
            fs::create_dir(path.join(name))?;
        }
        let at = path.display();
        let main = format!(
            "{MAIN}queue_directory = {at}/queue\ndata_directory = {at}/data\nmaillog_file = {at}/maillog\n\
             maillog_file_prefixes = {at}\nrelayhost = [127.0.0.1]:{sink_port}\n\
             smtp_connection_cache_destinations = [127.0.0.1]:{sink_port}\n{}",
            if holds { HOLD } else { "" }
        );
        fs::write(path.join("conf/main.cf"), main)?;
        fs::write(path.join("conf/master.cf"), format!("127.0.0.1:{port} inet n - n - - smtpd\n{MASTER}"))?;
        // Postfix's daemons run as another user.
        run(Command::new("chmod").arg("755").arg(path))?;
        run(Command::new("chown").arg("postfix").arg(path.join("data")))?;
        postfix(path, "start")?;
        let pid_file = path.join("queue/pid/master.pid");
        wait_for_port(port)?;
        let master = fs::read_to_string(&pid_file).context("Postfix has no master.pid")?;
        Ok(Self { port, master: master.trim().parse().context("a process number")?, folder })
    }
}

impl System for Postfix {
    fn smtp(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn sender(&self) -> String {
        "shop@shop.example".to_owned()
    }

    fn roots(&self) -> Vec<u32> {
        vec![self.master]
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        if let Err(error) = postfix(self.folder.path(), "stop") {
            eprintln!("Postfix does not stop: {error}");
        }
    }
}

fn postfix(folder: &Path, command: &str) -> anyhow::Result<()> {
    run(Command::new("postfix").arg("-c").arg(folder.join("conf")).arg(command))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
