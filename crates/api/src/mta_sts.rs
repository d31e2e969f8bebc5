//! The MTA-STS policy of the bounce domain `rp.<hostname>` (RFC 8461 3.2): senders of bounces must use TLS, and check
//! that the certificate is for `<hostname>`, the MX host of that domain.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::state::ApiState;
use crate::{envelope, host};

pub(crate) const PATH: &str = "/.well-known/mta-sts.txt";

/// Serves the policy, only under its own host name `mta-sts.rp.<hostname>`.
pub(crate) async fn serve<B>(State(state): State<Arc<ApiState>>, request: Request<B>) -> Response {
    let own = state.app.host();
    let policy_host = format!("mta-sts.rp.{own}");
    if !host::of(&request).is_some_and(|host| host.eq_ignore_ascii_case(&policy_host)) {
        return envelope::json_response(
            StatusCode::NOT_FOUND,
            r#"{"error":"there is no MTA-STS policy for this name"}"#,
        );
    }
    let policy = format!("version: STSv1\r\nmode: enforce\r\nmx: {own}\r\nmax_age: 604800\r\n");
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], policy).into_response()
}
