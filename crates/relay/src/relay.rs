//! SMTP listeners and their sessions.
//!
//! On failure: a failed accept is logged, and the loop continues after a pause. If the peer was gone before it was
//! accepted, the loop continues at once, without a log line. A failing session affects no other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::Settings;
use crate::connection::Connections;
use crate::listener_kind::ListenerKind;
use crate::phase::Phase;
use crate::session_limit::{SessionLimit, SessionPermit};

/// Pause after a failed accept: the machine is probably out of sockets or memory, and other work must end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for sessions to end once they are cut off.
const CUT_TIME_MAX: Duration = Duration::from_secs(1);
const TOO_MANY_CONNECTIONS_REPLY: &[u8] = b"421 4.3.2 Too many connections, try again later\r\n";

/// Running listeners. Call `stop` to end them; dropping the value cuts off their sessions.
#[derive(Debug)]
pub struct Relay {
    phase: watch::Sender<Phase>,
    accept_tasks: Vec<JoinHandle<()>>,
    session_limit: Arc<SessionLimit>,
    stop_time: Duration,
}

impl Relay {
    /// Starts accepting sessions in the background.
    pub fn start(app: &App, settings: &Settings, listeners: Vec<(ListenerKind, TcpListener)>) -> Self {
        let session_limit =
            Arc::new(SessionLimit::new(settings.sessions_max, settings.sessions_per_address_max));
        let connections = Arc::new(Connections::new(app.clone(), settings, Arc::clone(&session_limit)));
        let (phase, phase_receiver) = watch::channel(Phase::Running);
        let accept_tasks = listeners
            .into_iter()
            .map(|(kind, listener)| {
                let accepting = accept_all(
                    listener,
                    kind,
                    Arc::clone(&session_limit),
                    Arc::clone(&connections),
                    phase_receiver.clone(),
                );
                tokio::spawn(accepting)
            })
            .collect();
        Self { phase, accept_tasks, session_limit, stop_time: settings.times.stop }
    }

    /// Accepts no new sessions and messages; messages in progress may finish within `times.stop` of the settings.
    pub async fn stop(self) {
        self.phase.send_replace(Phase::Stopping);
        for accept_task in self.accept_tasks {
            if let Err(error) = accept_task.await {
                tracing::error!(%error, "SMTP listener: the accept loop panicked");
            }
        }
        if timeout(self.stop_time, self.session_limit.wait_until_empty()).await.is_err() {
            tracing::warn!(
                open = self.session_limit.session_count(),
                "shutdown: SMTP sessions did not end in time and are cut off"
            );
            self.phase.send_replace(Phase::CuttingOff);
            drop(timeout(CUT_TIME_MAX, self.session_limit.wait_until_empty()).await);
        }
    }
}

async fn accept_all(
    listener: TcpListener,
    kind: ListenerKind,
    session_limit: Arc<SessionLimit>,
    connections: Arc<Connections>,
    mut phase: watch::Receiver<Phase>,
) {
    // The sessions need their own receiver: they must see the change that ends this loop.
    let sessions_phase = phase.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Also fires when the relay was dropped.
            _ = phase.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => match session_limit.take() {
                Some(permit) => {
                    let serving = serve_connection(
                        Arc::clone(&connections),
                        kind.clone(),
                        stream,
                        sessions_phase.clone(),
                        permit,
                    );
                    tokio::spawn(serving);
                }
                None => refuse_connection(&stream, &kind),
            },
            Err(error) => pause_after(&error).await,
        }
    }
}

async fn serve_connection(
    connections: Arc<Connections>,
    kind: ListenerKind,
    stream: TcpStream,
    phase: watch::Receiver<Phase>,
    permit: SessionPermit,
) {
    if let Err(error) = connections.serve(kind, stream, phase).await {
        tracing::debug!(%error, "SMTP session ended by an error");
    }
    drop(permit);
}

/// Refuses a connection without waiting: no permit is left for it.
fn refuse_connection(stream: &TcpStream, kind: &ListenerKind) {
    if !matches!(kind, ListenerKind::Tls(_)) {
        // The buffer of a fresh socket has room for one line. If writing fails, the client only sees the connection
        // close.
        drop(stream.try_write(TOO_MANY_CONNECTIONS_REPLY));
    }
    tracing::debug!("SMTP connection refused: all sessions are in use");
}

async fn pause_after(error: &io::Error) {
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "SMTP: accepting connections failed; retrying");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
