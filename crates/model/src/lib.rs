//! Types shared by all crates of Postroad: validated once at the edge, trusted everywhere else.
//!
//! The crate does no I/O; only `clock` reads the wall clock.

pub mod access;
pub mod account_access;
pub mod address;
pub mod bounce_class;
pub mod change;
mod client_network;
pub mod clock;
pub mod crlf;
pub mod domain;
pub mod event;
pub mod event_cursor;
pub mod gate;
pub mod hold;
pub mod id;
pub mod idgen;
pub mod limit_period;
pub mod limited_object;
pub mod limits;
pub mod mailbox;
pub mod protocol;
pub mod send_rate;
pub mod shared;
pub mod status;
pub mod suppression;
pub mod token;
pub mod webhook;
pub mod webhook_url;

pub use access::{Scope, ServerMode};
pub use account_access::{AccountScope, UserRole};
pub use address::{AddressError, EmailAddress};
pub use bounce_class::BounceClass;
pub use change::Change;
pub use client_network::client_network;
pub use clock::{Clock, ClockWatch, SystemClock, Timestamp};
pub use crlf::{is_crlf, is_crlf_piece};
pub use domain::{DomainError, DomainName};
pub use event::{EventKind, EventSet, EventSeverity, postal_events};
pub use event_cursor::EventCursor;
pub use gate::{GateAction, GateScope};
pub use hold::HoldReason;
pub use id::{
    AccountId, AccountKeyId, BatchId, CredentialId, DeliveryId, DomainId, DomainKeyId, DomainLinkId, EventId,
    InvitationId, MessageId, PoolId, SavedSearchId, SendId, ServerId, SourceId, TemplateId, UserId,
    UserSessionId, WebhookAttemptId, WebhookId,
};
pub use idgen::IdGenerator;
pub use limit_period::LimitPeriod;
pub use limited_object::LimitedObject;
pub use limits::Limits;
pub use mailbox::{Mailbox, split_address_list};
pub use protocol::Protocol;
pub use send_rate::{RatePeriod, SendRate};
pub use shared::Shared;
pub use status::{Direction, Status};
pub use suppression::SuppressionReason;
pub use token::MessageToken;
pub use webhook::WebhookFormat;
pub use webhook_url::{WebhookHost, WebhookUrl, WebhookUrlError};
