//! JSON form of a webhook.

use crate::documented::ToSchema;
use postroad_app::events_unless_all;
use postroad_events::WebhookTester;
use postroad_model::{EventKind, Timestamp, WebhookFormat};
use postroad_store::Webhook;
use serde::Serialize;

/// Webhook. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookOut {
    id: i64,
    #[schema(example = "https://example.com/events")]
    url: String,
    events: EventsOut,
    /// `standard` or `postal`.
    format: &'static str,
    enabled: bool,
    /// Cause, if Postroad disabled it.
    disabled_reason: Option<String>,
    /// Secret that signs posts in the format `standard`; only in the answers of create and rotate_secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// After a rotation: the previous secret also signs until this time.
    previous_secret_until: Option<String>,
    /// With the format `postal`: public key that verifies signatures, as the base64 lines of a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// Start of the current series of failures; null after a success.
    failing_since: Option<String>,
    last_success_at: Option<String>,
    created_at: String,
    updated_at: String,
    /// Incremented by every change; pass it as `if_version` to avoid overwriting a change that you have not seen.
    version: i64,
}

/// `"all"`, or the subscribed event types.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EventsOut {
    All(&'static str),
    Named(Vec<&'static str>),
}

impl WebhookOut {
    /// Builds the answer without the secret.
    pub(super) fn new(webhook: Webhook, tester: Option<&WebhookTester>) -> Self {
        let events = match events_unless_all(webhook.events, webhook.format) {
            None => EventsOut::All("all"),
            Some(kinds) => EventsOut::Named(kinds.into_iter().map(EventKind::as_str).collect()),
        };
        let public_key = tester.filter(|_| webhook.format == WebhookFormat::Postal);
        Self {
            id: webhook.id.0,
            url: webhook.url,
            events,
            format: webhook.format.as_str(),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason,
            secret: None,
            previous_secret_until: webhook.previous_secret.map(|(_, until)| until.to_rfc3339()),
            public_key: public_key.map(|tester| tester.signer().public_key().to_owned()),
            failing_since: webhook.failing_since.map(Timestamp::to_rfc3339),
            last_success_at: webhook.last_success_at.map(Timestamp::to_rfc3339),
            created_at: webhook.created_at.to_rfc3339(),
            updated_at: webhook.updated_at.to_rfc3339(),
            version: webhook.version,
        }
    }

    pub(super) fn with_secret(webhook: Webhook, tester: Option<&WebhookTester>) -> Self {
        let secret = Some(webhook.secret.0.clone());
        Self { secret, ..Self::new(webhook, tester) }
    }
}
