//! webhooks/test: posts a sample event now and returns the receiver's answer.

use postroad_model::{EventKind, WebhookId};
use postroad_openapi_macros::request_fields;

use super::attempt_out::AttemptOut;
use super::shared_params::read_id;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::{Failure, Reason};
use crate::fields::{Fields, Findings};
use crate::json;

/// Webhook and event type.
#[request_fields]
#[schema(example = json!({"id": 7, "type": "message.bounced"}))]
pub(crate) struct TestWebhookIn {
    /// Id of the webhook.
    id: i64,
    /// Event type; `message.delivered` if left out.
    r#type: Option<String>,
}

/// Post a sample event
///
/// Posts at once, also to a disabled webhook, and returns the attempt. The event has `"test": true`, is in no
/// feed, and is not retried.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/test",
    tag = "webhooks",
    operation_id = "testWebhook",
    request_body = TestWebhookIn,
    responses((status = 200, body = crate::documented::Answer<AttemptOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<AttemptOut>, Failure> {
    let mut findings = Findings::default();
    let (id, kind) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    call.free_request();
    let webhook = call.app.find_webhook(&call.caller, id).await?;
    let Some(tester) = &call.webhook_tester else {
        return Err(Reason::Unavailable("no webhook worker runs here".to_owned()).into());
    };
    let _permit = call.sample_permit().await?;
    let attempt = tester.test(webhook.server_id, webhook.id, kind).await?;
    // `None` if the webhook was deleted meanwhile.
    let attempt = attempt.ok_or(Failure::from(Reason::WebhookNotFound));
    Success::with_warnings(attempt.map(AttemptOut::from), warnings)
}

/// Parses the request; `TestWebhookIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(WebhookId, EventKind), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_id(&mut fields, findings);
    let kind = match fields.text("type", findings) {
        None => EventKind::Delivered,
        Some(name) => EventKind::parse(&name).unwrap_or_else(|| {
            findings.problem("/type", "`type` should be the name of an event, such as message.delivered");
            EventKind::Delivered
        }),
    };
    fields.finish(findings);
    Ok((id, kind))
}
