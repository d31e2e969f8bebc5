//! A client that says what a test tells it to, line by line, and hands back the server's words.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

const REPLY_TIME_MAX: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct SmtpClient {
    stream: BufReader<TcpStream>,
}

impl SmtpClient {
    /// Behind the banner and EHLO.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("the socket is fresh");
        let mut client = Self { stream: BufReader::new(stream) };
        let banner = client.reply().await;
        assert!(banner.starts_with("220 "), "{banner}");
        let greeting = client.say("EHLO client.example").await;
        assert!(greeting.starts_with("250-"), "{greeting}");
        client
    }

    /// A line, and the reply to it.
    pub async fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Any bytes.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// The next reply, its lines joined by `\n`; empty when the server has closed.
    pub async fn reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            let reading = self.stream.read_line(&mut line);
            let count = timeout(REPLY_TIME_MAX, reading).await.expect("the server answers in time");
            reply.push_str(line.trim_end());
            let is_last = line.as_bytes().get(3) != Some(&b'-');
            if count.expect("the server does not reset the connection") == 0 || is_last {
                return reply;
            }
            reply.push('\n');
        }
    }

    /// One whole message by DATA; the reply that decided. `text` is dot-stuffed here.
    pub async fn deliver(&mut self, from: &str, to: &[&str], text: &str) -> String {
        let mut lines = vec![format!("MAIL FROM:<{from}> SMTPUTF8")];
        lines.extend(to.iter().map(|to| format!("RCPT TO:<{to}>")));
        for line in lines {
            let reply = self.say(&line).await;
            if !reply.starts_with('2') {
                // A server that has said 421 hears nothing more.
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
}
