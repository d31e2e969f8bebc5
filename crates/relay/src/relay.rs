//! The listeners and their sessions.
//!
//! On failure: an accept that goes wrong is logged and the loop goes on after a pause. A session that goes wrong ends
//! alone.

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
use crate::places::{Place, Places};

/// When the machine is out of sockets or memory, other work has to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// For sessions that were told to end at once.
const CUT_TIME_MAX: Duration = Duration::from_secs(1);
const FULL: &[u8] = b"421 4.3.2 Too many connections, try again later\r\n";

/// Running listeners. Stop them; when dropped they cut their sessions off.
#[derive(Debug)]
pub struct Relay {
    phase: watch::Sender<Phase>,
    accepting: Vec<JoinHandle<()>>,
    places: Arc<Places>,
    stop_time: Duration,
}

impl Relay {
    /// Accepts from now on, in the background.
    pub fn start(app: &App, settings: &Settings, listeners: Vec<(ListenerKind, TcpListener)>) -> Self {
        let places = Arc::new(Places::new(settings.sessions_max, settings.sessions_per_address_max));
        let connections = Arc::new(Connections::new(app.clone(), settings, Arc::clone(&places)));
        let (phase, watching) = watch::channel(Phase::Running);
        let accepting = listeners
            .into_iter()
            .map(|(kind, listener)| {
                let accepting = accept_all(
                    listener,
                    kind,
                    Arc::clone(&places),
                    Arc::clone(&connections),
                    watching.clone(),
                );
                tokio::spawn(accepting)
            })
            .collect();
        Self { phase, accepting, places, stop_time: settings.times.stop }
    }

    /// Takes no new sessions and no new messages at once; those under way may finish, for as long as the settings say.
    pub async fn stop(self) {
        self.phase.send_replace(Phase::Stopping);
        for accepting in self.accepting {
            if let Err(error) = accepting.await {
                tracing::error!(%error, "SMTP accept loop failed");
            }
        }
        if timeout(self.stop_time, self.places.all_free()).await.is_err() {
            tracing::warn!(
                open = self.places.taken(),
                "SMTP sessions are cut off: their messages took too long"
            );
            self.phase.send_replace(Phase::Gone);
            drop(timeout(CUT_TIME_MAX, self.places.all_free()).await);
        }
    }
}

async fn accept_all(
    listener: TcpListener,
    kind: ListenerKind,
    places: Arc<Places>,
    connections: Arc<Connections>,
    mut phase: watch::Receiver<Phase>,
) {
    // Another receiver for the sessions: they have to see the change that ends this loop.
    let sessions_phase = phase.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Also when the relay was dropped.
            _ = phase.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => match places.take() {
                Some(place) => {
                    let serving =
                        serve(Arc::clone(&connections), kind.clone(), stream, sessions_phase.clone(), place);
                    tokio::spawn(serving);
                }
                None => turn_away(&stream, &kind),
            },
            Err(error) => pause_after(&error).await,
        }
    }
}

async fn serve(
    connections: Arc<Connections>,
    kind: ListenerKind,
    stream: TcpStream,
    phase: watch::Receiver<Phase>,
    place: Place,
) {
    if let Err(error) = connections.serve(kind, stream, phase).await {
        tracing::debug!(%error, "an SMTP session was broken off");
    }
    drop(place);
}

/// Without waiting for anything: there is no place left for that.
fn turn_away(stream: &TcpStream, kind: &ListenerKind) {
    if !matches!(kind, ListenerKind::Tls(_)) {
        // A fresh socket takes one line; if not, the client sees it closed.
        drop(stream.try_write(FULL));
    }
    tracing::debug!("all SMTP sessions are taken");
}

async fn pause_after(error: &io::Error) {
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "SMTP: accepting connections failed; retrying");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
