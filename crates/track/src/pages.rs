//! HTML pages for recipients: small, without scripts.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, RETRY_AFTER,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

const SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem}\
                     button{font:inherit;padding:.5rem 1.5rem}";
const ROBOTS_HEADER: HeaderName = HeaderName::from_static("x-robots-tag");

pub(crate) fn invalid_link() -> Response {
    page(
        StatusCode::NOT_FOUND,
        "This link is not valid",
        "<p>It may have been cut off or changed on its way. Copy the whole link from the message and try again.</p>",
    )
}

/// Page that asks for confirmation: mail scanners follow links and must not unsubscribe anybody.
pub(crate) fn confirm_unsubscribe() -> Response {
    page(
        StatusCode::OK,
        "Unsubscribe?",
        "<p>You will get no more messages from this sender at the address this message was sent to.</p>\
         <form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button type=\"submit\">Unsubscribe</button></form>",
    )
}

pub(crate) fn unsubscribed() -> Response {
    page(StatusCode::OK, "You are unsubscribed", "<p>You will get no more messages from this sender.</p>")
}

pub(crate) fn not_one_click() -> Response {
    page(
        StatusCode::BAD_REQUEST,
        "This is not a request to unsubscribe",
        "<p>The form field <code>List-Unsubscribe=One-Click</code> is missing (RFC 8058).</p>",
    )
}

pub(crate) fn try_again() -> Response {
    let mut response = page(
        StatusCode::SERVICE_UNAVAILABLE,
        "Please try again in a minute",
        "<p>Your request could not be stored at the moment.</p>",
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

pub(crate) fn wrong_method() -> Response {
    page(StatusCode::METHOD_NOT_ALLOWED, "That cannot be done here", "")
}

fn page(status: StatusCode, title: &str, content: &str) -> Response {
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\
         <body><h1>{title}</h1>{content}</body></html>\n"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SECURITY_POLICY));
    add_common_headers(&mut response);
    response
}

/// Adds the headers of every answer, which forbid caching, indexing and the Referer.
pub(crate) fn add_common_headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(ROBOTS_HEADER, HeaderValue::from_static("noindex, nofollow"));
}
