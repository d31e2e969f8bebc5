//! JSON forms of messages in the dev inbox.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use postroad_app::{Extracted, extract, view_message};
use postroad_delivery::CaughtMessage;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use super::query::RequestedExtracts;
use crate::{blocking_pool, envelope};

/// Entry of a list.
#[derive(Debug, Serialize)]
pub(super) struct SummaryOut<'a> {
    id: u64,
    mail_from: &'a str,
    /// Always one recipient: each recipient has a separate entry.
    rcpt_to: [&'a str; 1],
    subject: &'a str,
    size: usize,
    received_at: String,
}

impl<'a> SummaryOut<'a> {
    pub(super) fn of(message: &'a CaughtMessage) -> Self {
        Self {
            id: message.id,
            mail_from: &message.mail_from,
            rcpt_to: [message.rcpt_to.as_str()],
            subject: &message.subject,
            size: message.raw.len(),
            received_at: message.received_at.to_rfc3339(),
        }
    }
}

/// One message with its parsed content.
#[derive(Debug, Serialize)]
struct MessageOut<'a> {
    #[serde(flatten)]
    summary: SummaryOut<'a>,
    helo: &'a str,
    /// Decoded headers by lower-case name, in the order of the message.
    headers: Map<String, Value>,
    plain_body: Option<String>,
    html_body: Option<String>,
    attachments: Vec<AttachmentOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct AttachmentOut {
    filename: String,
    content_type: String,
    size: usize,
}

/// Shows a message. Parses it off the async threads, because it may be megabytes large.
pub(super) async fn show_message(
    message: Arc<CaughtMessage>,
    requested: RequestedExtracts,
) -> Result<Response, Problem> {
    let text = blocking_pool::run_on_blocking_thread(move || message_json(&message, requested))
        .await
        .map_err(|_| Problem::Stopping)?;
    Ok(envelope::json_response(StatusCode::OK, text))
}

/// Shows only the links and codes of a message.
pub(super) async fn show_extracts(message: Arc<CaughtMessage>) -> Result<Response, Problem> {
    let found = blocking_pool::run_on_blocking_thread(move || extract(&view_message(&message.raw))).await;
    let Extracted { links, codes } = found.map_err(|_| Problem::Stopping)?;
    Ok(envelope::json_response(StatusCode::OK, json!({ "links": links, "codes": codes }).to_string()))
}

fn message_json(message: &CaughtMessage, requested: RequestedExtracts) -> String {
    let view = view_message(&message.raw);
    let found = if requested == RequestedExtracts::default() { Extracted::default() } else { extract(&view) };
    let attachments = view.attachments.into_iter().map(|attachment| AttachmentOut {
        filename: attachment.filename,
        content_type: attachment.content_type,
        size: attachment.content.len(),
    });
    let out = MessageOut {
        summary: SummaryOut::of(message),
        helo: &message.helo,
        headers: view.headers.into_iter().map(|(name, values)| (name, values.into())).collect(),
        plain_body: view.plain_body,
        html_body: view.html_body,
        attachments: attachments.collect(),
        links: requested.links.then_some(found.links),
        codes: requested.codes.then_some(found.codes),
    };
    serde_json::to_string(&out).expect("texts and numbers can be written")
}
