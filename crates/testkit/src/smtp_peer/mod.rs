//! Scripted SMTP server on the loopback: answers and breaks as the test says, and records everything.
//!
//! It runs on its own thread, so that a test may block (for example while starting a daemon) while mail flows.

mod answer;
mod conversation;
mod envelope;
mod limited;
mod record;
mod script;
mod tls;
mod transaction;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use answer::{Answer, RuleContext, Stage};
pub use record::{ConnectionRecord, ReceivedMessage, Record, Transfer};
pub use script::Script;
pub use tls::PeerTls;

use crate::hidden_receiver::HiddenReceiver;
use conversation::Conversation;

const WAIT_SECS: u64 = 30;

/// Running server; dropping it closes the port and all connections.
#[derive(Debug)]
pub struct SmtpPeer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Arc<Script>>,
    record: Mutex<Record>,
    changes: watch::Sender<u64>,
}

impl Shared {
    fn script(&self) -> Arc<Script> {
        Arc::clone(&self.script.lock())
    }

    /// Changes the record and wakes all waiters.
    fn change_record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let result = change(&mut self.record.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    /// Records that a connection has ended: it no longer counts against the limits.
    fn record_closed(&self, connection: u32) {
        if let Some(limited) = &self.script().limited {
            limited.disconnect(connection);
        }
        self.change_record(|record| record.close(connection));
    }
}

impl SmtpPeer {
    pub fn start(script: Script) -> Self {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
    }

    /// Starts at this loopback address: all mail hosts have the same port, so several peers need several addresses.
    pub fn start_at(address: SocketAddr, script: Script) -> Self {
        let listener = std::net::TcpListener::bind(address)
            .unwrap_or_else(|error| panic!("{address} is not free on the loopback: {error}"));
        listener.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Arc::new(script)),
            record: Mutex::default(),
            changes: watch::channel(0).0,
        });
        let (stop, stopped) = watch::channel(false);
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a small runtime needs only a few file descriptors");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the runtime is running");
                serve(listener, for_thread, stopped).await;
            });
        });
        Self { address, shared, stop }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Applies from the next command on, also on open connections. Extensions are announced at the next EHLO.
    pub fn set_script(&self, script: Script) {
        *self.shared.script.lock() = Arc::new(script);
    }

    /// Reads the record without copying it.
    pub fn look<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(&self.shared.record.lock())
    }

    /// Complete messages in order, including those refused or never answered.
    pub fn messages(&self) -> Vec<ReceivedMessage> {
        self.look(|record| record.messages.clone())
    }

    pub fn connections(&self) -> Vec<ConnectionRecord> {
        self.look(|record| record.connections.clone())
    }

    /// Maximum number of connections open at the same time.
    pub fn open_connections_max(&self) -> usize {
        self.look(|record| record.open_max)
    }

    /// Reads the state of the receiver with limits; `None` without limits.
    pub fn look_at_receiver<T>(&self, read: impl FnOnce(&HiddenReceiver) -> T) -> Option<T> {
        self.shared.script().limited.as_ref().map(|limited| limited.inspect(read))
    }

    /// Waits for a condition; panics after 30 seconds.
    pub async fn wait_until(&self, is_true: impl Fn(&Record) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        let waiting = async {
            while !self.look(&is_true) {
                changes.changed().await.expect("the sender lives as long as the peer");
            }
        };
        let result = tokio::time::timeout(Duration::from_secs(WAIT_SECS), waiting).await;
        let seen = self.look(|record| (record.messages.len(), record.connections.len()));
        assert!(result.is_ok(), "not within {WAIT_SECS} s; (messages, connections) are {seen:?}");
    }
}

impl Drop for SmtpPeer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Returning ends the runtime with all its connections.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        if let Ok((stream, client)) = accepted {
            tokio::spawn(converse(stream, client, Arc::clone(&shared)));
        }
    }
}

async fn converse(stream: TcpStream, client: SocketAddr, shared: Arc<Shared>) {
    // Without `nodelay`, a reply could wait for the acknowledgement of the previous one (Nagle).
    drop(stream.set_nodelay(true));
    // First let the end of the client's previous connection be recorded, so that both do not count as open at once.
    tokio::task::yield_now().await;
    let number = shared.change_record(|record| record.open(client));
    // A broken connection is not an error: many tests do that. The record shows how far it came.
    drop(Conversation::new(stream, client.ip(), number, Arc::clone(&shared)).run().await);
    shared.record_closed(number);
}
