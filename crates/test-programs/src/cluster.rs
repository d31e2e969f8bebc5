//! Private PostgreSQL server in a temporary folder, removed with its `Cluster`.
//!
//! The server runs under a small shell, the keeper, which reads from a pipe. The pipe closes however this
//! process ends, including kill -9; the keeper then stops the server and removes the folder.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const READY_SECS_MAX: u64 = 60;
const STOP_SECS_MAX: u64 = 10;
/// Maximum number of starts: another process may take the free port before the server binds it.
const STARTS_MAX: usize = 3;

/// `$1` is the folder, the rest the server's command line. SIGQUIT is PostgreSQL's immediate shutdown.
const KEEPER_SCRIPT: &str = r#"exec 3<&0; dir=$1; shift
"$@" 3<&- & pid=$!
(read -r _ <&3; kill -QUIT $pid) &
wait $pid; rm -rf "$dir""#;

const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "synchronous_commit=on",
    "max_connections=400",
    "shared_buffers=128MB",
];

/// Speed over durability: the tests kill our process, never this server.
const FAST_SETTINGS: &[&str] = &["fsync=off", "full_page_writes=off"];

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("initdb and postgres are neither in PATH nor in /usr/lib/postgresql/*/bin; install PostgreSQL")]
    ServerMissing,
    #[error("{program} failed: {output}")]
    Step { program: String, output: String },
    #[error("PostgreSQL did not become ready; its log says: {log}")]
    NotReady { log: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Running server with one superuser, `postroad`, without password, on 127.0.0.1 only.
#[derive(Debug)]
pub struct Cluster {
    url: String,
    keeper: Child,
    /// Removed after the server has stopped: `Drop::drop` runs before the fields are dropped.
    folder: TempDir,
}

impl Cluster {
    pub fn start() -> Result<Self, ClusterError> {
        Self::start_with(FAST_SETTINGS)
    }

    /// Starts a server with production durability: commits are flushed to disk.
    pub fn start_durable() -> Result<Self, ClusterError> {
        Self::start_with(&[])
    }

    fn start_with(more_settings: &[&str]) -> Result<Self, ClusterError> {
        let programs = find_server_programs().ok_or(ClusterError::ServerMissing)?;
        let mut start = Self::start_once(&programs, more_settings);
        for _ in 1..STARTS_MAX {
            if !matches!(start, Err(ClusterError::NotReady { .. })) {
                break;
            }
            start = Self::start_once(&programs, more_settings);
        }
        start
    }

    fn start_once(programs: &Path, more_settings: &[&str]) -> Result<Self, ClusterError> {
        let folder = tempfile::Builder::new().prefix("postroad-postgres-").tempdir()?;
        let user = SystemUser::choose(folder.path())?;
        let data = folder.path().join("data");

        let mut initdb = user.command(&programs.join("initdb"), folder.path());
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username=postroad",
            "-D",
        ]);
        run(initdb.arg(&data))?;

        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut log = tempfile::tempfile()?;
        let mut keeper = user.command(Path::new("sh"), folder.path());
        keeper
            .args(["-c", KEEPER_SCRIPT, "postgres-keeper"])
            .arg(folder.path())
            .arg(programs.join("postgres"));
        keeper.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        keeper.args(SETTINGS.iter().chain(more_settings).flat_map(|setting| ["-c", setting]));
        // In its own process group: Ctrl-C ends the tests first, then their database.
        keeper.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log.try_clone()?).process_group(0);
        let mut cluster = Self {
            url: format!("postgres://postroad@127.0.0.1:{port}/postgres"),
            keeper: keeper.spawn()?,
            folder,
        };
        if cluster.wait_until_ready(&data)? {
            return Ok(cluster);
        }
        drop(cluster);
        Err(ClusterError::NotReady { log: read_whole(&mut log)? })
    }

    /// Reads the server's state from the eighth line of postmaster.pid, as `pg_ctl --wait` does.
    fn wait_until_ready(&mut self, data: &Path) -> io::Result<bool> {
        let deadline = Instant::now() + Duration::from_secs(READY_SECS_MAX);
        while Instant::now() < deadline && self.keeper.try_wait()?.is_none() {
            let state = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            if state.lines().nth(7).is_some_and(|line| line.trim() == "ready") {
                return Ok(true);
            }
            sleep(Duration::from_millis(20));
        }
        Ok(false)
    }

    /// Id of the keeper, the parent process of the server.
    pub fn pid(&self) -> u32 {
        self.keeper.id()
    }

    /// Folder of its data files.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// URL of the database `postgres`, the value of POSTROAD_TEST_POSTGRES.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(STOP_SECS_MAX);
        while matches!(self.keeper.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                eprintln!("PostgreSQL at {} does not stop within {STOP_SECS_MAX} s", self.url);
                return;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// Folder with `initdb` and `postgres`: from PATH, else Debian's newest.
pub fn find_server_programs() -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let has_both = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    if let Some(folder) = std::env::split_paths(&in_path).find(has_both) {
        return Some(folder);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let folders = versions.map(|version| version.path().join("bin")).filter(has_both);
    folders.max_by_key(|folder| major_version(folder))
}

fn major_version(bin: &Path) -> Option<u32> {
    bin.parent()?.file_name()?.to_str()?.parse().ok()
}

/// System user that the server runs as: the current one, unless that is root, which PostgreSQL refuses. Then it is
/// `postgres`, or else `nobody`.
#[derive(Debug)]
struct SystemUser(Option<Ids>);

#[derive(Debug)]
struct Ids {
    user: String,
    group: String,
}

impl SystemUser {
    /// Chooses a user and makes it the owner of `folder`.
    fn choose(folder: &Path) -> Result<Self, ClusterError> {
        if id(&["-u"])? != "0" {
            return Ok(Self(None));
        }
        // By number: the group name of `nobody` differs between systems.
        let ids_of = |name: &str| Some(Ids { user: id(&["-u", name]).ok()?, group: id(&["-g", name]).ok()? });
        let ids = ids_of("postgres").or_else(|| ids_of("nobody")).ok_or_else(|| ClusterError::Step {
            program: "id".to_owned(),
            output: "there is neither a user postgres nor nobody, and PostgreSQL does not run as root"
                .to_owned(),
        })?;
        run(Command::new("chown").arg(format!("{}:{}", ids.user, ids.group)).arg(folder))?;
        Ok(Self(Some(ids)))
    }

    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = match &self.0 {
            None => Command::new(program),
            Some(Ids { user, group }) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", group, "--clear-groups", "--"]).arg(program);
                command
            }
        };
        // The user may not have access to the caller's folder.
        command.current_dir(folder);
        command
    }
}

fn id(arguments: &[&str]) -> Result<String, ClusterError> {
    run(Command::new("id").args(arguments)).map(|number| number.trim().to_owned())
}

fn run(command: &mut Command) -> Result<String, ClusterError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |output: String| ClusterError::Step { program: program.clone(), output };
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(failed(format!("{} {}{}", output.status, text(&output.stdout), text(&output.stderr))))
}

fn read_whole(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
