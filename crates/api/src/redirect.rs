//! Redirects plain HTTP requests to the same path over https.

use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::Response;

use crate::{health, host};

const HTTPS_PORT: u16 = 443;

/// Answers 308, which keeps method and body, unlike 301. `/health` is answered without a redirect. Does not read the
/// body.
pub(crate) fn answer<B>(request: &Request<B>, https_port: u16) -> Response {
    if request.uri().path() == health::PATH {
        return health::live();
    }
    let location = find_location(request, https_port);
    let (status, text) = match location {
        Some(_) => (StatusCode::PERMANENT_REDIRECT, "This service answers over HTTPS only.\n"),
        None => (StatusCode::BAD_REQUEST, "The Host header is missing or not valid.\n"),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().extend(location.map(|location| (LOCATION, location)));
    response
}

fn find_location<B>(request: &Request<B>, https_port: u16) -> Option<HeaderValue> {
    let host = host::of(request)?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let port = if https_port == HTTPS_PORT { String::new() } else { format!(":{https_port}") };
    HeaderValue::from_str(&format!("https://{host}{port}{path}")).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;

    use super::*;

    fn location_of(host: &str, target: &str, port: u16) -> Option<String> {
        let request = Request::builder().uri(target).header(HOST, host).body(()).unwrap();
        find_location(&request, port).map(|location| location.to_str().unwrap().to_owned())
    }

    #[test]
    fn host_path_and_query_are_kept_and_the_port_is_that_of_the_https_listener() {
        let at = |host, port| location_of(host, "/api/v1/send/message?a=b%20c", port);
        assert_eq!(
            at("mail.example.com", 443).unwrap(),
            "https://mail.example.com/api/v1/send/message?a=b%20c"
        );
        assert_eq!(at("mail.example.com:80", 8443).unwrap().split('/').nth(2), Some("mail.example.com:8443"));
        assert_eq!(at("[::1]:8080", 443).unwrap().split('/').nth(2), Some("[::1]"));
        assert_eq!(location_of("x", "http://other.example/y", 443).unwrap(), "https://other.example/y");
    }
}
