//! SMTP servers on loopback for mail that must not leave the machine: the inbox and the simulator.
//!
//! An error in a session ends only its connection. A failed accept is logged and repeated after a pause.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use postroad_model::DomainName;
use postroad_smtp::server::{
    Envelope, Event, Extensions, MailFrom, RcptTo, ServerConfig, ServerLimits, ServerSession, StandardReply,
};
use postroad_smtp::{HeloName, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// More than the default message limit of 25 MiB, for headers that delivery adds.
const MESSAGE_BYTES_MAX: u64 = 32 << 20;
const CONNECTIONS_MAX: usize = 1_000;
const READ_BYTES: usize = 16 << 10;
const IDLE_MAX: Duration = Duration::from_mins(5);
const WRITE_MAX: Duration = Duration::from_mins(1);
/// A connection that gets no reply on purpose (`RcptReply::Silence`) is closed after this time.
const SILENCE_MAX: Duration = Duration::from_hours(1);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Behaviour of a local server towards its clients.
pub(crate) trait Policy: Send + Sync + 'static {
    fn rcpt(&self, mail_from: &MailFrom, rcpt: &RcptTo) -> RcptReply;
    /// Takes a complete message and returns the reply to it.
    fn take(&self, received: IncomingMessage) -> Reply;
}

/// Reply to RCPT TO.
pub(crate) enum RcptReply {
    Say(Reply),
    /// Sends no reply, and waits for the client to disconnect; for `SILENCE_MAX` at most.
    Silence,
}

pub(crate) struct IncomingMessage {
    pub(crate) helo: String,
    pub(crate) envelope: Envelope,
    /// The message without DATA's dot-stuffing.
    pub(crate) bytes: Bytes,
}

/// A running server. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct LocalSmtp {
    accept_task: JoinHandle<()>,
}

impl LocalSmtp {
    /// Starts a server on any free port of the loopback address.
    pub(crate) async fn start(name: &str, policy: Arc<dyn Policy>) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accept_task = tokio::spawn(accept_all(listener, Arc::new(config(name)), policy));
        Ok((Self { accept_task }, address))
    }
}

impl Drop for LocalSmtp {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

fn config(name: &str) -> ServerConfig {
    let host = DomainName::parse(name).expect("the local servers have valid names");
    ServerConfig {
        extensions: Extensions { dsn: false, ..Extensions::default() },
        limits: ServerLimits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            // Raw messages of customers are caught as they are, so the length of their lines is not checked.
            text_line_bytes_max: usize::MAX,
            // The client is our own delivery: it may send any number of commands.
            commands_max: u32::MAX,
            ..ServerLimits::default()
        },
        nul_refused: false,
        ..ServerConfig::new(HeloName::from(host))
    }
}

async fn accept_all(listener: TcpListener, config: Arc<ServerConfig>, policy: Arc<dyn Policy>) {
    // Dropped with this task, which closes every connection.
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&config), Arc::clone(&policy)));
                }
                Err(error) => {
                    tracing::warn!(%error, "inbox or simulator: accepting connections failed; retrying");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(mut stream: TcpStream, config: Arc<ServerConfig>, policy: Arc<dyn Policy>) {
    let mut conversation =
        Conversation { session: ServerSession::new(config), policy, mail_from: None, message: None };
    if let Err(error) = conversation.run(&mut stream).await {
        tracing::debug!(%error, "inbox or simulator: session ended by an error");
    }
}

struct Conversation {
    session: ServerSession,
    policy: Arc<dyn Policy>,
    /// Sender of the current transaction.
    mail_from: Option<MailFrom>,
    /// The current message.
    message: Option<(Envelope, Vec<u8>)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Read,
    FallSilent,
    Close,
}

impl Conversation {
    async fn run(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let next = self.handle_events();
            let output = self.session.take_output();
            timeout(WRITE_MAX, stream.write_all(&output)).await??;
            match next {
                Next::Read => {}
                Next::FallSilent => return read_until_closed(stream, &mut buffer).await,
                Next::Close => return stream.shutdown().await,
            }
            match timeout(IDLE_MAX, stream.read(&mut buffer)).await {
                Ok(Ok(0)) => return Ok(()),
                Ok(Ok(count)) => self.session.feed(&buffer[..count]),
                Ok(Err(error)) => return Err(error),
                Err(_) => self.session.close(StandardReply::Idle),
            }
        }
    }

    fn handle_events(&mut self) -> Next {
        while let Some(event) = self.session.next_event() {
            match event {
                Event::Mail(mail_from) => {
                    self.mail_from = Some(mail_from);
                    self.session.accept();
                }
                Event::Rcpt(rcpt) => match self.rcpt(&rcpt) {
                    RcptReply::Say(reply) => self.session.reply(reply),
                    RcptReply::Silence => return Next::FallSilent,
                },
                Event::Message(envelope) => self.message = Some((envelope, Vec::new())),
                Event::Data(bytes) => {
                    if let Some((_, message)) = &mut self.message {
                        message.extend_from_slice(&bytes);
                    }
                }
                Event::EndOfData => {
                    let reply = self.take_message();
                    self.session.reply(reply);
                }
                Event::Dropped(_) | Event::Abandoned => self.message = None,
                Event::Closed(_) => return Next::Close,
                // Neither is offered: the session refuses both commands itself, so these events do not occur.
                Event::StartTls | Event::Auth(_) => self.session.close(StandardReply::NotImplemented),
            }
        }
        Next::Read
    }

    fn rcpt(&self, rcpt: &RcptTo) -> RcptReply {
        match &self.mail_from {
            Some(mail_from) => self.policy.rcpt(mail_from, rcpt),
            None => RcptReply::Say(StandardReply::MailFirst.into()),
        }
    }

    fn take_message(&mut self) -> Reply {
        let Some((envelope, bytes)) = self.message.take() else { return StandardReply::MailFirst.into() };
        let helo = self.session.helo().unwrap_or_default().to_owned();
        // Drops unused capacity: the message may be kept for a long time.
        let bytes = Bytes::from(bytes.into_boxed_slice());
        self.policy.take(IncomingMessage { helo, envelope, bytes })
    }
}

/// Keeps reading until the client disconnects, so that the client does not see a reset.
async fn read_until_closed(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let reading = async {
        while stream.read(buffer).await? > 0 {}
        Ok(())
    };
    timeout(SILENCE_MAX, reading).await?
}
