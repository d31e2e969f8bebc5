//! Keep-alive HTTP/1.1 client for many concurrent requests to one server.
//!
//! On failure it returns `Err` for a refused, broken or late answer, and never resends a request that was sent.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, body::Incoming};
use tokio::time::timeout;

use super::connect::{Connection, Origin};

const TIMEOUT_SECS: u64 = 30;

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("the connection broke before the whole answer was there: {0}")]
    Broken(hyper::Error),
    #[error("no whole answer within {0:?}")]
    Late(Duration),
}

/// HTTP client; clones share the idle connections.
#[derive(Clone)]
pub struct Client {
    origin: Origin,
    timeout: Duration,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Client {
    /// `base_url` is `http://host:port`.
    pub fn new(base_url: &str) -> Self {
        Self::of(Origin::parse(base_url, "http", None))
    }

    /// `base_url` is `https://host:port`; trusts only the authority of `ca_pem`.
    pub fn https(base_url: &str, ca_pem: &str) -> Self {
        Self::of(Origin::parse(base_url, "https", Some(ca_pem)))
    }

    fn of(origin: Origin) -> Self {
        Self { origin, timeout: Duration::from_secs(TIMEOUT_SECS), idle: Arc::default() }
    }

    /// Timeout of one request, connecting included; 30 seconds by default.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects from this address, such as another one of the loopback network.
    #[must_use]
    pub fn from_address(mut self, address: IpAddr) -> Self {
        self.origin.local = Some(address);
        // Idle connections from the previous address must not be used.
        self.idle = Arc::default();
        self
    }

    pub async fn get(&self, path: &str) -> Result<Reply, RequestError> {
        self.request(Method::GET, path, &[], Bytes::new()).await
    }

    /// `key` goes into `X-Server-API-Key`.
    pub async fn post_json(
        &self,
        path: &str,
        key: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<Reply, RequestError> {
        let mut headers = vec![(CONTENT_TYPE.as_str(), "application/json")];
        headers.extend(key.map(|key| ("x-server-api-key", key)));
        self.request(Method::POST, path, &headers, Bytes::from(body.to_string())).await
    }

    /// `headers` are added to `Host`, which they may replace, and `Content-Length`.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, RequestError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("the path is a valid request target");
        let host =
            HeaderValue::from_str(&self.origin.authority).expect("host and port are a valid header value");
        request.headers_mut().insert(HOST, host);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("the header's name is valid");
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("the header's value is valid");
            if name == HOST {
                request.headers_mut().insert(name, value);
            } else {
                request.headers_mut().append(name, value);
            }
        }
        timeout(self.timeout, self.exchange(request)).await.map_err(|_| RequestError::Late(self.timeout))?
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Reply, RequestError> {
        // The server may have closed an idle connection; hyper returns a request that it has not sent.
        while let Some(mut connection) = self.take_idle() {
            match connection.try_send_request(request).await {
                Ok(answer) => return self.read(connection, answer).await,
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(RequestError::Broken(error.into_error())),
                },
            }
        }
        let mut connection = self.origin.connect().await.map_err(RequestError::Connect)?;
        let answer = connection.send_request(request).await.map_err(RequestError::Broken)?;
        self.read(connection, answer).await
    }

    async fn read(&self, connection: Connection, answer: Response<Incoming>) -> Result<Reply, RequestError> {
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(RequestError::Broken)?.to_bytes();
        self.idle.lock().expect("no holder of the lock panics").push(connection);
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().expect("no holder of the lock panics");
        idle.retain(|connection| !connection.is_closed());
        // The answer's last byte may arrive before hyper marks the connection as free.
        let ready = idle.iter().rposition(Connection::is_ready)?;
        Some(idle.swap_remove(ready))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("authority", &self.origin.authority).finish_non_exhaustive()
    }
}

/// Complete answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// Parses the body; panics with its text if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("status {}, not JSON ({error}): {}", self.status, self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// First value of that header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
