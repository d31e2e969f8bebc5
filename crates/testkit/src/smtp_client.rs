//! SMTP client that sends exactly what a test says, line by line, and returns the replies.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::any_certificate::AnyCertificate;

const REPLY_TIME_MAX: Duration = Duration::from_secs(20);

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

pub struct SmtpClient {
    stream: BufReader<Box<dyn Stream>>,
    reply_time_max: Duration,
}

impl SmtpClient {
    /// Connects and sends EHLO.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut client = Self::dial(address).await;
        client.greet().await;
        client
    }

    /// Connects without reading the banner.
    pub async fn dial(address: SocketAddr) -> Self {
        Self::over(open(address).await)
    }

    /// Connects and first sends these bytes, such as a PROXY header.
    pub async fn dial_with(address: SocketAddr, first: &[u8]) -> Self {
        let mut client = Self::dial(address).await;
        client.send(first).await;
        client
    }

    /// Longest wait for a line of a reply; 20 seconds by default.
    #[must_use]
    pub fn with_reply_time_max(mut self, reply_time_max: Duration) -> Self {
        self.reply_time_max = reply_time_max;
        self
    }

    /// Connects with TLS from the first byte, accepts any certificate, and sends EHLO.
    pub async fn connect_tls(address: SocketAddr) -> Self {
        let mut client = Self::over(encrypt(open(address).await).await.expect("the server speaks TLS"));
        client.greet().await;
        client
    }

    /// Connects with STARTTLS, accepts any certificate, and sends the second EHLO.
    pub async fn connect_starttls(address: SocketAddr) -> Self {
        let mut client = Self::connect(address).await;
        let reply = client.say("STARTTLS").await;
        assert!(reply.starts_with("220 "), "{reply}");
        let mut client = client.tls_handshake().await.expect("the server speaks TLS");
        let greeting = client.say("EHLO client.example").await;
        assert!(greeting.starts_with("250-"), "{greeting}");
        client
    }

    /// Starts TLS on the same socket. Panics if unread bytes are left.
    pub async fn tls_handshake(self) -> io::Result<Self> {
        assert!(self.stream.buffer().is_empty(), "{:?}", String::from_utf8_lossy(self.stream.buffer()));
        let encrypted = Self::over(encrypt(self.stream.into_inner()).await?);
        Ok(encrypted.with_reply_time_max(self.reply_time_max))
    }

    /// Sends a line and returns the reply.
    pub async fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Sends any bytes.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
        self.stream.flush().await.expect("the server reads");
    }

    /// Next reply, its lines joined by `\n`; empty if the server has closed.
    pub async fn reply(&mut self) -> String {
        self.reply_within(self.reply_time_max).await
    }

    pub async fn reply_within(&mut self, time_max: Duration) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            let reading = self.stream.read_line(&mut line);
            let read = timeout(time_max, reading).await.expect("the server answers in time");
            // A TLS stream cut without close_notify counts as closed.
            let count = match read {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                read => read.expect("the server does not reset the connection"),
            };
            reply.push_str(line.trim_end());
            let is_last = line.as_bytes().get(3) != Some(&b'-');
            if count == 0 || is_last {
                return reply;
            }
            reply.push('\n');
        }
    }

    /// Sends one message by DATA and returns the deciding reply. Dot-stuffs `text`.
    pub async fn deliver(&mut self, from: &str, to: &[&str], text: &str) -> String {
        let mut lines = vec![format!("MAIL FROM:<{from}> SMTPUTF8")];
        lines.extend(to.iter().map(|to| format!("RCPT TO:<{to}>")));
        for line in lines {
            let reply = self.say(&line).await;
            if !reply.starts_with('2') {
                // After a 421 nothing more is sent.
                if !reply.starts_with("421 ") {
                    self.say("RSET").await;
                }
                return reply;
            }
        }
        let reply = self.say("DATA").await;
        assert!(reply.starts_with("354 "), "{reply}");
        let stuffed = text.replace("\r\n.", "\r\n..");
        let dot = if stuffed.starts_with('.') { "." } else { "" };
        self.send(format!("{dot}{stuffed}\r\n.\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Reads the banner and sends EHLO.
    pub async fn greet(&mut self) {
        let banner = self.reply().await;
        assert!(banner.starts_with("220 "), "{banner}");
        let greeting = self.say("EHLO client.example").await;
        assert!(greeting.starts_with("250-"), "{greeting}");
    }

    fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream: BufReader::new(stream), reply_time_max: REPLY_TIME_MAX }
    }
}

async fn open(address: SocketAddr) -> Box<dyn Stream> {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    stream.set_nodelay(true).expect("the socket is fresh");
    Box::new(stream)
}

async fn encrypt(stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
    let connector = TlsConnector::from(Arc::new(AnyCertificate::client_config()));
    let name = "localhost".try_into().expect("a valid name");
    Ok(Box::new(connector.connect(name, stream).await?))
}

impl fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpClient").finish_non_exhaustive()
    }
}
