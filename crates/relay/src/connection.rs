//! One connection: PROXY header, TLS if the listener starts with it, then the SMTP session.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use postroad_app::{App, Peer};
use postroad_smtp::HeloName;
use postroad_smtp::server::{AuthPolicy, BareLf, Extensions, ServerConfig, ServerLimits, ServerSession};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::bounce_receiver::BounceReceiver;
use crate::client::{Client, Identification};
use crate::conversation::Conversation;
use crate::maybe_tls_stream::MaybeTlsStream;
use crate::memory::Memory;
use crate::phase::Phase;
use crate::proxy_protocol::{Source, read_header};
use crate::session_deadlines::SessionDeadlines;
use crate::session_limit::SessionLimit;
use crate::session_peer::SessionPeer;
use crate::{ListenerKind, Settings, replies};

/// Maximum number of recipients of one returned mail. A bounce has one; each further one may be another copy to store.
const RETURN_RECIPIENTS_MAX: usize = 10;

/// State shared by all connections.
pub(crate) struct Connections {
    app: App,
    settings: Settings,
    memory: Arc<Memory>,
    session_limit: Arc<SessionLimit>,
    /// Submission with TLS and AUTH.
    submission: Arc<ServerConfig>,
    /// Submission without TLS and AUTH.
    plain: Arc<ServerConfig>,
    /// Bounce listener with STARTTLS.
    returns_tls: Arc<ServerConfig>,
    /// Bounce listener without a certificate, and so without STARTTLS.
    returns: Arc<ServerConfig>,
}

impl Connections {
    pub(crate) fn new(app: App, settings: &Settings, session_limit: Arc<SessionLimit>) -> Self {
        let times = settings.times;
        let memory = Memory::new(settings.in_flight_bytes_max, settings.message_bytes_max, times.memory_wait);
        let limits =
            ServerLimits { message_bytes_max: settings.message_bytes_max as u64, ..ServerLimits::default() };
        let strict = ServerConfig { limits, ..ServerConfig::new(HeloName::from(settings.hostname.clone())) };
        let plain = ServerConfig { bare_lf: BareLf::Normalised, ..strict.clone() };
        let submission = ServerConfig {
            starttls: true,
            auth: AuthPolicy::InsideTls,
            tls_required: true,
            auth_required: true,
            ..plain.clone()
        };
        let returns = ServerConfig {
            // DSN is useless here: nobody gets a report about a bounce.
            extensions: Extensions { dsn: false, ..Extensions::default() },
            limits: ServerLimits { recipients_max: RETURN_RECIPIENTS_MAX, ..limits },
            ..strict
        };
        Self {
            app,
            settings: settings.clone(),
            memory: Arc::new(memory),
            session_limit,
            submission: Arc::new(submission),
            plain: Arc::new(plain),
            returns_tls: Arc::new(ServerConfig { starttls: true, ..returns.clone() }),
            returns: Arc::new(returns),
        }
    }

    pub(crate) async fn serve(
        &self,
        kind: ListenerKind,
        mut stream: TcpStream,
        mut phase: watch::Receiver<Phase>,
    ) -> io::Result<()> {
        // Turns off Nagle's algorithm: replies are short, and the client waits for them.
        stream.set_nodelay(true)?;
        let opening = async {
            let address = self.client_address(&mut stream).await?;
            // The permit is taken before TLS, so that connections with a stalled handshake count too.
            let permit = self.session_limit.take_for(address);
            let socket = match &kind {
                ListenerKind::Tls(_) if permit.is_none() => return Err(io::ErrorKind::QuotaExceeded.into()),
                ListenerKind::Tls(config) => {
                    let tls = TlsAcceptor::from(Arc::clone(config));
                    MaybeTlsStream::encrypt(stream, &tls, self.settings.times.tls_handshake).await?
                }
                ListenerKind::StartTls(_)
                | ListenerKind::Plain
                | ListenerKind::Open
                | ListenerKind::Returns { .. } => MaybeTlsStream::Plain(stream),
            };
            io::Result::Ok((address, permit, socket))
        };
        let (address, permit, socket) = tokio::select! {
            opened = opening => opened?,
            // No message has begun, so the connection can be closed at once.
            _ = phase.changed() => return Ok(()),
        };
        let result = self.converse(&kind, address, socket, phase, permit.is_none()).await;
        drop(permit);
        result
    }

    async fn converse(
        &self,
        kind: &ListenerKind,
        address: IpAddr,
        socket: MaybeTlsStream,
        phase: watch::Receiver<Phase>,
        is_over_limit: bool,
    ) -> io::Result<()> {
        let client = |tls, identification| {
            SessionPeer::Client(Client::new(self.app.clone(), Peer { address, tls }, identification))
        };
        let plain = |identification| {
            (ServerSession::new(Arc::clone(&self.plain)), None, client(false, identification))
        };
        let (mut session, tls, peer) = match kind {
            ListenerKind::StartTls(tls) => (
                ServerSession::new(Arc::clone(&self.submission)),
                Some(tls),
                client(false, Identification::Login),
            ),
            ListenerKind::Tls(_) => (
                ServerSession::inside_tls(Arc::clone(&self.submission)),
                None,
                client(true, Identification::Login),
            ),
            ListenerKind::Plain => plain(Identification::Address),
            ListenerKind::Open => plain(Identification::None),
            ListenerKind::Returns { receiver, tls } => {
                let config = if tls.is_some() { &self.returns_tls } else { &self.returns };
                let peer = SessionPeer::BounceReceiver(BounceReceiver::new(receiver.clone(), address));
                (ServerSession::new(Arc::clone(config)), tls.as_ref(), peer)
            }
        };
        if is_over_limit {
            // Drops the banner: the refusal is sent instead.
            drop(session.take_output());
            session.close(replies::too_many_sessions());
        }
        let conversation = Conversation {
            session,
            peer,
            tls: tls.map(|config| TlsAcceptor::from(Arc::clone(config))),
            memory: Arc::clone(&self.memory),
            message_bytes_max: self.settings.message_bytes_max,
            times: self.settings.times,
            phase,
            deadlines: SessionDeadlines::new(self.settings.times),
            message: None,
        };
        conversation.run(socket).await
    }

    async fn client_address(&self, stream: &mut TcpStream) -> io::Result<IpAddr> {
        let address = stream.peer_addr()?.ip().to_canonical();
        let is_proxy = self.settings.proxy_protocol_from.iter().any(|network| network.contains(&address));
        if !is_proxy {
            return Ok(address);
        }
        match timeout(self.settings.times.proxy_header, read_header(stream)).await?? {
            Source::Client(address) => Ok(address.to_canonical()),
            Source::Proxy => Ok(address),
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("settings", &self.settings).finish_non_exhaustive()
    }
}
