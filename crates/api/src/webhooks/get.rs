//! webhooks/get: one webhook.

use postroad_model::WebhookId;
use postroad_openapi_macros::request_fields;

use super::shared_params::read_id;
use super::webhook_out::WebhookOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the webhook.
#[request_fields]
#[schema(example = json!({"id": 7}))]
pub(crate) struct WebhookIdIn {
    /// Id of the webhook.
    id: i64,
}

/// Get a webhook
///
/// Without its secret. The id of another server's webhook is answered like an unknown id.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/get",
    tag = "webhooks",
    operation_id = "getWebhook",
    request_body = WebhookIdIn,
    responses((status = 200, body = crate::documented::Answer<WebhookOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<WebhookOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_webhook(&call.caller, id).await.map_err(Failure::from);
    Success::with_warnings(
        found.map(|webhook| WebhookOut::new(webhook, call.webhook_tester.as_ref())),
        warnings,
    )
}

/// Parses the request; `WebhookIdIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<WebhookId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_id(&mut fields, findings);
    fields.finish(findings);
    Ok(id)
}
