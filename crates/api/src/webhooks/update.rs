//! webhooks/update: changes a webhook; omitted settings stay as they are.

use postroad_app::WebhookChanges;
use postroad_model::WebhookId;
use postroad_openapi_macros::request_fields;

use super::shared_params::{read_id, read_loose_integer, read_settings};
use super::webhook_out::WebhookOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Settings to change.
#[request_fields]
#[schema(example = json!({"id": 7, "enabled": true}))]
pub(crate) struct UpdateWebhookIn {
    /// Id of the webhook.
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// http or https, up to 2,048 bytes, without credentials.
    url: Option<String>,
    /// Event types, or `"all"`.
    events: Option<super::shared_params::EventsIn>,
    /// `standard` or `postal`.
    format: Option<String>,
    /// False drops the posts that wait; true starts with events that happen from now on.
    enabled: Option<bool>,
}

/// Change a webhook
///
/// Posts that wait go to the new URL.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/update",
    tag = "webhooks",
    operation_id = "updateWebhook",
    request_body = UpdateWebhookIn,
    responses((status = 200, body = crate::documented::Answer<WebhookOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<WebhookOut>, Failure> {
    let mut findings = Findings::default();
    let (id, if_version, changes) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let changed = call.app.change_webhook(&call.caller, id, if_version, changes).await.map_err(Failure::from);
    Success::with_warnings(
        changed.map(|webhook| WebhookOut::new(webhook, call.webhook_tester.as_ref())),
        warnings,
    )
}

/// Parses the request; `UpdateWebhookIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(WebhookId, Option<i64>, WebhookChanges), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_id(&mut fields, findings);
    let if_version = read_loose_integer(&mut fields, "if_version", findings);
    let changes = read_settings(&mut fields, findings);
    fields.finish(findings);
    Ok((id, if_version, changes))
}
