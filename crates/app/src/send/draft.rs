//! A send as an entry point passes it on: types are right, nothing else is checked yet.

use std::borrow::Cow;

use super::idempotency::IdempotencyRequest;
use super::tracking::TrackingOverride;
use crate::Caller;
use crate::templates::Model;

/// Caller, mode, idempotency key and warnings of a send or batch.
#[derive(Debug)]
pub struct SendContext {
    pub caller: Caller,
    /// Whether test mode was requested; a test key implies it.
    pub test: bool,
    pub idempotency: Option<IdempotencyRequest>,
    /// Warnings that the entry point adds to the answer, such as unknown fields.
    pub warnings: Vec<String>,
}

/// A message to compose: the fields of send/message.
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
    /// Headers in the order of the request; a name with several values is listed several times.
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

impl MessageDraft<'_> {
    /// An owned copy, so that the request can be dropped before its message is stored.
    pub fn into_owned(self) -> MessageDraft<'static> {
        MessageDraft {
            to: entries_into_owned(self.to),
            cc: entries_into_owned(self.cc),
            bcc: entries_into_owned(self.bcc),
            from: into_owned(self.from),
            sender: into_owned(self.sender),
            reply_to: into_owned(self.reply_to),
            subject: into_owned(self.subject),
            tag: into_owned(self.tag),
            plain_body: into_owned(self.plain_body),
            html_body: into_owned(self.html_body),
            attachments: self.attachments.into_iter().map(AttachmentDraft::into_owned).collect(),
            headers: self.headers,
            bounce: self.bounce,
            template: self.template.map(|template| TemplateDraft {
                name: into_owned(template.name),
                model: template.model,
                locale: into_owned(template.locale),
            }),
            metadata: self.metadata,
            send_at: into_owned(self.send_at),
            expires_at: into_owned(self.expires_at),
            track: self.track,
            ip_pool: into_owned(self.ip_pool),
            require_tls: self.require_tls,
            list_unsubscribe: self.list_unsubscribe.map(ListUnsubscribe::into_owned),
        }
    }
}

fn into_owned(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
    text.map(|text| Cow::Owned(text.into_owned()))
}

fn entries_into_owned(entries: Vec<ListEntry<'_>>) -> Vec<ListEntry<'static>> {
    let owned = |entry: ListEntry<'_>| ListEntry {
        pointer: entry.pointer,
        text: Cow::Owned(entry.text.into_owned()),
    };
    entries.into_iter().map(owned).collect()
}

/// One entry of a recipient list and its position.
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

impl AttachmentDraft<'_> {
    fn into_owned(self) -> AttachmentDraft<'static> {
        AttachmentDraft {
            name: into_owned(self.name),
            content_type: into_owned(self.content_type),
            data: into_owned(self.data),
            content_id: into_owned(self.content_id),
        }
    }
}

/// The template to render the message from; `name` is its id or alias as the request has it.
#[derive(Debug, Default)]
pub struct TemplateDraft<'a> {
    pub name: Option<Cow<'a, str>>,
    pub model: Model,
    pub locale: Option<Cow<'a, str>>,
}

#[derive(Debug, Default)]
pub struct ListUnsubscribe<'a> {
    pub url: Option<Cow<'a, str>>,
    pub mailto: Option<Cow<'a, str>>,
    pub one_click: bool,
}

impl ListUnsubscribe<'_> {
    fn into_owned(self) -> ListUnsubscribe<'static> {
        ListUnsubscribe {
            url: into_owned(self.url),
            mailto: into_owned(self.mailto),
            one_click: self.one_click,
        }
    }
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

impl RawDraft<'_> {
    /// An owned copy, so that the request can be dropped before its message is stored.
    pub fn into_owned(self) -> RawDraft<'static> {
        RawDraft {
            mail_from: Cow::Owned(self.mail_from.into_owned()),
            rcpt_to: entries_into_owned(self.rcpt_to),
            data: Cow::Owned(self.data.into_owned()),
            bounce: self.bounce,
        }
    }
}
