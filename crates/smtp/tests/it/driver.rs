//! The loop described in the header of `client`, on tokio: a minimal correct driver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_smtp::{
    ClientConfig, ClientSession, Closed, EndCause, Event, Outcome, OutgoingMessage, Phase, TlsMode,
};
use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

const WRITE_BYTES_MAX: usize = 64 << 10;

/// Result of a connection.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) closed: Closed,
    /// Bytes of each write to the socket.
    pub(crate) writes: Vec<usize>,
    /// Number of `Finishing` events: at each one a real driver writes to its flight journal.
    pub(crate) journal_marks: usize,
    pub(crate) is_encrypted: bool,
    pub(crate) transcript: String,
}

pub(crate) struct Driver {
    pub(crate) address: SocketAddr,
    pub(crate) config: ClientConfig,
    /// CA to trust, and the name expected in the certificate.
    pub(crate) trust: Option<(String, &'static str)>,
    /// Phase in which the peer stays silent; the phase gets a short deadline.
    pub(crate) silent_phase: Option<Phase>,
}

impl Driver {
    pub(crate) fn new(address: SocketAddr, config: ClientConfig) -> Self {
        Self { address, config, trust: None, silent_phase: None }
    }

    /// Deadlines of seconds at most, so that tests do not wait for minutes.
    fn deadline(&self, phase: Phase) -> Duration {
        let is_silent = self.silent_phase == Some(phase);
        if is_silent { Duration::from_millis(50) } else { Duration::from_secs(20) }
    }

    pub(crate) async fn deliver(self, messages: Vec<OutgoingMessage>) -> Report {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut session = ClientSession::new(self.config.clone());
        let mut stream: Option<Box<dyn Stream>> = Some(Box::new(stream));
        if self.config.tls == TlsMode::Implicit {
            stream = self.handshake(stream).await;
        }
        let mut messages = messages.into_iter();
        let (mut outcomes, mut closed, mut writes, mut journal_marks) = (Vec::new(), None, Vec::new(), 0);
        let (mut out, mut input) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            let room = WRITE_BYTES_MAX - out.len();
            // Output first, then events: before the last bytes of a message, `fill_output` adds the event `Finishing`
            // and writes nothing more until it is taken.
            let mut made_progress = session.fill_output(&mut out, room) > 0;
            while let Some(event) = session.next_event() {
                made_progress = true;
                match event {
                    Event::StartTls => {
                        stream = self.handshake(stream.take()).await;
                        match stream {
                            Some(_) => session.tls_established(),
                            None => session.connection_ended(EndCause::TlsFailed),
                        }
                    }
                    Event::Ready => match messages.next() {
                        Some(message) => session.send(message).unwrap(),
                        None => session.quit().unwrap(),
                    },
                    Event::Finishing => journal_marks += 1,
                    Event::Outcome(outcome) => outcomes.push(outcome),
                    Event::Closed(reason) => closed = Some(reason),
                }
            }
            if made_progress {
                continue;
            }
            let Some(open) = stream.as_mut().filter(|_| closed.is_none() || !out.is_empty()) else { break };
            let deadline = self.deadline(session.phase());
            if !out.is_empty() {
                writes.push(out.len());
                let result = timeout(deadline, write(open, &out)).await;
                out.clear();
                if !matches!(result, Ok(Ok(()))) {
                    // A host that refuses in the middle of a message replies and closes.
                    while let Ok(Ok(count @ 1..)) = timeout(deadline, open.read(&mut input)).await {
                        session.feed(&input[..count]);
                    }
                    session.connection_ended(if result.is_err() { EndCause::TimedOut } else { EndCause::Io });
                    stream = None;
                }
                continue;
            }
            match timeout(deadline, open.read(&mut input)).await {
                Ok(Ok(0)) => session.connection_ended(EndCause::EndOfStream),
                Ok(Ok(count)) => session.feed(&input[..count]),
                Ok(Err(_)) => session.connection_ended(EndCause::Io),
                Err(_) => session.connection_ended(EndCause::TimedOut),
            }
        }
        Report {
            outcomes,
            closed: closed.unwrap(),
            writes,
            journal_marks,
            is_encrypted: session.is_encrypted(),
            transcript: session.take_transcript().to_string(),
        }
    }

    async fn handshake(&self, stream: Option<Box<dyn Stream>>) -> Option<Box<dyn Stream>> {
        let (ca_pem, name) = self.trust.as_ref().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let handshake = connector.connect(ServerName::try_from(*name).unwrap(), stream.unwrap());
        let stream = timeout(self.deadline(Phase::TlsHandshake), handshake).await.ok()?.ok()?;
        Some(Box::new(stream))
    }
}

async fn write(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}
