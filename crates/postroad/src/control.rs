//! Control socket: `postroad admin`, `queue`, `audit`, `trace` and `webhook listen` send their commands to a running
//! service, one line of JSON each way. The socket is in the data folder and accessible to its owner and root only.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use postroad_app::App;
use postroad_delivery::QueueAdmin;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::cli::{AdminCommand, AuditCommand, QueueCommand};
use crate::feed::{self, FeedCommand};
use crate::{queue, trace};

const COMMAND_BYTES_MAX: u64 = 1 << 20;
const EXCHANGE_TIME_MAX: Duration = Duration::from_secs(30);
const SOCKET_NAME: &str = "control.sock";

/// Request to a running service: the parsed arguments of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Request {
    Admin(AdminCommand),
    Audit(AuditCommand),
    Queue(QueueCommand),
    Feed(FeedCommand),
    /// The timeline of a message, named by id, token or Message-ID.
    Trace {
        message: String,
    },
}

impl Request {
    /// Executes the request. When this function returns, a change is in effect in this process. If delivery could not
    /// be notified of the change, delivery picks it up within seconds.
    pub(crate) async fn execute(self, app: &App, queue_admin: &QueueAdmin) -> anyhow::Result<Value> {
        match self {
            Self::Admin(command) => {
                let answer = command.execute(app).await?;
                if let Err(error) = queue_admin.refresh().await {
                    tracing::warn!(%error, "delivery was not notified of a change and will pick it up within seconds");
                }
                Ok(answer)
            }
            Self::Audit(command) => Ok(command.execute(app).await?),
            Self::Queue(command) => queue::execute(app, queue_admin, command).await,
            Self::Feed(command) => feed::execute(app, command).await,
            Self::Trace { message } => trace::execute(app, queue_admin, &message).await,
        }
    }
}

/// Listening control socket; dropping it removes the socket's file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl ControlSocket {
    /// Replaces a socket that a killed process left behind; the lock on `node-id` guarantees that no other process
    /// uses that socket.
    pub(crate) fn listen(data_dir: &Path, app: App, queue_admin: QueueAdmin) -> anyhow::Result<Self> {
        let path = data_dir.join(SOCKET_NAME);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot replace {}", path.display()));
            }
            _ => {}
        }
        let folder = OpenFolder::open(data_dir)?;
        let listener = UnixListener::bind(folder.socket())
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let owner = std::fs::metadata(&path)?.uid();
        let task = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    // The mode of the socket's file excludes other users too, but is set only after the socket exists.
                    Ok((stream, _))
                        if !stream.peer_cred().is_ok_and(|peer| [owner, 0].contains(&peer.uid())) => {}
                    Ok((stream, _)) => {
                        tokio::spawn(tokio::time::timeout(
                            EXCHANGE_TIME_MAX,
                            serve(stream, app.clone(), queue_admin.clone()),
                        ));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "control socket: accepting a command failed; retrying");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(Self { path, task })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.task.abort();
        // The file may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(stream: UnixStream, app: App, queue_admin: QueueAdmin) {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(COMMAND_BYTES_MAX));
    if reader.read_line(&mut line).await.is_err() {
        return;
    }
    let answer = match serde_json::from_str::<Request>(&line) {
        Ok(request) => match request.execute(&app, &queue_admin).await {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        },
        Err(_) => {
            json!({ "error": "this server does not know the command: is it the same version of postroad?" })
        }
    };
    // The caller may be gone.
    let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
}

/// Sends a command to the service that runs with this data folder. Returns `None` if no service runs.
pub(crate) async fn send(data_dir: &Path, request: &Request) -> anyhow::Result<Option<Value>> {
    let folder = match OpenFolder::open(data_dir) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| unreadable_folder_message(data_dir)),
    };
    let stream = match UnixStream::connect(folder.socket()).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(error).with_context(|| unreadable_folder_message(data_dir));
        }
        Err(error) => {
            return Err(error).with_context(|| {
                format!("cannot reach the server at {}", data_dir.join(SOCKET_NAME).display())
            });
        }
    };
    let line = tokio::time::timeout(EXCHANGE_TIME_MAX, exchange(stream, request))
        .await
        .context("the running server does not answer")??;
    let mut answer: Value = serde_json::from_str(&line).context("the running server gave no answer")?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(anyhow::anyhow!("{error}")),
        None => Ok(Some(answer["ok"].take())),
    }
}

fn unreadable_folder_message(data_dir: &Path) -> String {
    format!(
        "the data folder {} is not for this user: run the command as the user that postroad runs as, or as root",
        data_dir.display()
    )
}

async fn exchange(mut stream: UnixStream, request: &Request) -> io::Result<String> {
    let line = serde_json::to_string(request).map_err(io::Error::other)?;
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(answer)
}

/// Open data folder, through which `/proc` gives the socket a short path: a socket path is limited to 107 bytes, and
/// data folders may be deep.
struct OpenFolder(std::fs::File);

impl OpenFolder {
    fn open(folder: &Path) -> io::Result<Self> {
        std::fs::File::open(folder).map(Self)
    }

    fn socket(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_NAME}", self.0.as_raw_fd()))
    }
}
