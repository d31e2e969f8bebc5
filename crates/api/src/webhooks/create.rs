//! webhooks/create: posts events to a URL from now on.

use postroad_app::{EventFilter, WebhookDraft};
use postroad_model::CountedThing;
use postroad_openapi_macros::request_shape;

use super::shared_params::read_settings;
use super::webhook_out::WebhookOut;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Webhook to create.
#[request_shape]
#[schema(example = json!({"url": "https://example.com/events", "events": ["message.delivered", "message.bounced"]}))]
pub(crate) struct CreateWebhookIn {
    /// http or https, up to 2,048 bytes, without credentials.
    url: String,
    /// Event types, or `"all"`, which is the default.
    #[schema(value_type = Option<Vec<String>>)]
    events: Option<()>,
    /// `standard` (default) or `postal`.
    format: Option<String>,
    /// True if left out.
    enabled: Option<bool>,
}

/// Create a webhook
///
/// Only this answer shows the secret. Events that happen from now on are posted, earlier ones are not.
#[crate::documented::path(
    post,
    path = "/api/v1/webhooks/create",
    tag = "webhooks",
    operation_id = "createWebhook",
    request_body = CreateWebhookIn,
    responses((status = 200, body = crate::documented::Answer<WebhookOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<WebhookOut>, Failure> {
    let mut findings = Findings::default();
    let draft = read(&call.text, &mut findings)?;
    let mut warnings = findings.into_warnings()?;
    let created = call.app.create_webhook(&call.caller, draft).await.map_err(Failure::from);
    if created.is_ok() {
        warnings.extend(call.app.ceiling_warning(call.caller.account_id, CountedThing::Webhooks).await);
    }
    let shown = created.map(|webhook| WebhookOut::with_secret(webhook, call.webhooks.as_ref()));
    Success::with_warnings(shown, warnings)
}

/// Parses the request; `CreateWebhookIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<WebhookDraft, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    if fields.is_absent("url") {
        findings.missing("url");
    }
    let given = read_settings(&mut fields, findings);
    let draft = WebhookDraft {
        url: given.url.unwrap_or_default(),
        events: given.events.unwrap_or(EventFilter::All),
        format: given.format,
        enabled: given.enabled.unwrap_or(true),
    };
    fields.finish(findings);
    Ok(draft)
}
