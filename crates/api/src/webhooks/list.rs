//! webhooks/list: the webhooks of the server, oldest first.

use crate::documented::ToSchema;
use postroad_model::WebhookId;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::webhook_out::WebhookOut;
use crate::endpoint::Call;
use crate::envelope::{AnswerMemory, Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Page size and cursor.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListWebhooksIn {
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookListOut {
    items: Vec<WebhookOut>,
}

/// List webhooks
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/list",
    tag = "webhooks",
    operation_id = "listWebhooks",
    request_body = ListWebhooksIn,
    responses((status = 200, body = crate::documented::Answer<WebhookListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<WebhookListOut>, Failure> {
    let mut findings = Findings::default();
    let (limit, after) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let (found, has_more) = call.app.list_webhooks(&call.caller, None, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|webhook| webhook.id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items =
        found.into_iter().map(|webhook| WebhookOut::new(webhook, call.webhook_tester.as_ref())).collect();
    Ok(Success { data: WebhookListOut { items }, flags, memory: AnswerMemory::Small })
}

/// Parses the request; `ListWebhooksIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(usize, Option<WebhookId>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(WebhookId));
    fields.finish(findings);
    Ok((limit, after))
}
