//! Receives a request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use postroad_app::InspectorRefusal;
use postroad_store::NewInspectorRequest;

use crate::fields::Fields;
use crate::problem::Problem;
use crate::shown::beginning;
use crate::state::PortalState;

/// Bytes of a body that are kept; the rest is read and dropped.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Longer bodies are answered with 404.
const READ_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 60;
const VALUE_BYTES_MAX: usize = 1_000;

/// Answers 200, or the status in the query: `?status=503` shows how a webhook is retried. Unknown tokens, and requests
/// beyond the limit, are answered before their body is read.
pub(super) async fn take(
    State(state): State<Arc<PortalState>>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    let admitted = match state.app.admit_inspector_request(&token).await {
        Ok(admitted) => admitted,
        Err(refusal) => return refuse(refusal),
    };
    let (parts, body) = request.into_parts();
    let wanted = Fields::of_query(parts.uri.query()).number("status");
    let status =
        wanted.and_then(|status| u16::try_from(status).ok()).filter(|code| (200..600).contains(code));
    let status = StatusCode::from_u16(status.unwrap_or(200)).unwrap_or(StatusCode::OK);
    let Some((bytes, is_cut)) = read(body).await else { return Problem::NotFound.into_response() };
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let is_shown = |name: &axum::http::HeaderName| *name != COOKIE && *name != AUTHORIZATION;
    let headers = parts.headers.iter().filter(|(name, _)| is_shown(name)).take(HEADERS_MAX);
    let received = NewInspectorRequest {
        method: parts.method.to_string(),
        query: beginning(parts.uri.query().unwrap_or_default(), VALUE_BYTES_MAX).to_owned(),
        headers: headers
            .map(|(name, value)| {
                (name.to_string(), beginning(&text(value.as_bytes()), VALUE_BYTES_MAX).to_owned())
            })
            .collect(),
        // PostgreSQL stores no NUL in a text.
        body: text(&bytes).replace('\0', "\u{fffd}"),
        is_cut,
        status: status.as_u16(),
    };
    if let Err(refusal) = state.app.take_inspector_request(admitted, received).await {
        return refuse(refusal);
    }
    let mut response = Response::new(Body::from("Received\n"));
    *response.status_mut() = status;
    response
}

fn refuse(refusal: InspectorRefusal) -> Response {
    let is_temporary = matches!(refusal, InspectorRefusal::TooManyRequests);
    let mut response = Problem::from(refusal).into_response();
    if is_temporary {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Reads the beginning of a body, and whether there was more; `None` if it was far too long, or the client disconnected.
async fn read(body: Body) -> Option<(Vec<u8>, bool)> {
    let (mut kept, mut total) = (Vec::new(), 0);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.ok()?;
        total += piece.len();
        let room = BODY_BYTES_MAX - kept.len();
        kept.extend_from_slice(&piece[..piece.len().min(room)]);
        if total > READ_BYTES_MAX {
            return None;
        }
    }
    let is_cut = total > kept.len();
    Some((kept, is_cut))
}
