//! One connection: TLS if the listener has it, then HTTP/1.1 or HTTP/2 until it ends, idles too long, or the server
//! stops.

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use postroad_app::Peer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::boundary::Boundary;
use crate::{Mode, TimeLimits};

/// HTTP/1.1: request line and headers together; also the size of reads.
const HEADER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 100;
const H2_HEADER_LIST_BYTES_MAX: u32 = 64 << 10;
const H2_STREAMS_MAX: u32 = 128;
const H2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const H2_CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
const H2_PING: Duration = Duration::from_secs(20);
/// A connection that was told to end may still be writing a large answer to a slow reader, for so long.
const LAST_ANSWER_MAX: Duration = Duration::from_mins(10);

/// How far a server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// Requests in flight may finish.
    Stopping,
    /// Everything ends now.
    Gone,
}

/// What the connections of a listener share.
pub(crate) struct Connections {
    boundary: Arc<Boundary>,
    protocol: Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    mode: Mode,
    times: TimeLimits,
}

impl Connections {
    pub(crate) fn new(
        boundary: Arc<Boundary>,
        tls: Option<TlsAcceptor>,
        mode: Mode,
        times: TimeLimits,
    ) -> Arc<Self> {
        Arc::new(Self { boundary, protocol: protocol(times), tls, mode, times })
    }

    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, mut phase: watch::Receiver<Phase>) {
        let Ok(address) = stream.peer_addr() else { return };
        // Small answers must not wait for acknowledgements (Nagle).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return self.speak(stream, Peer { address: address.ip(), tls: false }, phase).await;
        };
        let handshake = timeout(self.times.tls_handshake, tls.accept(stream));
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            _ = phase.changed() => return,
        };
        match accepted {
            Ok(Ok(stream)) => self.speak(stream, Peer { address: address.ip(), tls: true }, phase).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn speak<S>(&self, stream: S, peer: Peer, mut phase: watch::Receiver<Phase>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Arc::new(Activity::default());
        let service = service_fn(|request: Request<Incoming>| {
            let (boundary, mode, busy) = (Arc::clone(&self.boundary), self.mode, activity.begin());
            async move {
                let response = boundary.answer(mode, peer, request.map(Body::new)).await;
                drop(busy);
                Ok::<_, Infallible>(response)
            }
        });
        let mut connection = pin!(self.protocol.serve_connection(TokioIo::new(stream), service));
        let mut timer = pin!(sleep(self.times.first_request));
        let mut is_ending = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "connection ended");
                    }
                    return;
                }
                changed = phase.changed() => {
                    if changed.is_err() || *phase.borrow_and_update() == Phase::Gone {
                        return;
                    }
                    connection.as_mut().graceful_shutdown();
                }
                () = timer.as_mut() => {
                    if is_ending {
                        return;
                    }
                    let until = activity.may_idle_until(self.times.idle).filter(|until| *until > Instant::now());
                    if until.is_none() {
                        connection.as_mut().graceful_shutdown();
                        is_ending = true;
                    }
                    timer.as_mut().reset(until.unwrap_or_else(|| Instant::now() + LAST_ANSWER_MAX));
                }
            }
        }
    }
}

fn protocol(times: TimeLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Of the first request too, but there the connection's own timer is stricter.
        .header_read_timeout(times.idle)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(H2_HEADER_LIST_BYTES_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES);
    builder
}

/// What a connection is doing, for its idle limit. hyper has none for HTTP/2, nor for peers that connect and say
/// nothing.
#[derive(Debug, Default)]
struct Activity {
    in_flight: AtomicUsize,
    /// When the latest request was answered; `None` before the first.
    answered_at: Mutex<Option<Instant>>,
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Busy {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// When it has been idle for too long, as it looks now; `None` if there never was a request.
    fn may_idle_until(&self, idle_max: Duration) -> Option<Instant> {
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            return Some(Instant::now() + idle_max);
        }
        let answered_at = *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner);
        answered_at.map(|at| at + idle_max)
    }
}

/// A request in flight.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("mode", &self.mode).finish_non_exhaustive()
    }
}
