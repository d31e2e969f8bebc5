//! Public key of webhooks in Postal's format, as a JSON Web Key Set (RFC 7517).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;

use crate::envelope;
use crate::state::ApiState;

pub(crate) const PATH: &str = "/.well-known/jwks.json";

pub(crate) async fn serve(State(state): State<Arc<ApiState>>) -> Response {
    let Some(tester) = state.webhook_tester() else {
        return envelope::json_response(StatusCode::NOT_FOUND, r#"{"keys":[]}"#);
    };
    let mut response = envelope::json_response(StatusCode::OK, tester.signer().jwks().to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}
