//! Receiver of webhooks on the loopback: answers as the test says, and records posts with their times.
//!
//! It runs on its own thread, so that a test may block and daemons in other processes may post to it.

mod conversation;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::TestCertificate;

/// Answer to a post.
#[derive(Debug, Clone)]
pub enum CatcherAnswer {
    Status(u16),
    /// An answer with this status, these headers and this body.
    Full(u16, Vec<(String, String)>, Vec<u8>),
    /// Status 200, after a while.
    Late(Duration),
    /// Status 200, then closes the connection.
    Close,
    /// Status 200 and an endless body.
    Endless,
    /// No byte at all.
    Hang,
}

impl CatcherAnswer {
    pub fn redirect(location: &str) -> Self {
        Self::Full(302, vec![("location".to_owned(), location.to_owned())], Vec::new())
    }
}

/// One recorded post.
#[derive(Debug, Clone)]
pub struct ReceivedPost {
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl ReceivedPost {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a webhook's body is JSON")
    }
}

/// Running receiver; dropping it closes the port and all connections.
#[derive(Debug)]
pub struct WebhookCatcher {
    address: SocketAddr,
    is_tls: bool,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Answers by path; 200 for other paths.
    answers: HashMap<String, CatcherAnswer>,
    /// Answers for the next posts; used first.
    next: HashMap<String, VecDeque<CatcherAnswer>>,
    received: Vec<ReceivedPost>,
    /// Number of received posts by path.
    counts: HashMap<String, usize>,
    connections: usize,
    open: usize,
    open_max: usize,
}

impl WebhookCatcher {
    /// Starts with 200 for everything.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    pub fn start_tls(certificate: &TestCertificate) -> Self {
        Self::start_with(Some(Arc::new(certificate.server_config())))
    }

    fn start_with(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        listener.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = watch::channel(false);
        let (for_thread, is_tls) = (Arc::clone(&shared), tls.is_some());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a small runtime needs only a few file descriptors");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the runtime is running");
                conversation::serve(listener, tls, for_thread, stopped).await;
            });
        });
        Self { address, is_tls, shared, stop }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL of a path on this receiver.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.is_tls { "https" } else { "http" }, self.address)
    }

    /// Sets the answer to all posts to a path.
    pub fn answer(&self, path: &str, answer: CatcherAnswer) -> &Self {
        self.lock().answers.insert(path.to_owned(), answer);
        self
    }

    /// Sets the answers to the next posts to a path, one each.
    pub fn answer_next(&self, path: &str, answers: impl IntoIterator<Item = CatcherAnswer>) -> &Self {
        self.lock().next.entry(path.to_owned()).or_default().extend(answers);
        self
    }

    pub fn received(&self) -> Vec<ReceivedPost> {
        self.lock().received.clone()
    }

    pub fn received_at(&self, path: &str) -> Vec<ReceivedPost> {
        self.lock().posts_to(path)
    }

    /// Waits for `count` posts to a path; panics after half a minute.
    pub fn wait_for(&self, path: &str, count: usize) -> Vec<ReceivedPost> {
        self.wait_for_within(path, count, Duration::from_secs(30))
    }

    pub fn wait_for_within(&self, path: &str, count: usize, time_max: Duration) -> Vec<ReceivedPost> {
        self.wait(path, time_max, |state| state.counts.get(path).is_some_and(|have| *have >= count))
    }

    /// Waits until `is_enough` is true of the posts to a path; panics after `time_max`.
    pub fn wait_until(
        &self,
        path: &str,
        time_max: Duration,
        is_enough: impl Fn(&[ReceivedPost]) -> bool,
    ) -> Vec<ReceivedPost> {
        self.wait(path, time_max, |state| is_enough(&state.posts_to(path)))
    }

    fn wait(&self, path: &str, time_max: Duration, is_enough: impl Fn(&State) -> bool) -> Vec<ReceivedPost> {
        let deadline = Instant::now() + time_max;
        let mut state = self.lock();
        while !is_enough(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            let have = state.counts.get(path).copied().unwrap_or_default();
            assert!(!left.is_zero(), "{have} posts to {path} after {time_max:?}, not enough");
            self.shared.changed.wait_for(&mut state, left);
        }
        state.posts_to(path)
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Maximum number of connections open at the same time.
    pub fn open_connections_max(&self) -> usize {
        self.lock().open_max
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

impl State {
    fn posts_to(&self, path: &str) -> Vec<ReceivedPost> {
        self.received.iter().filter(|received| received.target == path).cloned().collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for WebhookCatcher {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
