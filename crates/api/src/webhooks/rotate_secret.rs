//! webhooks/rotate_secret: makes a new secret; the old one keeps signing for a day.

use postroad_app::WebhookRefusal;

use super::get::read;
use super::webhook_out::WebhookOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Rotate a webhook's secret
///
/// Only this answer shows the new secret. For 24 hours posts carry the signatures of both secrets.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/rotate_secret",
    tag = "webhooks",
    operation_id = "rotateWebhookSecret",
    request_body = super::get::WebhookIdIn,
    responses((status = 200, body = crate::documented::Answer<WebhookOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<WebhookOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    // Whichever secret the webhook has now.
    let replaces = None;
    let rotated = call.app.rotate_webhook_secret(&call.caller, id, replaces).await;
    let rotated = rotated.and_then(|webhook| webhook.ok_or(WebhookRefusal::NotFound)).map_err(Failure::from);
    let shown = rotated.map(|webhook| WebhookOut::with_secret(webhook, call.webhook_tester.as_ref()));
    Success::with_warnings(shown, warnings)
}
