//! Raw bytes on a socket, for requests that no well-behaved client would send.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends `bytes` and returns the first complete answer, or everything until the server closed the connection.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    exchange(address, bytes, is_whole_answer).await
}

/// Sends `bytes` and returns everything until the server closes the connection; for pipelined requests.
pub async fn raw_to_end(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    exchange(address, bytes, |_| false).await
}

async fn exchange(address: SocketAddr, bytes: &[u8], is_done: fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let talk = async {
        let mut stream = TcpStream::connect(address).await?;
        let (mut from, mut to) = stream.split();
        // A server may answer and close before it has read everything; then its answer counts, not our error.
        let (_sent, read) = tokio::join!(to.write_all(bytes), async {
            while !is_done(&answer) && from.read_buf(&mut answer).await? > 0 {}
            Ok(())
        });
        match read {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(()),
        }
    };
    match timeout(TIMEOUT, talk).await {
        Ok(result) => result.map(|()| answer),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the server is silent after {TIMEOUT:?}; so far: {}", String::from_utf8_lossy(&answer)),
        )),
    }
}

/// Whether the answer is complete. Understands `Content-Length`, chunked bodies without trailers, and leading 100
/// Continue.
fn is_whole_answer(answer: &[u8]) -> bool {
    let Some(head_end) = answer.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4) else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..head_end]).to_ascii_lowercase();
    let body = &answer[head_end..];
    if head.split(' ').nth(1).is_some_and(|status| status.starts_with('1')) {
        return is_whole_answer(body);
    }
    let field = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| *key == name)
            .map(|(_, v)| v.trim())
    };
    match field("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None if field("transfer-encoding") == Some("chunked") => body.ends_with(b"0\r\n\r\n"),
        // Without a length the body ends with the connection; answers with 204 and 304 have no body.
        None => head.contains(" 204 ") || head.contains(" 304 "),
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole_answer;

    #[test]
    fn whole_answers_are_recognised() {
        let cases: [(&str, bool); 7] = [
            ("HTTP/1.1 200 OK\r\ncontent-len", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true),
            ("HTTP/1.1 100 Continue\r\n\r\n", false),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
        ];
        for (answer, expected) in cases {
            assert_eq!(is_whole_answer(answer.as_bytes()), expected, "{answer}");
        }
    }
}
