//! What goes into the store and what comes out of it.

pub use crate::accept::{
    Accepted, InitialState, NewRecipient, NewSend, OwnUnsubscribe, SendInfo, SendOptions, SendTracking,
};
pub use crate::accept::{Fresh, FreshRecipient, FreshSink};
pub use crate::analytics::{CountProgress, CounterRow};
pub use crate::delivery_setup::{DeliverySetup, ServerDelivery};
pub use crate::events::{Event, NewEvent};
pub use crate::events::{EventMessage, FeedPage, FeedQuery, ToldEvent};
pub use crate::gates::{Gate, NewGate};
pub use crate::idempotency::{Idempotency, StoredAnswer};
pub use crate::messages::{Message, MessageSummary};
pub(crate) use crate::outcomes::outcome::AttemptMatch;
pub use crate::outcomes::{Delivery, NewDelivery, Outcome};
pub use crate::pacing_notes::PacingNote;
pub use crate::pools::{NewSource, Pool, Source, SourceCounts, SourceDay, WarmupPause};
pub use crate::queue::{Begin, Begun, Claimed};
pub use crate::queue::{Cancelled, QueueEntry, QueueFilter, QueueStats, Retried};
pub(crate) use crate::retention::removal::{Cut, DroppedWeeks, RemovalStage};
pub use crate::retention::{OldRows, Removal, Removed};
pub use crate::returns::{NewReturn, ReturnEffect, Taken};
pub use crate::setup::ServerChange;
pub(crate) use crate::setup::ceilings::follow;
pub use crate::setup::{
    Account, Credential, CredentialAccess, KeyHash, NewCredential, NewServer, Server, ServerRetention,
    ServerTracking,
};
pub use crate::setup::{Ceiling, Ceilings, ServerUpdate};
pub use crate::suppressions::{
    AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter,
};
pub use crate::tracking::{NewTrackingEvent, TrackingEventKind};
pub use crate::webhooks::{
    NewWebhook, NewWebhookAttempt, Replay, Replayed, Webhook, WebhookAttempt, WebhookChange, WebhookDue,
    WebhookNext, WebhookOutcome, WebhookSecret, WebhookWork,
};
