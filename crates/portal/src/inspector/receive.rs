//! Receives a request to an inspector.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, COOKIE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use postroad_app::InspectorRefusal;
use postroad_store::NewInspectorRequest;
use tokio::time::timeout;

use crate::display::beginning;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::state::PortalState;

/// Bytes of a body that are stored; the rest is read and dropped.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Longer bodies are answered with 413.
const READ_BYTES_MAX: usize = 1 << 20;
/// Time for a whole body to arrive.
const READ_TIME_MAX: Duration = Duration::from_secs(30);
/// Time for the next piece of a body to arrive.
const STALL_MAX: Duration = Duration::from_secs(10);
const HEADERS_MAX: usize = 60;
const VALUE_BYTES_MAX: usize = 1_000;

/// A body that was read.
struct ReadBody {
    /// The beginning of the body.
    text: String,
    is_cut: bool,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
enum BodyRefusal {
    TooLarge,
    TooSlow,
    /// The connection broke.
    Broken,
}

/// Answers 200, or the status in the query: `?status=503` shows how a webhook is retried. Requests with an unknown
/// token or beyond the rate limit are answered before their body is read.
pub(super) async fn take(
    State(state): State<Arc<PortalState>>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let query = beginning(parts.uri.query().unwrap_or_default(), VALUE_BYTES_MAX).to_owned();
    let headers = shown_headers(&parts.headers);
    let header_bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let bytes_max = query.len() + header_bytes + announced_bytes(&parts.headers);
    let admitted = match state.app.admit_inspector_request(&token, bytes_max).await {
        Ok(admitted) => admitted,
        Err(refusal) => return refuse(refusal),
    };
    let wanted = Fields::of_query(parts.uri.query()).number("status");
    let status =
        wanted.and_then(|status| u16::try_from(status).ok()).filter(|code| (200..600).contains(code));
    let status = StatusCode::from_u16(status.unwrap_or(200)).unwrap_or(StatusCode::OK);
    let ReadBody { text, is_cut } = match read(body).await {
        Ok(read) => read,
        Err(refusal) => return refuse_body(&refusal),
    };
    let method = parts.method.to_string();
    let received =
        NewInspectorRequest { method, query, headers, body: text, is_cut, status: status.as_u16() };
    if let Err(refusal) = state.app.take_inspector_request(admitted, received).await {
        return refuse(refusal);
    }
    answer(status, "Received\n")
}

/// The first headers, without `Cookie` and `Authorization`, which contain credentials.
fn shown_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_shown = |name: &HeaderName| *name != COOKIE && *name != AUTHORIZATION;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let shown = headers.iter().filter(|(name, _)| is_shown(name)).take(HEADERS_MAX);
    let beginnings =
        shown.map(|(name, value)| (name.to_string(), beginning(&text(value), VALUE_BYTES_MAX).to_owned()));
    beginnings.collect()
}

/// Bytes of the body that may have to be stored.
fn announced_bytes(headers: &HeaderMap) -> usize {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    announced.map_or(BODY_BYTES_MAX, |bytes: usize| bytes.min(BODY_BYTES_MAX))
}

fn refuse(refusal: InspectorRefusal) -> Response {
    let is_temporary = matches!(refusal, InspectorRefusal::TooManyRequests);
    let mut response = Problem::from(refusal).into_response();
    if is_temporary {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn refuse_body(refusal: &BodyRefusal) -> Response {
    match refusal {
        BodyRefusal::TooLarge => {
            answer(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1 MiB, so it was not stored.\n")
        }
        BodyRefusal::TooSlow => answer(
            StatusCode::REQUEST_TIMEOUT,
            "The body did not arrive within 30 seconds, or paused for 10, so it was not stored.\n",
        ),
        BodyRefusal::Broken => answer(StatusCode::BAD_REQUEST, "The body is incomplete.\n"),
    }
}

fn answer(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}

/// Reads a body within the limits of size and time.
async fn read(body: Body) -> Result<ReadBody, BodyRefusal> {
    timeout(READ_TIME_MAX, read_pieces(body)).await.unwrap_or(Err(BodyRefusal::TooSlow))
}

async fn read_pieces(body: Body) -> Result<ReadBody, BodyRefusal> {
    let (mut stored, mut total) = (Vec::new(), 0);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = timeout(STALL_MAX, pieces.next()).await.map_err(|_| BodyRefusal::TooSlow)? {
        let piece = piece.map_err(|_| BodyRefusal::Broken)?;
        total += piece.len();
        let room = BODY_BYTES_MAX - stored.len();
        stored.extend_from_slice(&piece[..piece.len().min(room)]);
        if total > READ_BYTES_MAX {
            return Err(BodyRefusal::TooLarge);
        }
    }
    // Invalid UTF-8, and NUL, which PostgreSQL cannot store, become U+FFFD. It has three bytes, so the text is cut
    // again.
    let text = String::from_utf8_lossy(&stored).replace('\0', "\u{fffd}");
    let shown = beginning(&text, BODY_BYTES_MAX);
    Ok(ReadBody { is_cut: total > stored.len() || shown.len() < text.len(), text: shown.to_owned() })
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use futures_util::stream;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// A body of pieces of one byte, each after this pause.
    fn slow_body(pause: Duration, pieces: usize) -> Body {
        Body::from_stream(stream::unfold(0, move |sent| async move {
            if sent == pieces {
                return None;
            }
            sleep(pause).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), sent + 1))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_or_trickles_is_refused() {
        let body = read(slow_body(Duration::from_secs(9), 3)).await;
        assert_eq!(body.map(|read| read.text), Ok("xxx".to_owned()));
        let begun = Instant::now();
        let refused = read(slow_body(Duration::from_hours(1), 1)).await;
        assert_eq!((refused.map(|read| read.text), begun.elapsed()), (Err(BodyRefusal::TooSlow), STALL_MAX));
        let begun = Instant::now();
        let refused = read(slow_body(Duration::from_secs(9), 100)).await;
        assert_eq!(
            (refused.map(|read| read.text), begun.elapsed()),
            (Err(BodyRefusal::TooSlow), READ_TIME_MAX)
        );
    }

    #[tokio::test]
    async fn at_most_64_kib_of_text_are_kept() {
        for byte in [b'x', 0, 0xff] {
            let read = read(Body::from(vec![byte; 60 << 10])).await.unwrap();
            assert!(read.text.len() <= BODY_BYTES_MAX, "{}", read.text.len());
            assert_eq!(read.is_cut, byte != b'x');
        }
        let long = read(Body::from(vec![b'x'; 65 << 10])).await.unwrap();
        assert_eq!((long.text.len(), long.is_cut), (BODY_BYTES_MAX, true));
        let refused = read(Body::from(vec![b'x'; (1 << 20) + 1])).await;
        assert_eq!(refused.map(|read| read.is_cut), Err(BodyRefusal::TooLarge));
    }
}
