//! One request and its answer on an open connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HOST, RETRY_AFTER};
use hyper::{HeaderMap, Request, Response};
use postroad_model::WebhookUrl;

use super::failure::PostFailure;
use super::pool::Connection;

const READY_WAIT_MAX: Duration = Duration::from_millis(50);

pub(super) struct Done {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) body: Bytes,
    /// The whole answer was read: the connection can be reused.
    pub(super) is_whole: bool,
}

pub(super) enum Broken {
    /// There was no answer at all.
    BeforeAnswer(PostFailure),
    Inside(PostFailure),
}

impl From<Broken> for PostFailure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::BeforeAnswer(failure) | Broken::Inside(failure) => failure,
        }
    }
}

pub(super) fn request(url: &WebhookUrl, headers: &HeaderMap, body: &Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::post(url.target())
        .header(HOST, url.authority())
        .header(CONTENT_LENGTH, body.len())
        .body(Full::new(body.clone()))
        .expect("a parsed URL has a valid target and authority");
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    request
}

pub(super) async fn run(
    connection: &mut Connection,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<Done, Broken> {
    let sent = connection.sender.send_request(request).await;
    let response = sent.map_err(|error| Broken::BeforeAnswer(PostFailure::Protocol(error)))?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.map(str::to_owned);
    let (body, mut is_whole) = read_start(response, answer_bytes_max)
        .await
        .map_err(|error| Broken::Inside(PostFailure::Protocol(error)))?;
    if is_whole {
        // The driver may have to see the end of the answer first. Do not wait for a receiver that answered
        // before it read everything.
        is_whole = tokio::time::timeout(READY_WAIT_MAX, connection.sender.ready())
            .await
            .is_ok_and(|ready| ready.is_ok());
    }
    Ok(Done { status, retry_after, body, is_whole })
}

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
