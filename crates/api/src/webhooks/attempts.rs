//! webhooks/attempts: attempts to post to a webhook, newest first.

use crate::documented::ToSchema;
use postroad_model::{WebhookAttemptId, WebhookId};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::attempt_out::AttemptOut;
use super::shared_params::read_id;
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Webhook and page.
#[request_fields]
#[schema(example = json!({"id": 7}))]
pub(crate) struct WebhookAttemptsIn {
    /// Id of the webhook.
    id: i64,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptListOut {
    items: Vec<AttemptOut>,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct AttemptsRequest {
    id: WebhookId,
    limit: usize,
    before: Option<WebhookAttemptId>,
}

/// Estimated size of an attempt, including the start of the receiver's answer.
const ATTEMPT_BYTES: usize = 5 << 10;

/// List a webhook's attempts
///
/// Newest first. Kept for `retention.webhook_attempts`, 30 days by default.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/attempts",
    tag = "webhooks",
    operation_id = "listWebhookAttempts",
    request_body = WebhookAttemptsIn,
    responses((status = 200, body = crate::documented::Answer<AttemptListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<AttemptListOut>, Failure> {
    let mut findings = Findings::default();
    let AttemptsRequest { id, limit, before } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ATTEMPT_BYTES).await?.into();
    let (found, has_more) = call.app.list_webhook_attempts(&call.caller, id, before, limit).await?;
    let next = found.last().filter(|_| has_more).map(|attempt| attempt.id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(AttemptOut::from).collect();
    Ok(Success { data: AttemptListOut { items }, flags, memory })
}

/// Parses the request; `WebhookAttemptsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<AttemptsRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_id(&mut fields, findings);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let before = read_cursor(&mut fields, findings, |text| text.parse().ok().map(WebhookAttemptId));
    fields.finish(findings);
    Ok(AttemptsRequest { id, limit, before })
}
