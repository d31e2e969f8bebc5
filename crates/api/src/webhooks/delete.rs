//! webhooks/delete: removes a webhook and its waiting posts.

use crate::documented::ToSchema;
use serde::Serialize;

use super::get::read;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Id of the deleted webhook.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedWebhookOut {
    id: i64,
    deleted: bool,
}

/// Delete a webhook
///
/// Posts that wait are dropped; the events stay in events/list.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/delete",
    tag = "webhooks",
    operation_id = "deleteWebhook",
    request_body = super::get::WebhookIdIn,
    responses((status = 200, body = crate::documented::Answer<DeletedWebhookOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DeletedWebhookOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let deleted = call.app.delete_webhook(&call.caller, id).await.map_err(Failure::from);
    Success::with_warnings(deleted.map(|()| DeletedWebhookOut { id: id.0, deleted: true }), warnings)
}
