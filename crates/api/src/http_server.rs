//! HTTP listener and its connections.
//!
//! On failure: a failed accept is logged, and the loop continues after a pause. If the peer was gone before its
//! connection was accepted, the loop continues at once, without a log line. A connection that fails
//! does not affect others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use postroad_net::limits::{AddressPermit, PerAddressLimit};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::connection::{Connections, Phase};
use crate::{Api, Mode};

/// Pause after a failed accept: the machine is probably out of sockets or memory, and other work must end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for connections to end once they are cut off.
const CUT_OFF_TIME_MAX: Duration = Duration::from_secs(1);

/// Running listener. Call `stop` to end it; dropping it cuts off its connections.
#[derive(Debug)]
pub struct HttpServer {
    phase: watch::Sender<Phase>,
    accept_task: JoinHandle<()>,
    /// One permit per connection.
    permits: Arc<Semaphore>,
    permits_max: u32,
    stop_time: Duration,
}

impl HttpServer {
    /// Starts accepting connections in the background.
    pub fn start(api: &Api, listener: TcpListener, tls: Option<Arc<ServerConfig>>, mode: Mode) -> Self {
        let settings = &api.settings;
        let permits_max = u32::try_from(settings.connections_max.max(1)).unwrap_or(u32::MAX);
        let permits = Arc::new(Semaphore::new(permits_max as usize));
        let (phase, phase_receiver) = watch::channel(Phase::Running);
        let connections =
            Connections::new(Arc::clone(&api.boundary), tls.map(TlsAcceptor::from), mode, settings.times);
        let limited_listener = LimitedListener {
            listener,
            permits: Arc::clone(&permits),
            per_address: PerAddressLimit::new(settings.connections_per_address_max),
            proxies: settings.trusted_proxies.clone(),
        };
        let accept_task = tokio::spawn(accept_all(limited_listener, connections, phase_receiver));
        Self { phase, accept_task, permits, permits_max, stop_time: settings.times.stop }
    }

    /// Stops accepting at once, and lets requests in flight finish within `times.stop` of the settings.
    pub async fn stop(self) {
        self.phase.send_replace(Phase::Stopping);
        if let Err(error) = self.accept_task.await {
            tracing::error!(%error, "HTTP listener: the accept loop panicked");
        }
        // If all permits are free, no connection is left.
        if timeout(self.stop_time, self.permits.acquire_many(self.permits_max)).await.is_err() {
            let open = self.permits_max as usize - self.permits.available_permits();
            tracing::warn!(open, "shutdown: connections closed with requests unfinished");
            self.phase.send_replace(Phase::CutOff);
            drop(timeout(CUT_OFF_TIME_MAX, self.permits.acquire_many(self.permits_max)).await);
        }
    }
}

/// Listener with its connection limits.
struct LimitedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    per_address: Arc<PerAddressLimit>,
    /// Proxies are exempt from the limit per address: they speak for many clients.
    proxies: Vec<IpNet>,
}

/// Permits that a connection holds until it ends.
type ConnectionPermits = (OwnedSemaphorePermit, Option<AddressPermit>);

async fn accept_all(
    listener: LimitedListener,
    connections: Arc<Connections>,
    mut phase: watch::Receiver<Phase>,
) {
    // The connections need their own receiver: they must see the change that ends this loop.
    let phase_of_connections = phase.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = phase.changed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(Some((stream, permits))) => {
                let serving = Arc::clone(&connections).serve(stream, phase_of_connections.clone());
                tokio::spawn(async move {
                    serving.await;
                    drop(permits);
                });
            }
            Ok(None) => tracing::debug!("connection refused: its address has reached its limit"),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting connections failed; retrying");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl LimitedListener {
    /// Takes a permit before accepting: further connections wait in the kernel's queue. `None` if the address
    /// has reached its limit.
    async fn accept(&self) -> io::Result<Option<(TcpStream, ConnectionPermits)>> {
        let connection_permit = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, peer) = self.listener.accept().await?;
        let address = peer.ip().to_canonical();
        if self.proxies.iter().any(|network| network.contains(&address)) {
            return Ok(Some((stream, (connection_permit, None))));
        }
        let permit = self.per_address.acquire(address);
        Ok(permit.map(|permit| (stream, (connection_permit, Some(permit)))))
    }
}

/// Whether only this connection failed, because the peer was gone before the connection was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
