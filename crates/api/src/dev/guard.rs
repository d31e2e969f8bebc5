//! Access check of `postroad dev`, whose inbox has no key. The Host must be a name that nobody else can point at this
//! machine: otherwise a web page could read the inbox by DNS rebinding. Requests from another site's page are refused
//! (CSRF): the page cannot read the answer, but the request would take effect.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use postroad_app::Peer;

use super::problem::Problem;
use crate::host;

/// Tracking links are for everybody who has one, under any host name; their tokens are signed.
const PUBLIC_PATHS: [&str; 3] = ["/c/", "/o/", "/u/"];

/// Callers that `postroad dev` serves, and host names by which it is reached. By default it serves only callers on this
/// machine.
#[derive(Debug, Clone, Default)]
pub struct DevAccess {
    /// Whether callers on other machines are served; URLs may then have any IP address as host.
    pub is_open: bool,
    /// Host names by which `postroad dev` is reached, besides `localhost`.
    pub hosts: Vec<String>,
}

impl DevAccess {
    /// Checks a request to `postroad dev`; returns the answer if it is refused.
    pub(crate) fn refuse<B>(&self, request: &axum::http::Request<B>) -> Option<Response> {
        let path = request.uri().path();
        // Only browsers can be misused by other sites, and browsers always send a Host. Requests without a Host are
        // checked only by `admit`.
        let has_host = request.uri().authority().is_some() || request.headers().contains_key(HOST);
        if !has_host || PUBLIC_PATHS.iter().any(|public| path.starts_with(public)) {
            return None;
        }
        self.check(request).err().map(IntoResponse::into_response)
    }

    fn check<B>(&self, request: &axum::http::Request<B>) -> Result<(), Problem> {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address);
        if !self.is_open && !peer.is_some_and(|address| address.to_canonical().is_loopback()) {
            return Err(Problem::NotLocal);
        }
        if !host::of(request).is_some_and(|host| self.is_own_host(host)) {
            return Err(Problem::ForeignHost(self.hosts.clone()));
        }
        let mut origins = request.headers().get_all(ORIGIN).iter();
        let is_own = origins.all(|origin| {
            origin.to_str().ok().and_then(origin_host).is_some_and(|host| self.is_own_host(host))
        });
        if is_own { Ok(()) } else { Err(Problem::ForeignOrigin) }
    }

    fn is_own_host(&self, host: &str) -> bool {
        let is_ours = |address: IpAddr| self.is_open || address.to_canonical().is_loopback();
        if let Some(literal) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return literal.parse().is_ok_and(|address: Ipv6Addr| is_ours(address.into()));
        }
        let name = host.to_ascii_lowercase();
        // RFC 6761 section 6.3: no name below `localhost` is in the DNS.
        name == "localhost"
            || name.ends_with(".localhost")
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(&name))
            || host.parse().is_ok_and(is_ours)
    }
}

/// Guards the routes under `/dev` (also in `postroad serve`) and the routes of Mailpit's API.
pub(super) async fn admit(request: Request, next: Next) -> Response {
    let access = request.extensions().get::<Arc<DevAccess>>().cloned().unwrap_or_default();
    match access.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn origin_host(origin: &str) -> Option<&str> {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    host::of_authority(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_hosts_are_localhost_configured_names_and_loopback_addresses_or_any_address_if_open() {
        let closed = DevAccess::default();
        let open = DevAccess { is_open: true, hosts: vec!["mail".to_owned()] };
        for local in ["localhost", "LocalHost", "mail.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(closed.is_own_host(local) && open.is_own_host(local), "{local}");
        }
        for foreign in ["", "example.com", "localhost.example.com", "127.0.0.1.example.com", "notlocalhost"] {
            assert!(!closed.is_own_host(foreign) && !open.is_own_host(foreign), "{foreign}");
        }
        for reached in ["10.0.0.1", "[::2]", "mail", "MAIL"] {
            assert!(!closed.is_own_host(reached) && open.is_own_host(reached), "{reached}");
        }
    }

    #[test]
    fn the_origin_is_the_host_of_its_url() {
        assert_eq!(origin_host("http://localhost:3000"), Some("localhost"));
        for bad in ["null", "file://", "http://", "http://localhost@evil.example", "localhost"] {
            assert_eq!(origin_host(bad), None, "{bad}");
        }
    }
}
