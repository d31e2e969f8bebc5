//! Outermost layer of the HTTP API. Every request gets an id; every answer gets its headers and one log line. A panic
//! becomes an ordinary error answer, except in the Cargo profile `quick`, where a panic ends the process.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HOST, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, Uri, Version};
use axum::response::Response;
use futures_util::FutureExt;
use ipnet::IpNet;
use postroad_app::Peer;
use postroad_net::limits::PerAddressLimit;
use tower::ServiceExt;

use crate::dev::DevAccess;
use crate::failure::Reason;
use crate::request_id::X_REQUEST_ID;
use crate::request_info::{LogFields, RequestInfo};
use crate::{Mode, drain, envelope, host, peer, permit_body, redirect};

/// Maximum number of characters of a path that are logged.
const LOGGED_PATH_CHARS_MAX: usize = 200;

#[derive(Debug, Clone)]
pub(crate) struct Boundary {
    pub(crate) router: Router,
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Limit on requests in flight per client address.
    pub(crate) per_address: Arc<PerAddressLimit>,
    /// Router for host names that serve something other than the API.
    pub(crate) virtual_host: Option<VirtualHost>,
    /// Access rules of `postroad dev`; `None` in `serve`.
    pub(crate) dev_access: Option<Arc<DevAccess>>,
}

/// Router that is served instead of the API under some host names.
#[derive(Clone)]
pub(crate) struct VirtualHost {
    pub(crate) is_host: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    pub(crate) router: Router,
}

impl fmt::Debug for VirtualHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualHost").field("router", &self.router).finish_non_exhaustive()
    }
}

impl Boundary {
    /// Answers one request that arrived on a connection from `socket_peer`: the client, or a proxy.
    pub(crate) async fn answer(&self, mode: Mode, socket_peer: Peer, request: Request<Body>) -> Response {
        let headers = request.headers();
        let peer = peer::resolve(socket_peer, headers, &self.trusted_proxies);
        let info = RequestInfo::new(headers, peer);
        let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
        let (mut request, body_read_state) = drain::watch(request);
        request.extensions_mut().insert(info.clone());
        request.extensions_mut().insert(peer);

        // A trusted proxy that sends no client address may speak for many clients, so it has no limit.
        let is_proxy = self.trusted_proxies.iter().any(|network| network.contains(&peer.address));
        let permit = (!is_proxy).then(|| self.per_address.acquire(peer.address));
        let is_refused = matches!(permit, Some(None));
        let answering = async {
            if is_refused {
                let cause = "too many requests from one address are in progress".to_owned();
                return envelope::failure_response(&info, &Reason::Unavailable(cause).into());
            }
            self.route(mode, peer, request).await
        };
        let answer = AssertUnwindSafe(answering).catch_unwind().await;
        // The panic message may quote addresses and content, so it is not logged here; the process's panic hook
        // logs the source location.
        let mut response = answer.unwrap_or_else(|_| {
            envelope::failure_response(&info, &Reason::Internal("a panic".into()).into())
        });

        let headers = response.headers_mut();
        let id = HeaderValue::from_str(&info.id).expect("a request id is visible ASCII");
        headers.insert(X_REQUEST_ID, id);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if body_read_state.must_close_connection() && version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let fields = response.extensions_mut().remove::<LogFields>();
        let caller = fields.and_then(|fields| fields.caller).unwrap_or_default();
        tracing::info!(
            request.id = %info.id,
            request.own_id = %info.own_id,
            %method,
            path = logged_path(uri.path()),
            status = response.status().as_u16(),
            code = fields.map(|fields| fields.code),
            server.id = caller.server.map(|id| id.0),
            credential.id = caller.credential.map(|id| id.0),
            account.id = caller.account.map(|id| id.0),
            account_key.id = caller.account_key.map(|id| id.0),
            duration_ms = info.elapsed().as_secs_f64() * 1e3,
            "request"
        );
        match permit.flatten() {
            // The permit is held until the answer is sent.
            Some(permit) => response.map(|body| permit_body::attach(body, permit)),
            None => response,
        }
    }

    async fn route(&self, mode: Mode, peer: Peer, mut request: Request<Body>) -> Response {
        // RFC 9112 section 3.2. With several Host headers, a proxy in front may have used another one than we would.
        if request.headers().get_all(HOST).iter().nth(1).is_some() {
            return bad_request(&request, "The request has more than one Host header");
        }
        if let Some(access) = &self.dev_access {
            if let Some(refusal) = access.refuse(&request) {
                return refusal;
            }
            request.extensions_mut().insert(Arc::clone(access));
        }
        remove_trailing_slashes(request.uri_mut());
        match mode {
            // No redirect if the client used TLS up to a trusted proxy: the redirect would loop.
            Mode::RedirectToHttps { port } if !peer.tls => redirect::answer(&request, port),
            Mode::RedirectToHttps { .. } | Mode::Serve => {
                let host = host::of(&request);
                let virtual_host =
                    self.virtual_host.as_ref().filter(|one| host.is_some_and(|host| (one.is_host)(host)));
                let router = virtual_host.map_or(&self.router, |virtual_host| &virtual_host.router);
                router.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
            }
        }
    }
}

