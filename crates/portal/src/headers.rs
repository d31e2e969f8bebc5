//! Security headers of every answer.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use postroad_app::Peer;

/// Content security policy that allows nothing from other hosts and no inline script or style: text that slips through
/// escaping still cannot run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const PERMISSIONS: &str = "camera=(), microphone=(), geolocation=(), payment=(), usb=()";
/// Tells browsers to connect to this host only with TLS, for a year.
const HSTS: &str = "max-age=31536000";

pub(crate) async fn add_security_headers(request: Request, next: Next) -> Response {
    let is_tls = request.extensions().get::<Peer>().is_some_and(|peer| peer.tls);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // A page may set a stricter policy, as the preview of a message does.
    set_default(headers, CONTENT_SECURITY_POLICY, POLICY);
    set_default(headers, X_FRAME_OPTIONS, "DENY");
    set_default(headers, CACHE_CONTROL, "no-store");
    set_default(headers, REFERRER_POLICY, "same-origin");
    set_default(headers, HeaderName::from_static("permissions-policy"), PERMISSIONS);
    set_default(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set_default(headers, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    // Otherwise browsers look up the hosts of a mail's links as soon as the mail is shown.
    set_default(headers, HeaderName::from_static("x-dns-prefetch-control"), "off");
    set_default(headers, HeaderName::from_static("x-robots-tag"), "noindex, nofollow");
    if is_tls {
        set_default(headers, STRICT_TRANSPORT_SECURITY, HSTS);
    }
    response
}

fn set_default(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}
