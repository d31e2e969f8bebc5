//! A webhook as answers show it.

use postroad_app::shown_events;
use postroad_events::WebhookDesk;
use postroad_model::{EventKind, Timestamp, WebhookFormat};
use postroad_store::Webhook;
use serde::Serialize;
use utoipa::ToSchema;

/// Where events are posted to. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookOut {
    id: i64,
    #[schema(example = "https://example.com/events")]
    url: String,
    events: EventsOut,
    /// `standard` or `postal`.
    format: &'static str,
    enabled: bool,
    /// Why it was disabled, if not by a call.
    disabled_reason: Option<String>,
    /// What posts in the format `standard` are signed with; only in the answers of create and rotate_secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// After a rotation: until then the secret before signs as well.
    previous_secret_until: Option<String>,
    /// With the format `postal`: what its signatures verify with, as it stands between the lines of a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// When the failures began that no success has followed yet.
    failing_since: Option<String>,
    last_success_at: Option<String>,
    created_at: String,
    updated_at: String,
}

/// `"all"`, or the names of the events that are wanted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EventsOut {
    All(&'static str),
    Named(Vec<&'static str>),
}

impl WebhookOut {
    /// Without its secret.
    pub(super) fn new(webhook: Webhook, desk: Option<&WebhookDesk>) -> Self {
        let events = match shown_events(webhook.events, webhook.format) {
            None => EventsOut::All("all"),
            Some(kinds) => EventsOut::Named(kinds.into_iter().map(EventKind::as_str).collect()),
        };
        let public_key = desk.filter(|_| webhook.format == WebhookFormat::Postal);
        Self {
            id: webhook.id.0,
            url: webhook.url,
            events,
            format: webhook.format.as_str(),
            enabled: webhook.enabled,
            disabled_reason: webhook.disabled_reason,
            secret: None,
            previous_secret_until: webhook.previous_secret.map(|(_, until)| until.to_rfc3339()),
            public_key: public_key.map(|desk| desk.signer().public_key().to_owned()),
            failing_since: webhook.failing_since.map(Timestamp::to_rfc3339),
            last_success_at: webhook.last_success_at.map(Timestamp::to_rfc3339),
            created_at: webhook.created_at.to_rfc3339(),
            updated_at: webhook.updated_at.to_rfc3339(),
        }
    }

    pub(super) fn with_secret(webhook: Webhook, desk: Option<&WebhookDesk>) -> Self {
        let secret = Some(webhook.secret.0.clone());
        Self { secret, ..Self::new(webhook, desk) }
    }
}
