//! Accepting mail: the only way a message enters the system, whatever door it came through.

mod accept;
mod addresses;
mod base64_text;
mod check;
mod draft;
mod idempotency;
mod message;
mod options;
mod pool;
mod raw;

pub use accept::{AcceptedMessage, SendAnswer};
pub use draft::{
    AttachmentDraft, ListEntry, ListUnsubscribe, MessageDraft, RawDraft, SendContext, TemplateDraft,
};
pub use idempotency::IdempotencyRequest;
pub(crate) use idempotency::InProgress;

pub(crate) use pool::UsablePool;
