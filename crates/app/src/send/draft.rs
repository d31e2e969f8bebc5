//! A send as a door hands it in: types are right, nothing else has been looked at.

use std::borrow::Cow;

use super::idempotency::IdempotencyRequest;
use super::tracking::TrackingOverride;
use crate::Caller;

/// Who sends, and how.
#[derive(Debug)]
pub struct SendContext {
    pub caller: Caller,
    /// Test mode was asked for (a test key means it too).
    pub test: bool,
    pub idempotency: Option<IdempotencyRequest>,
    /// What the door wants to tell the sender, such as fields it does not know.
    pub warnings: Vec<String>,
}

/// A composed message: the fields of send/message.
#[derive(Debug, Default)]
pub struct MessageDraft<'a> {
    pub to: Vec<ListEntry<'a>>,
    pub cc: Vec<ListEntry<'a>>,
    pub bcc: Vec<ListEntry<'a>>,
    pub from: Option<Cow<'a, str>>,
    pub sender: Option<Cow<'a, str>>,
    pub reply_to: Option<Cow<'a, str>>,
    pub subject: Option<Cow<'a, str>>,
    pub tag: Option<Cow<'a, str>>,
    pub plain_body: Option<Cow<'a, str>>,
    pub html_body: Option<Cow<'a, str>>,
    pub attachments: Vec<AttachmentDraft<'a>>,
    /// In the order given; a name with several values stands several times.
    pub headers: Vec<(String, String)>,
    pub bounce: bool,
    pub template: Option<TemplateDraft<'a>>,
    pub metadata: Vec<(String, String)>,
    pub send_at: Option<Cow<'a, str>>,
    pub expires_at: Option<Cow<'a, str>>,
    pub track: TrackingOverride,
    pub ip_pool: Option<Cow<'a, str>>,
    pub require_tls: bool,
    pub list_unsubscribe: Option<ListUnsubscribe<'a>>,
}

/// One entry of a recipient list and where it stood.
#[derive(Debug, Clone)]
pub struct ListEntry<'a> {
    /// JSON pointer, such as `/to/3`.
    pub pointer: String,
    pub text: Cow<'a, str>,
}

#[derive(Debug, Default)]
pub struct AttachmentDraft<'a> {
    pub name: Option<Cow<'a, str>>,
    pub content_type: Option<Cow<'a, str>>,
    /// Base64.
    pub data: Option<Cow<'a, str>>,
    pub content_id: Option<Cow<'a, str>>,
}

/// A reference to a template; `name` is its id or alias as given.
#[derive(Debug)]
pub struct TemplateDraft<'a> {
    pub name: Option<Cow<'a, str>>,
}

#[derive(Debug, Default)]
pub struct ListUnsubscribe<'a> {
    pub url: Option<Cow<'a, str>>,
    pub mailto: Option<Cow<'a, str>>,
    pub one_click: bool,
}

/// A message built by the sender: the fields of send/raw.
#[derive(Debug)]
pub struct RawDraft<'a> {
    pub mail_from: Cow<'a, str>,
    pub rcpt_to: Vec<ListEntry<'a>>,
    /// Base64.
    pub data: Cow<'a, str>,
    pub bounce: bool,
}
