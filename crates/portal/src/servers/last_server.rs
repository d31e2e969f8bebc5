//! The server that a person looked at last, in a cookie: the start page opens it again.

use axum::extract::Request;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use postroad_app::Peer;
use postroad_model::ServerId;

use crate::session;

const COOKIE: &str = "server";
const MAX_AGE_S: u64 = 365 * 24 * 3_600;

/// Sets the cookie when a page of a server was shown, unless the cookie names that server already. The status 200 means
/// that the person may see the server.
pub(crate) async fn remember_last_server(request: Request, next: Next) -> Response {
    let is_tls = request.extensions().get::<Peer>().is_some_and(|peer| peer.tls);
    let server = Some(request.uri().path()).filter(|_| request.method() == Method::GET).and_then(server_in);
    let known = session::cookie(request.headers(), COOKIE).and_then(|text| text.parse().ok());
    let mut response = next.run(request).await;
    if let Some(server) = server
        && response.status() == StatusCode::OK
        && known != Some(server)
    {
        let secure = if is_tls { "; Secure" } else { "" };
        let cookie =
            format!("{COOKIE}={server}; Path=/; Max-Age={MAX_AGE_S}; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    response
}

/// The server in the cookie. A browser can send any number here, so callers must check the permission.
pub(super) fn find(headers: &axum::http::HeaderMap) -> Option<ServerId> {
    session::cookie(headers, COOKIE)?.parse().ok().map(ServerId)
}

fn server_in(path: &str) -> Option<i64> {
    path.strip_prefix("/servers/")?.split('/').next()?.parse().ok()
}
