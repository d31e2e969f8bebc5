//! One request and its answer on an open connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response};
use postroad_model::WebhookUrl;

use super::failure::HttpFailure;
use super::pool::Connection;

const READY_WAIT_MAX: Duration = Duration::from_millis(50);

pub(super) struct ReceivedAnswer {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) body: Bytes,
    /// Whether the body is longer than the part that was read.
    pub(super) is_cut: bool,
    /// Whether the connection can be reused: the whole answer was read, and the next request can be sent.
    pub(super) is_reusable: bool,
}

/// A failed exchange.
pub(super) enum ExchangeFailure {
    /// The connection ended, or sent something invalid, before the head of an answer was complete.
    BeforeAnswer(HttpFailure),
    /// The answer broke off after its head.
    InsideAnswer(HttpFailure),
}

impl From<ExchangeFailure> for HttpFailure {
    fn from(failure: ExchangeFailure) -> Self {
        match failure {
            ExchangeFailure::BeforeAnswer(failure) | ExchangeFailure::InsideAnswer(failure) => failure,
        }
    }
}

pub(super) fn build_request(
    method: &Method,
    url: &WebhookUrl,
    headers: &HeaderMap,
    body: &Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(url.target())
        .header(HOST, url.authority())
        .body(Full::new(body.clone()))
        .expect("a parsed URL has a valid target and authority");
    if method != Method::GET {
        request.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    }
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    request
}

pub(super) async fn run(
    connection: &mut Connection,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<ReceivedAnswer, ExchangeFailure> {
    let sent = connection.sender.send_request(request).await;
    let response = sent.map_err(|error| ExchangeFailure::BeforeAnswer(HttpFailure::Protocol(error)))?;
    let status = response.status().as_u16();
    let header = |name: HeaderName| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (retry_after, content_type) = (header(RETRY_AFTER), header(CONTENT_TYPE));
    let (body, is_whole) = read_start(response, answer_bytes_max)
        .await
        .map_err(|error| ExchangeFailure::InsideAnswer(HttpFailure::Protocol(error)))?;
    let mut is_reusable = false;
    if is_whole {
        // The driver may not have seen the end of the answer yet. Do not wait long: a receiver may answer before it has
        // read the whole request.
        is_reusable = tokio::time::timeout(READY_WAIT_MAX, connection.sender.ready())
            .await
            .is_ok_and(|ready| ready.is_ok());
    }
    Ok(ReceivedAnswer { status, retry_after, content_type, body, is_cut: !is_whole, is_reusable })
}

/// Reads the beginning of the body; also returns whether that is the whole body.
async fn read_start(
    mut response: Response<Incoming>,
    bytes_max: usize,
) -> Result<(Bytes, bool), hyper::Error> {
    let mut body = BytesMut::new();
    while let Some(frame) = response.frame().await {
        if let Ok(data) = frame?.into_data() {
            let room = bytes_max - body.len();
            body.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                return Ok((body.freeze(), false));
            }
        }
    }
    Ok((body.freeze(), true))
}
