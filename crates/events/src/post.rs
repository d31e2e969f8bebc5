//! One attempt to post an event: body, signature, post and its record.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use postroad_model::{Clock, Timestamp, WebhookFormat, WebhookUrl};
use postroad_net::guarded_http::{GuardedHttp, HttpAnswer, HttpFailure};
use postroad_store::{FeedEvent, NewWebhookAttempt, Webhook};
use tokio::time::Instant;

use crate::body;
use crate::signature::{PostalSigner, StandardSecret, signatures};

/// Maximum number of bytes of an answer kept in the log of attempts.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Poster {
    http: GuardedHttp,
    signer: Arc<PostalSigner>,
    clock: Arc<dyn Clock>,
}

/// Result of an attempt.
#[derive(Debug)]
pub(crate) struct PostResult {
    pub(crate) attempt: NewWebhookAttempt,
    pub(crate) is_delivered: bool,
    /// Whether the webhook's format cannot express the event: nothing was posted, and the receiver did not fail.
    pub(crate) unsupported_in_format: bool,
    pub(crate) retry_after: Option<String>,
}

/// Error class and text of an event that cannot be posted. The cause is a bug or a broken row, or a format that was
/// changed while the event waited.
struct UnpostableEvent(&'static str, String);

const FORMAT_ERROR_CLASS: &str = "format";

impl Poster {
    pub(crate) fn new(http: GuardedHttp, signer: Arc<PostalSigner>, clock: Arc<dyn Clock>) -> Self {
        Self { http, signer, clock }
    }

    pub(crate) fn signer(&self) -> &PostalSigner {
        &self.signer
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Posts an event. `earlier_attempts` is the number of attempts before this one. If `preempted` completes before
    /// the answer arrives, the post is given up.
    pub(crate) async fn post(
        &self,
        webhook: &Webhook,
        event: FeedEvent,
        earlier_attempts: u32,
        preempted: impl Future<Output = ()>,
    ) -> PostResult {
        let (at, begun) = (self.clock.now(), Instant::now());
        let result = match self.request(webhook, &event, at).await {
            Ok((url, headers, body)) => Ok(tokio::select! {
                biased;
                answer = self.http.post(&url, &headers, &body) => answer,
                () = preempted => Err(HttpFailure::Preempted(begun.elapsed())),
            }),
            Err(unpostable) => Err(unpostable),
        };
        let mut post = PostResult {
            attempt: NewWebhookAttempt {
                event_id: event.id,
                message_id: event.message_id,
                kind: event.kind,
                at,
                number: earlier_attempts + 1,
                url: webhook.url.clone(),
                status: None,
                answer: String::new(),
                error_class: None,
                error: None,
                connect_us: None,
                duration_us: begun.elapsed().as_micros() as i64,
            },
            is_delivered: false,
            unsupported_in_format: matches!(result, Err(UnpostableEvent(FORMAT_ERROR_CLASS, _))),
            retry_after: None,
        };
        match result {
            Ok(Ok(answer)) => post.record_answer(answer),
            Ok(Err(failure)) => post.record_failure(&failure),
            Err(UnpostableEvent(class, text)) => post.attempt.set_error(class, text),
        }
        post
    }

    async fn request(
        &self,
        webhook: &Webhook,
        event: &FeedEvent,
        at: Timestamp,
    ) -> Result<(WebhookUrl, HeaderMap, Bytes), UnpostableEvent> {
        let url =
            WebhookUrl::parse(&webhook.url).map_err(|error| UnpostableEvent("url", error.to_string()))?;
        let body: Bytes = body::body(event, webhook.format)
            .ok_or_else(|| {
                UnpostableEvent(FORMAT_ERROR_CLASS, "This format cannot express the event".to_owned())
            })?
            .into();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("Postroad-Webhooks"));
        match webhook.format {
            WebhookFormat::Standard => sign_standard(webhook, event, at, &body, &mut headers)?,
            WebhookFormat::Postal => self.sign_postal(&body, &mut headers).await?,
        }
        Ok((url, headers, body))
    }

    async fn sign_postal(&self, body: &Bytes, headers: &mut HeaderMap) -> Result<(), UnpostableEvent> {
        let (signer, signed_body) = (Arc::clone(&self.signer), body.clone());
        let signed = tokio::task::spawn_blocking(move || signer.sign(&signed_body)).await;
        let signed = signed.map_err(|error| UnpostableEvent("signature", error.to_string()))?;
        let signed = signed.map_err(|error| UnpostableEvent("signature", error.to_string()))?;
        put(headers, "x-postal-signature", &signed.sha1);
        put(headers, "x-postal-signature-256", &signed.sha256);
        put(headers, "x-postal-signature-kid", self.signer.key_id());
        Ok(())
    }
}

fn sign_standard(
    webhook: &Webhook,
    event: &FeedEvent,
    at: Timestamp,
    body: &[u8],
    headers: &mut HeaderMap,
) -> Result<(), UnpostableEvent> {
    let previous = webhook.previous_secret.as_ref().filter(|(_, until)| *until > at);
    let texts = [Some(&webhook.secret), previous.map(|(secret, _)| secret)];
    let secrets: Result<Vec<StandardSecret>, _> =
        texts.into_iter().flatten().map(|secret| StandardSecret::parse(&secret.0)).collect();
    let secrets = secrets.map_err(|error| UnpostableEvent("secret", error.to_string()))?;
    let id = body::event_id_text(event.id);
    put(headers, "webhook-signature", &signatures(&secrets, &id, at.as_secs(), body));
    put(headers, "webhook-timestamp", &at.as_secs().to_string());
    put(headers, "webhook-id", &id);
    Ok(())
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    let value = HeaderValue::from_str(value).expect("base64, numbers and event names are visible ASCII");
    headers.insert(HeaderName::from_static(name), value);
}

impl PostResult {
    fn record_answer(&mut self, answer: HttpAnswer) {
        let start = &answer.body[..answer.body.len().min(ANSWER_BYTES_MAX)];
        // A PostgreSQL text cannot contain NUL.
        self.attempt.answer = String::from_utf8_lossy(start).replace('\0', "\u{fffd}");
        self.attempt.status = Some(answer.status);
        self.attempt.connect_us = answer.connected_in.map(|time| time.as_micros() as i64);
        self.retry_after = answer.retry_after;
        self.is_delivered = (200..300).contains(&answer.status);
        if !self.is_delivered {
            let text = match answer.status {
                300..=399 => format!("The receiver answered {}; redirects are not followed", answer.status),
                status => format!("The receiver answered {status}"),
            };
            self.attempt.set_error("http_status", text);
        }
    }

    fn record_failure(&mut self, failure: &HttpFailure) {
        self.attempt.set_error(failure.class().as_str(), failure.to_string());
    }
}

trait SetError {
    fn set_error(&mut self, class: &str, text: String);
}

impl SetError for NewWebhookAttempt {
    fn set_error(&mut self, class: &str, text: String) {
        self.error_class = Some(class.to_owned());
        self.error = Some(text);
    }
}
