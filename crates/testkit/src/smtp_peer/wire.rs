//! The peer's end of a connection: reads lines, chunks and messages, and breaks the connection at given byte counts.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// More than any test sends; stops a runaway client.
const BUFFER_BYTES_MAX: usize = 256 << 20;

pub(super) struct Wire {
    pub(super) stream: Box<dyn Stream>,
    /// Bytes read and not yet used.
    buffer: Vec<u8>,
    received_bytes: u64,
    sent_bytes: u64,
    /// Whether the limit on sent bytes is reached.
    is_sent_limit_reached: bool,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, buffer: Vec::new(), received_bytes: 0, sent_bytes: 0, is_sent_limit_reached: false }
    }

    /// Discards the bytes received before TLS, as a careful server does.
    pub(super) fn with_stream(self, stream: Box<dyn Stream>) -> Self {
        Self { stream, buffer: Vec::new(), ..self }
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Line without its line end; `None` if the client is gone.
    pub(super) async fn read_line(&mut self, limit: Option<u64>) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                if line.ends_with(b"\r") {
                    line.pop();
                }
                return Ok(Some(line));
            }
            if !self.fill(limit).await? {
                return Ok(None);
            }
        }
    }

    pub(super) async fn read_exact(&mut self, count: usize, limit: Option<u64>) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.fill(limit).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// Reads up to the final dot and removes stuffed dots (RFC 5321 4.5.2). Only CRLF ends a line.
    pub(super) async fn read_message(&mut self, limit: Option<u64>) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        let end = loop {
            if self.buffer.starts_with(b".\r\n") {
                break 0;
            }
            let from = searched.min(self.buffer.len());
            if let Some(at) = self.buffer[from..].windows(5).position(|five| five == b"\r\n.\r\n") {
                break from + at + 2;
            }
            searched = self.buffer.len().saturating_sub(4);
            if !self.fill(limit).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let wire: Vec<u8> = self.buffer.drain(..end + 3).take(end).collect();
        Ok(unstuff(&wire))
    }

    pub(super) async fn write(&mut self, bytes: &[u8], limit: Option<u64>) -> io::Result<()> {
        let left = limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.sent_bytes) as usize);
        let sent = &bytes[..bytes.len().min(left)];
        self.stream.write_all(sent).await?;
        self.stream.flush().await?;
        self.sent_bytes += sent.len() as u64;
        self.is_sent_limit_reached = sent.len() == left;
        // A reply that was sent completely is not an error, even if it reaches the limit.
        if sent.len() == bytes.len() { Ok(()) } else { self.break_off().await }
    }

    /// Closes so that the client can read the last reply: closing with unread bytes would reset the connection.
    pub(super) async fn close(&mut self) {
        if self.stream.shutdown().await.is_ok() {
            hold_open(&mut self.stream).await;
        }
    }

    async fn break_off(&mut self) -> io::Result<()> {
        self.close().await;
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Returns `false` at the end of the stream.
    async fn fill(&mut self, limit: Option<u64>) -> io::Result<bool> {
        if self.is_sent_limit_reached {
            self.break_off().await?;
        }
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.received_bytes));
        if left == 0 || self.buffer.len() > BUFFER_BYTES_MAX {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.buffer.reserve(64 << 10);
        let count = (&mut self.stream).take(left).read_buf(&mut self.buffer).await?;
        self.received_bytes += count as u64;
        if count as u64 == left {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(count > 0)
    }
}

/// Ignores all input until the client disconnects.
pub(super) async fn hold_open(stream: &mut Box<dyn Stream>) {
    let mut ignored = vec![0; 4_096];
    while let Ok(1..) = stream.read(&mut ignored).await {}
}

fn unstuff(wire: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(wire.len());
    let mut is_line_start = true;
    for (at, byte) in wire.iter().enumerate() {
        if !(is_line_start && *byte == b'.') {
            message.push(*byte);
        }
        is_line_start = *byte == b'\n' && at > 0 && wire[at - 1] == b'\r';
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn message_ends_at_the_lone_dot_only() {
        let (mut client, server) = tokio::io::duplex(3);
        let mut wire = Wire::new(Box::new(server));
        let sent = b"a\n.\nb\r\n..c\r\n.\r\n.\r\nQUIT\r\n";
        let writing = async { client.write_all(sent).await.unwrap() };
        let reading = async {
            let first = wire.read_message(None).await.unwrap();
            let second = wire.read_message(None).await.unwrap();
            (first, second, wire.read_line(None).await.unwrap())
        };
        let ((), (first, second, line)) = tokio::join!(writing, reading);
        assert_eq!(first, b"a\n.\nb\r\n.c\r\n");
        assert_eq!(second, b"");
        assert_eq!(line.unwrap(), b"QUIT");
    }

    #[tokio::test]
    async fn limits_break_the_connection_at_the_byte() {
        let (mut client, server) = tokio::io::duplex(100);
        client.write_all(b"NOOP\r\nNO").await.unwrap();
        let mut wire = Wire::new(Box::new(server));
        assert!(wire.read_line(Some(7)).await.is_err());
        let (mut client, server) = tokio::io::duplex(100);
        let mut wire = Wire::new(Box::new(server));
        let mut received = String::new();
        let reading = async {
            client.read_to_string(&mut received).await.unwrap();
            drop(client);
        };
        let (result, ()) = tokio::join!(wire.write(b"250 ok\r\n", Some(5)), reading);
        assert!(result.is_err());
        assert_eq!(received, "250 o");
    }
}
