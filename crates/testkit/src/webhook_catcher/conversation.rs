//! HTTP/1.1 side of the receiver: requests one after the other on a connection, until an answer ends it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::{CatcherAnswer, ReceivedPost, Shared};

pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Returning ends the runtime with all its connections.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        if let Ok((stream, _)) = accepted {
            let (shared, tls) = (Arc::clone(&shared), tls.clone());
            tokio::spawn(async move {
                shared.count_opened();
                // A client that disconnects is not an error: many tests do that.
                drop(accept_connection(stream, tls, &shared).await);
                shared.lock().open -= 1;
            });
        }
    }
}

impl Shared {
    fn count_opened(&self) {
        let mut state = self.lock();
        state.connections += 1;
        state.open += 1;
        state.open_max = state.open_max.max(state.open);
    }

    /// Records the post and returns its answer.
    fn record_post(&self, received: ReceivedPost) -> CatcherAnswer {
        let mut state = self.lock();
        let path = received.target.clone();
        state.received.push(received);
        *state.counts.entry(path.clone()).or_default() += 1;
        self.changed.notify_all();
        let next = state.next.get_mut(&path).and_then(std::collections::VecDeque::pop_front);
        next.or_else(|| state.answers.get(&path).cloned()).unwrap_or(CatcherAnswer::Status(200))
    }
}

async fn accept_connection(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    shared: &Shared,
) -> io::Result<()> {
    match tls {
        Some(tls) => converse(TlsAcceptor::from(tls).accept(stream).await?, shared).await,
        None => converse(stream, shared).await,
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, shared: &Shared) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(received) = read_request(&mut stream, &mut buffer).await? {
        let (status, headers, body, closes) = match shared.record_post(received) {
            CatcherAnswer::Status(status) => (status, Vec::new(), Vec::new(), false),
            CatcherAnswer::Full(status, headers, body) => (status, headers, body, false),
            CatcherAnswer::Late(pause) => {
                tokio::time::sleep(pause).await;
                (200, Vec::new(), Vec::new(), false)
            }
            CatcherAnswer::Close => (200, Vec::new(), Vec::new(), true),
            CatcherAnswer::Endless => return write_endlessly(stream).await,
            CatcherAnswer::Hang => {
                // Ignores all input until the client disconnects.
                while stream.read(&mut [0; 64]).await? > 0 {}
                return Ok(());
            }
        };
        let headers: String = headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        let connection = if closes { "connection: close\r\n" } else { "" };
        let head =
            format!("HTTP/1.1 {status} -\r\n{headers}{connection}content-length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        if closes {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

async fn write_endlessly<S: AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 -\r\ncontent-length: 1073741824\r\n\r\n").await?;
    loop {
        stream.write_all(&[b'x'; 4_096]).await?;
    }
}

/// `None` if the client has disconnected.
async fn read_request<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<ReceivedPost>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end);
    let mut lines = head.lines();
    let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer.drain(..length).collect();
    Ok(Some(ReceivedPost { target, headers, body, at: Instant::now() }))
}
