//! Refuses requests that change something and come from a page of another site. Browsers say in `Sec-Fetch-Site` or
//! `Origin` where a request comes from; a request with neither header is refused as well.

use axum::extract::Request;
use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(crate) async fn check(request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_from_own_page(request.headers(), request.uri()) {
        next.run(request).await
    } else {
        Problem::ForeignOrigin.into_response()
    }
}

fn is_from_own_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text(&ORIGIN);
    let host = uri.authority().map(Authority::as_str).or_else(|| text(&HOST));
    let is_same_host = || {
        let of_origin = origin.and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        of_origin.is_some() && of_origin == host
    };
    match text(&SEC_FETCH_SITE) {
        Some(site) => site == "same-origin" && (origin.is_none() || is_same_host()),
        None => is_same_host(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(pairs: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(HeaderName::try_from(*name).expect("a name"), value.parse().expect("a value"));
        }
        is_from_own_page(&headers, &Uri::from_static("/x"))
    }

    #[test]
    fn only_requests_of_own_pages_are_taken() {
        let host = ("host", "mail.example:8443");
        let origin = ("origin", "https://mail.example:8443");
        assert!(is_accepted(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(is_accepted(&[host, ("sec-fetch-site", "same-origin"), origin]));
        assert!(is_accepted(&[host, origin]));
        for foreign in [
            &[host][..],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://mail.example")],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "https://mail.example:8443.evil.example")],
            &[host, ("sec-fetch-site", "cross-site"), origin],
            &[host, ("sec-fetch-site", "same-site")],
            &[host, ("sec-fetch-site", "none"), origin],
            &[origin],
        ] {
            assert!(!is_accepted(foreign), "{foreign:?}");
        }
    }
}
