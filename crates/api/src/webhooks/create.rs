//! webhooks/create: create a webhook.

use axum::http::HeaderMap;
use postroad_app::accounts::CreationKey;
use postroad_app::{EventFilter, WebhookDraft};
use postroad_model::LimitedObject;
use postroad_openapi_macros::request_fields;

use super::shared_params::read_settings;
use super::webhook_out::WebhookOut;
use crate::account_params::{creation_answer, read_idempotency_key};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Webhook to create.
#[request_fields]
#[schema(example = json!({"url": "https://example.com/events", "events": ["message.delivered", "message.bounced"]}))]
pub(crate) struct CreateWebhookIn {
    /// http or https, up to 2,048 bytes, without credentials.
    url: String,
    /// Event types, or `"all"`, which is the default.
    events: Option<super::shared_params::EventsIn>,
    /// `standard` (default) or `postal`.
    format: Option<String>,
    /// True if left out.
    enabled: Option<bool>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Create a webhook
///
/// Only this answer shows the secret. Events that happen from now on are posted, earlier ones are not. With an idempotency
/// key, a repetition within 24 hours returns the webhook that the first call created, without the secret.
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
    let (draft, key) = read(&call.headers, &call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let created = call.app.create_webhook(&call.caller, draft, key).await;
    let created = created.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    warnings.extend(call.app.ceiling_warning(call.caller.account_id, LimitedObject::Webhooks).await);
    let show = if created.is_replay { WebhookOut::new } else { WebhookOut::with_secret };
    Ok(creation_answer(created, |webhook| show(webhook, call.webhook_tester.as_ref()), warnings))
}

/// Parses the request; `CreateWebhookIn` documents its fields.
pub(crate) fn read(
    headers: &HeaderMap,
    text: &[u8],
    findings: &mut Findings,
) -> Result<(WebhookDraft, Option<CreationKey>), Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "webhooks/create", &object);
    let mut fields = Fields::of_request(object);
    if fields.is_absent("url") {
        findings.missing("url");
    }
    let request = read_settings(&mut fields, findings);
    let draft = WebhookDraft {
        url: request.url.unwrap_or_default(),
        events: request.events.unwrap_or(EventFilter::All),
        format: request.format,
        enabled: request.enabled.unwrap_or(true),
    };
    let key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok((draft, key))
}
