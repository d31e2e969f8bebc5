//! Socket of a session, plain or inside TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longest time to read on after the last reply, until the client closes the connection.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

pub(crate) enum MaybeTlsStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl MaybeTlsStream {
    pub(crate) async fn encrypt(
        stream: TcpStream,
        tls: &TlsAcceptor,
        time_max: Duration,
    ) -> io::Result<Self> {
        Ok(Self::Tls(Box::new(timeout(time_max, tls.accept(stream)).await??)))
    }

    /// Reads into the spare capacity of the buffer. Cancel-safe: loses no bytes.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Tls(stream) => stream.read_buf(buffer).await,
        }
    }

    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Shuts down our side and reads on briefly: closing a socket with unread bytes resets it, and the reset
    /// can discard the last reply.
    pub(crate) async fn close(mut self) {
        let closing = async {
            match &mut self {
                Self::Plain(stream) => stream.shutdown().await?,
                Self::Tls(stream) => stream.shutdown().await?,
            }
            let mut left = LINGER_BYTES_MAX;
            let mut buffer = Vec::with_capacity(1_024);
            loop {
                buffer.clear();
                match self.read(&mut buffer).await? {
                    0 => return io::Result::Ok(()),
                    count if count >= left => return Ok(()),
                    count => left -= count,
                }
            }
        };
        // Dropping the socket closes it in any case.
        drop(timeout(LINGER_TIME_MAX, closing).await);
    }
}