fn bad_request(request: &Request<Body>, message: &'static str) -> Response {
    let info = request.extensions().get::<RequestInfo>().expect("it was put there before");
    envelope::failure_response(info, &Reason::BadRequest(message).into())
}

/// Removes slashes at the end of a path under `/api/`: some clients add one to the path of an endpoint.
fn remove_trailing_slashes(uri: &mut Uri) {
    let path = uri.path();
    if !path.starts_with("/api/") || !path.ends_with('/') {
        return;
    }
    let path = path.trim_end_matches('/');
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse().ok();
    // A part of a valid URI is valid.
    if let Ok(shorter) = Uri::from_parts(parts) {
        *uri = shorter;
    }
}

/// Prefixes of paths that end in a token. The token is enough to fake a click or an open, to unsubscribe a recipient, to
/// read the records of a domain, or to fill a request inspector.
const TOKEN_PATH_PREFIXES: [&str; 5] = ["/c/", "/o/", "/u/", "/dns/", "/inspect/"];

/// Path for the log: without its token, and cut to `LOGGED_PATH_CHARS_MAX`. Queries, which have the tokens of
/// invitations and resets, are not logged at all.
fn logged_path(path: &str) -> &str {
    if let Some(prefix) = TOKEN_PATH_PREFIXES.into_iter().find(|prefix| path.starts_with(prefix)) {
        return prefix;
    }
    let end = path.char_indices().nth(LOGGED_PATH_CHARS_MAX).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use axum::routing::any;
    use http_body_util::BodyExt;

    use super::*;
    use crate::blocking_pool;

    async fn explode() -> Response {
        blocking_pool::run_on_blocking_thread(|| panic!("the cause")).await.expect("it panics")
    }

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_and_logged_without_its_text() {
        let log = LogBuffer::default();
        // With one dispatcher, the first thread that reaches a log line decides for all threads whether that line is
        // enabled, and threads of other tests have no subscriber. With two dispatchers, tracing asks both.
        let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        let _guard = tracing::subscriber::set_default(subscriber.finish());
        let boundary = Boundary {
            router: Router::new().route("/api/v1/boom", any(explode)),
            trusted_proxies: vec![],
            per_address: PerAddressLimit::new(10),
            virtual_host: None,
            dev_access: None,
        };
        let socket_peer = Peer { address: [127, 0, 0, 1].into(), tls: false };
        let request = Request::builder().uri("/api/v1/boom").header(X_REQUEST_ID, "abc").body(Body::empty());
        let response = boundary.answer(Mode::Serve, socket_peer, request.unwrap()).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[X_REQUEST_ID], "abc");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let envelope: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(envelope["data"]["code"], "InternalError");
        assert_eq!(envelope["data"]["request_id"], "abc");
        assert!(!String::from_utf8_lossy(&body).contains("the cause"));
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("internal error") && log.contains("a panic"), "{log}");
        assert!(log.contains("request.id=abc") && log.contains("request.own_id="), "{log}");
        assert!(!log.contains("the cause"), "{log}");
    }

    #[test]
    fn trailing_slashes_of_an_endpoint_are_removed() {
        for (requested, expected) in [
            ("/api/v1/send/message/", "/api/v1/send/message"),
            ("/api/v1/send/message//?a=/", "/api/v1/send/message?a=/"),
            ("/api/v1/send/message", "/api/v1/send/message"),
            ("/api/", "/api"),
            ("/u/token/", "/u/token/"),
            ("/", "/"),
        ] {
            let mut uri: Uri = requested.parse().unwrap();
            remove_trailing_slashes(&mut uri);
            assert_eq!(uri, expected);
        }
    }

    #[test]
    fn logged_paths_are_cut_and_hide_tokens() {
        assert_eq!(logged_path("/api"), "/api");
        for prefix in TOKEN_PATH_PREFIXES {
            assert_eq!(logged_path(&format!("{prefix}secret")), prefix);
        }
        assert_eq!(logged_path("/dns/secret/zone"), "/dns/");
        assert_eq!(logged_path(&"x".repeat(300)).len(), 200);
    }
}
