//! Access check of the dev inbox, which has no key. The Host must be a local name: otherwise a web page could
//! reach the inbox by DNS rebinding. Requests that change something must not come from a page of another site,
//! because a browser sends them without reading the answer.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::ORIGIN;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use crate::host;
use crate::request_info::RequestInfo;

pub(super) async fn admit(request: Request, next: Next) -> Response {
    match check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(request: &Request) -> Result<(), Problem> {
    let peer = request.extensions().get::<RequestInfo>().map(|info| info.peer.address);
    if !peer.is_some_and(|address| address.to_canonical().is_loopback()) {
        return Err(Problem::NotLocal);
    }
    if !host::of(request).is_some_and(is_local_host) {
        return Err(Problem::ForeignHost);
    }
    let is_own_origin = request
        .headers()
        .get_all(ORIGIN)
        .iter()
        .all(|origin| origin.to_str().ok().and_then(origin_host).is_some_and(is_local_host));
    if request.method().is_safe() || is_own_origin { Ok(()) } else { Err(Problem::ForeignOrigin) }
}

fn origin_host(origin: &str) -> Option<&str> {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    host::host_of(authority)
}

fn is_local_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(literal) => literal.parse().is_ok_and(|address: Ipv6Addr| address.to_canonical().is_loopback()),
        None => {
            host.eq_ignore_ascii_case("localhost")
                || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_cannot_be_pointed_here_are_local() {
        for local in ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local_host(local), "{local}");
        }
        for foreign in
            ["", "example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]"]
        {
            assert!(!is_local_host(foreign), "{foreign}");
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
