//! Returns mail as a receiver would: about a second after the message was accepted, by SMTP to our own bounce listener,
//! so that it passes everything a real bounce passes.
//!
//! Mail that cannot be returned is tried a few more times; each failure is logged. Then it is dropped, as is mail that
//! waits when the service stops; it was only a simulation.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, EmailAddress};
use postroad_smtp::{
    Body, ClientConfig, ClientSession, EndCause, Event, HeloName, OutgoingMessage, TlsMode, Verdict,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Delay before mail is sent, and before each further try.
const SEND_DELAY: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 3;
const WAITING_MAX: usize = 10_000;
const CONNECTIONS_MAX: usize = 8;
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
const WRITE_BYTES: usize = 16 << 10;

/// Queue of mail to return.
#[derive(Debug, Clone)]
pub(super) struct ReturnQueue {
    queue: mpsc::Sender<(Instant, OutgoingMessage)>,
}

impl ReturnQueue {
    /// Runs until the queue is dropped. Mail that is due before `bounce_listener` is known is dropped.
    pub(super) fn start(name: DomainName, bounce_listener: watch::Receiver<Option<SocketAddr>>) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run_queue(waiting, name, bounce_listener));
        Self { queue }
    }

    pub(super) fn submit(&self, return_path: EmailAddress, text: String) {
        let message = match Body::parse(vec![text.into()]) {
            // Returned mail has the null reverse-path (RFC 5321 4.5.5).
            Ok(body) => {
                OutgoingMessage { mail_from: None, rcpt_to: return_path, body, has_utf8_header: false }
            }
            Err(error) => {
                return tracing::error!(%error, "simulator: bounce or complaint cannot be sent; dropped");
            }
        };
        if self.queue.try_send((Instant::now() + SEND_DELAY, message)).is_err() {
            tracing::warn!("simulator: queue of bounces and complaints is full; one dropped");
        }
    }
}

/// Sends queued mail when it is due. All entries wait equally long, so the first in is the first due.
async fn run_queue(
    mut waiting: mpsc::Receiver<(Instant, OutgoingMessage)>,
    name: DomainName,
    bounce_listener: watch::Receiver<Option<SocketAddr>>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, which closes every connection.
    let mut sends = JoinSet::new();
    while let Some((due, message)) = waiting.recv().await {
        sleep_until(due).await;
        let listener = *bounce_listener.borrow();
        let Some(listener) = listener else { continue };
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        while sends.try_join_next().is_some() {}
        let name = name.clone();
        sends.spawn(async move {
            send_with_retries(loopback_if_unspecified(listener), &name, &message).await;
            drop(permit);
        });
    }
}

async fn send_with_retries(to: SocketAddr, name: &DomainName, message: &OutgoingMessage) {
    for number in 1..=TRIES_MAX {
        match timeout(EXCHANGE_TIMEOUT, exchange(to, name, message.clone())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::warn!(%error, number, "simulator: sending a bounce or complaint failed");
            }
            Err(_) => tracing::warn!(number, "simulator: sending a bounce or complaint timed out"),
        }
        sleep(SEND_DELAY).await;
    }
}

/// One message over one connection.
async fn exchange(to: SocketAddr, name: &DomainName, message: OutgoingMessage) -> io::Result<()> {
    let mut stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    // Returned mail does not leave the machine.
    let config = ClientConfig { tls: TlsMode::Never, ..ClientConfig::new(HeloName::from(name.clone())) };
    let mut session = ClientSession::new(config);
    let mut message = Some(message);
    let mut result = Err(io::Error::other("the conversation ended early"));
    let (mut output, mut input) = (Vec::new(), vec![0; 4 << 10]);
    loop {
        let mut made_progress = session.fill_output(&mut output, WRITE_BYTES) > 0;
        while let Some(event) = session.next_event() {
            made_progress = true;
            match event {
                Event::Ready => match message.take() {
                    Some(message) => session.send(message).map_err(io::Error::other)?,
                    None => session.quit().map_err(io::Error::other)?,
                },
                Event::Outcome(outcome) => {
                    result = match outcome.verdict {
                        Verdict::Accepted(_) => Ok(()),
                        other => Err(io::Error::other(format!("{other:?}"))),
                    };
                }
                Event::Closed(_) => return result,
                Event::StartTls | Event::Finishing => {}
            }
        }
        if !output.is_empty() {
            stream.write_all(&output).await?;
            output.clear();
        } else if !made_progress {
            match stream.read(&mut input).await? {
                0 => session.connection_ended(EndCause::EndOfStream),
                count => session.feed(&input[..count]),
            }
        }
    }
}

/// A listener on all addresses is reached on loopback.
pub(super) fn loopback_if_unspecified(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_the_loopback() {
        let reached = |text: &str| loopback_if_unspecified(text.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:25"), "127.0.0.1:25");
        assert_eq!(reached("[::]:25"), "[::1]:25");
        assert_eq!(reached("192.0.2.1:25"), "192.0.2.1:25");
    }
}
