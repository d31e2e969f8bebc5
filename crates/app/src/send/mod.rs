//! Accepting mail: the only way an outgoing message enters the system, whatever its entry point.

mod accept;
mod addresses;
mod answer;
mod base64_text;
mod batch;
mod batch_answer;
mod batch_warnings;
mod check;
mod draft;
mod forward;
mod idempotency;
mod message;
mod message_id;
mod notice;
mod options;
mod pool;
mod prebuilt;
mod raw;
mod schedule;
mod service_server;
mod submission_options;
mod submit;
mod template;
mod tracking;

pub use answer::{AcceptedMessage, SendAnswer, limit_warning};
pub use batch::{Batch, BatchMode, BatchOutcome, BatchStart};
pub use batch_answer::{BatchAnswer, BatchResult};
pub use draft::{
    AttachmentDraft, ListEntry, ListUnsubscribe, MessageDraft, RawDraft, SendContext, TemplateDraft,
};
pub(crate) use forward::Forward;
pub(crate) use idempotency::{InProgress, KEY_LIFETIME as IDEMPOTENCY_KEY_LIFETIME};

pub use idempotency::{IdempotencyRequest, is_idempotency_key};
pub(crate) use message_id::stored_message_filter;
pub(crate) use pool::UsablePool;
pub use schedule::{ScheduleCounts, ScheduleRefusal};
pub use submission_options::{TEST_MODE_PROBLEM, read_test_mode};
pub use submit::Submission;
pub use tracking::TrackingOverride;
