//! Small HTTPS server on the loopback for files that the service fetches; the test sets its answers.
//!
//! It runs on its own thread, so that a test may block and daemons in other processes may connect.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard};
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::TestCertificate;

/// Answer for one host and path.
#[derive(Debug, Clone)]
pub enum HttpsAnswer {
    Full {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// Status 200 and an endless body.
    Endless,
    /// No byte at all.
    Silent,
}

impl HttpsAnswer {
    pub fn text(body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
        Self::Full { status: 200, headers, body: body.as_bytes().to_vec() }
    }

    pub fn status(status: u16) -> Self {
        Self::Full { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn redirect(location: &str) -> Self {
        let headers = vec![("location".to_owned(), location.to_owned())];
        Self::Full { status: 302, headers, body: Vec::new() }
    }
}

/// Running server; dropping it closes the port and all connections.
#[derive(Debug)]
pub struct HttpsServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct Shared {
    tls: Arc<ServerConfig>,
    answers: HashMap<String, HttpsAnswer>,
    requests: HashMap<String, usize>,
    connections: usize,
}

impl HttpsServer {
    /// Starts with 404 for everything.
    pub fn start(certificate: &TestCertificate) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        listener.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Mutex::new(Shared {
            tls: Arc::new(certificate.server_config()),
            answers: HashMap::new(),
            requests: HashMap::new(),
            connections: 0,
        }));
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

    /// `url` is host and path without scheme and port: `mta-sts.example.com/.well-known/mta-sts.txt`.
    pub fn answer(&self, url: &str, answer: HttpsAnswer) -> &Self {
        lock(&self.shared).answers.insert(url.to_owned(), answer);
        self
    }

    /// Applies from the next connection on.
    pub fn set_certificate(&self, certificate: &TestCertificate) -> &Self {
        lock(&self.shared).tls = Arc::new(certificate.server_config());
        self
    }

    /// Number of requests for this URL so far.
    pub fn requests(&self, url: &str) -> usize {
        lock(&self.shared).requests.get(url).copied().unwrap_or_default()
    }

    /// Number of connections so far, including those without a handshake.
    pub fn connections(&self) -> usize {
        lock(&self.shared).connections
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock()
}

async fn serve(listener: TcpListener, shared: Arc<Mutex<Shared>>, mut stopped: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Returning ends the runtime with all its connections.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        if let Ok((stream, _)) = accepted {
            let shared = Arc::clone(&shared);
            // A client that disconnects is not an error: many tests do that.
            tokio::spawn(async move { drop(converse(stream, &shared).await) });
        }
    }
}

/// One request per connection.
async fn converse(stream: TcpStream, shared: &Mutex<Shared>) -> io::Result<()> {
    let tls = {
        let mut shared = lock(shared);
        shared.connections += 1;
        Arc::clone(&shared.tls)
    };
    let mut stream = TlsAcceptor::from(tls).accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let url = url_of(&String::from_utf8_lossy(&head));
    let answer = {
        let mut shared = lock(shared);
        *shared.requests.entry(url.clone()).or_default() += 1;
        shared.answers.get(&url).cloned().unwrap_or_else(|| HttpsAnswer::status(404))
    };
    match answer {
        HttpsAnswer::Full { status, headers, body } => {
            let headers: String =
                headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} -\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(&[head.as_bytes(), &body].concat()).await?;
            stream.shutdown().await
        }
        HttpsAnswer::Endless => {
            stream.write_all(b"HTTP/1.1 200 -\r\nconnection: close\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 4_096]).await?;
            }
        }
        HttpsAnswer::Silent => {
            // Ignores all input until the client disconnects.
            while stream.read(&mut [0; 64]).await? > 0 {}
            Ok(())
        }
    }
}

/// Host without port, and path.
fn url_of(head: &str) -> String {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let host = headers.find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or("", |(_, value)| value);
    format!("{}{path}", host.trim().split(':').next().unwrap_or_default())
}
