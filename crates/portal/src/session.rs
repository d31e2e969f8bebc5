//! Session cookie: only this file reads, sets and removes it.

use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use postroad_app::Peer;
use postroad_app::users::NewSession;
use postroad_model::Timestamp;

/// Tokens are shorter; longer values are not ours.
const TOKEN_BYTES_MAX: usize = 200;

/// Name of the cookie. Over TLS it has the prefix that binds the cookie to this host. Without TLS, as in
/// `postroad dev`, browsers refuse cookies with that prefix.
fn cookie_name(peer: Peer) -> &'static str {
    if peer.tls { "__Host-postroad" } else { "postroad" }
}

/// The value of a cookie of a request.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The session token of a request.
pub(crate) fn token(headers: &HeaderMap, peer: Peer) -> Option<String> {
    let token = cookie(headers, cookie_name(peer))?;
    let is_token = !token.is_empty()
        && token.len() <= TOKEN_BYTES_MAX
        && token.bytes().all(|b| b.is_ascii_alphanumeric());
    is_token.then(|| token.to_owned())
}

/// Sets the cookie of a new session.
pub(crate) fn begin(response: &mut Response, peer: Peer, session: &NewSession, now: Timestamp) {
    set(response, peer, &session.token, session.expires_at.since(now).as_secs());
}

/// Removes the session cookie.
pub(crate) fn end(response: &mut Response, peer: Peer) {
    set(response, peer, "", 0);
}

fn set(response: &mut Response, peer: Peer, token: &str, max_age_s: u64) {
    let secure = if peer.tls { "; Secure" } else { "" };
    let cookie =
        format!("{}={token}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}", cookie_name(peer));
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(tls: bool) -> Peer {
        Peer { address: [127, 0, 0, 1].into(), tls }
    }

    #[test]
    fn the_session_cookie_has_another_name_with_tls() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; postroad=plain; __Host-postroad=tls"));
        assert_eq!(token(&headers, peer(false)).as_deref(), Some("plain"));
        assert_eq!(token(&headers, peer(true)).as_deref(), Some("tls"));
        headers.insert(COOKIE, HeaderValue::from_static("postroad=a b"));
        assert_eq!(token(&headers, peer(false)), None);
    }

    #[test]
    fn cookies_are_for_this_host_and_no_script() {
        let mut response = Response::new(axum::body::Body::empty());
        set(&mut response, peer(true), "abc", 60);
        let cookie = response.headers()[SET_COOKIE].to_str().expect("it is text");
        assert_eq!(cookie, "__Host-postroad=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
    }
}
