//! One HTTP connection: TLS if the listener has it, then HTTP/1.1 or HTTP/2 until the connection closes or idles too
//! long, or the HTTP server stops.

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
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
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::boundary::Boundary;
use crate::unsent_answers::UnsentAnswers;
use crate::watched_io::{ConnectionActivity, WatchedIo};
use crate::{Mode, TimeLimits};

/// HTTP/1.1: maximum bytes of request line and headers together; hyper also limits single reads to this.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// HTTP/1.1: maximum number of headers.
const HEADERS_MAX: usize = 100;
const H2_HEADER_LIST_BYTES_MAX: u32 = 32 << 10;
const H2_STREAMS_MAX: u32 = 100;
const H2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const H2_CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// HTTP/2: interval of keep-alive pings, and timeout for their answers.
const H2_PING: Duration = Duration::from_secs(20);
/// A connection that is shutting down may keep writing a large answer to a slow reader for this long.
const LAST_ANSWER_TIME_MAX: Duration = Duration::from_mins(10);
/// Minimum bytes that a connection that is shutting down must write within each stall limit; more than the pings of
/// HTTP/2 take.
const LAST_ANSWER_BYTES_MIN: u64 = 1 << 10;

/// Stages of stopping the HTTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// Requests in flight may finish.
    Stopping,
    /// The remaining connections are closed at once.
    CutOff,
}

/// State shared by the connections of a listener.
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
        Arc::new(Self { boundary, protocol: protocol_builder(times), tls, mode, times })
    }

    /// Serves one connection until it ends; a failed TLS handshake ends it.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, mut phase: watch::Receiver<Phase>) {
        let Ok(address) = stream.peer_addr() else { return };
        // Turns off Nagle's algorithm: small answers must not wait for acknowledgements.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return self.serve_http(stream, Peer { address: address.ip(), tls: false }, phase).await;
        };
        let handshake = timeout(self.times.tls_handshake, tls.accept(stream));
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            _ = phase.changed() => return,
        };
        match accepted {
            Ok(Ok(stream)) => self.serve_http(stream, Peer { address: address.ip(), tls: true }, phase).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve_http<S>(&self, stream: S, peer: Peer, mut phase: watch::Receiver<Phase>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Arc::new(ConnectionActivity::default());
        let unsent_answers = Arc::new(UnsentAnswers::default());
        let service = service_fn(|request: Request<Incoming>| {
            let (boundary, mode, request_guard) =
                (Arc::clone(&self.boundary), self.mode, activity.begin_request());
            let unsent_answers = Arc::clone(&unsent_answers);
            async move {
                let response = boundary.answer(mode, peer, request.map(Body::new)).await;
                drop(request_guard);
                Ok::<_, Infallible>(response.map(|body| unsent_answers.watch(body)))
            }
        });
        let stream = WatchedIo::new(stream, Arc::clone(&activity), self.times.request_head);
        let mut connection = pin!(self.protocol.serve_connection(TokioIo::new(stream), service));
        // Fires when the first request is late or the connection may have idled too long. While the connection is
        // shutting down, the timer fires for each check of `shutdown`.
        let mut timer = pin!(sleep(self.times.request_head));
        let mut shutdown: Option<ShutdownProgress> = None;
        // Set when an answer has stalled: the other answers of the connection may be sent until then.
        let mut others_deadline: Option<Instant> = None;
        let mut stall_checks = interval(self.times.body_stall);
        stall_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "connection ended");
                    }
                    return;
                }
                changed = phase.changed() => {
                    if changed.is_err() || *phase.borrow_and_update() == Phase::CutOff {
                        return;
                    }
                    connection.as_mut().graceful_shutdown();
                }
                _ = stall_checks.tick() => {
                    let stall_max = 2 * self.times.body_stall;
                    if !unsent_answers.has_stalled(stall_max) {
                        continue;
                    }
                    let deadline = *others_deadline.get_or_insert_with(|| {
                        connection.as_mut().graceful_shutdown();
                        Instant::now() + LAST_ANSWER_TIME_MAX
                    });
                    let has_others = activity.is_busy() || !unsent_answers.has_only_stalled(stall_max);
                    if !has_others || Instant::now() >= deadline {
                        tracing::info!("connection closed: the client does not read its response");
                        return;
                    }
                }
                () = timer.as_mut() => {
                    let written = activity.written_bytes();
                    if let Some(shutdown) = &mut shutdown {
                        if shutdown.is_over(written) {
                            return;
                        }
                        timer.as_mut().reset(Instant::now() + self.times.body_stall);
                        continue;
                    }
                    let idle_deadline = activity.idle_deadline(self.times.idle);
                    let idle_deadline = idle_deadline.filter(|deadline| *deadline > Instant::now());
                    if idle_deadline.is_none() {
                        connection.as_mut().graceful_shutdown();
                        let deadline = Instant::now() + LAST_ANSWER_TIME_MAX;
                        shutdown = Some(ShutdownProgress { deadline, written_bytes: written });
                    }
                    timer.as_mut().reset(idle_deadline.unwrap_or_else(|| Instant::now() + self.times.body_stall));
                }
            }
        }
    }
}

/// Progress of a connection that is shutting down.
struct ShutdownProgress {
    deadline: Instant,
    /// Bytes written until the last check.
    written_bytes: u64,
}

impl ShutdownProgress {
    /// Whether the client reads too little or the time is up; `written_bytes` is the number until now.
    fn is_over(&mut self, written_bytes: u64) -> bool {
        let is_stalled = written_bytes < self.written_bytes + LAST_ANSWER_BYTES_MIN;
        self.written_bytes = written_bytes;
        is_stalled || Instant::now() >= self.deadline
    }
}

fn protocol_builder(times: TimeLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Also applies to the first request, but there the connection's own timer is stricter.
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

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("mode", &self.mode).finish_non_exhaustive()
    }
}
