//! send/message: runs the checks in the documented order (docs/endpoints.md), then composes.

use std::borrow::Cow;
use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{
    Attachment, Composition, check_content_type, check_header_name, check_header_value, find_addresses,
    is_valid_date,
};
use postroad_model::{EmailAddress, Limits, Mailbox, PoolId, ServerId};
use postroad_store::OneClickUnsubscribe;

use super::accept::{CheckedMessage, CompressedMessage};
use super::answer::SendAnswer;
use super::draft::{AttachmentDraft, MessageDraft, SendContext};
use super::template::FillResult;
use super::{addresses, base64_text, options};
use crate::templates::BatchWork;
use crate::{AddressList, App, Caller, FieldProblem, Refusal};

/// Headers that only the parameter of the same name may set.
const PARAMETER_HEADERS: [&str; 5] = ["subject", "from", "to", "cc", "sender"];
/// Maximum number of ignored headers that are named in warnings.
const IGNORED_HEADERS_SHOWN_MAX: usize = 20;

#[boxed_futures]
impl App {
    /// Accepts one send of send/message.
    pub async fn send_message(
        &self,
        context: SendContext,
        draft: MessageDraft<'_>,
    ) -> Result<SendAnswer, Refusal> {
        let context = &context;
        self.check_once_and_store(context, draft, |draft| self.check_message(&context.caller, draft, None))
            .await
    }

    /// Makes all checks of one message, then composes it. `batch` is the template work left to the message's batch.
    pub(super) async fn check_message(
        &self,
        caller: &Caller,
        mut draft: MessageDraft<'_>,
        batch: Option<&Arc<BatchWork>>,
    ) -> Result<CompressedMessage, Refusal> {
        self.check_envelope(caller, &draft).await?;
        let template = match draft.template.take() {
            Some(template) => self.fill_in(caller.server_id, &mut draft, template, batch).await?,
            None => FillResult::default(),
        };
        let pool_id = match &draft.ip_pool {
            Some(name) => self.find_pool_for(caller.server_id, name).await?,
            None => None,
        };
        let track = draft.track;
        // `compose_checked` drops the draft: afterwards only the composed message is in memory.
        let (mut checked, unsubscribe) = self.compose_checked(caller.server_id, draft, pool_id, template)?;
        checked.options.tracking =
            self.decide_tracking(caller, &checked.from_domain, track, unsubscribe).await?;
        checked.compress().await
    }

    /// Makes the checks from `NoRecipients` to `AttachmentMissingData`, and returns the first failure.
    async fn check_envelope(&self, caller: &Caller, draft: &MessageDraft<'_>) -> Result<(), Refusal> {
        if draft.to.is_empty() && draft.cc.is_empty() && draft.bcc.is_empty() {
            return Err(Refusal::NoRecipients);
        }
        let lists =
            [(AddressList::To, &draft.to), (AddressList::Cc, &draft.cc), (AddressList::Bcc, &draft.bcc)];
        for (list, entries) in lists {
            if entries.len() > Limits::ADDRESSES_PER_LIST_MAX {
                return Err(Refusal::TooManyAddresses(list));
            }
        }
        let is_blank =
            |text: &Option<Cow<'_, str>>| text.as_deref().is_none_or(|text| text.trim().is_empty());
        if is_blank(&draft.plain_body) && is_blank(&draft.html_body) && draft.template.is_none() {
            return Err(Refusal::NoContent);
        }
        let Some(from) = draft.from.as_deref().filter(|from| !from.trim().is_empty()) else {
            return Err(Refusal::FromAddressMissing);
        };
        let sender = draft.sender.as_deref().filter(|sender| !sender.trim().is_empty());
        for mailbox in [Some(from), sender].into_iter().flatten() {
            self.authorise_mailbox(caller, mailbox).await?;
            self.authorise_name(caller, mailbox).await?;
        }
        self.authorise_resent(caller, draft).await?;
        for attachment in &draft.attachments {
            if is_blank(&attachment.name) {
                return Err(Refusal::AttachmentMissingName);
            }
            if is_blank(&attachment.data) {
                return Err(Refusal::AttachmentMissingData);
            }
        }
        Ok(())
    }

    /// Checks the addresses in Resent-From and Resent-Sender, because some mail programs show them like From.
    async fn authorise_resent(&self, caller: &Caller, draft: &MessageDraft<'_>) -> Result<(), Refusal> {
        let is_resent = |name: &str| {
            name.eq_ignore_ascii_case("resent-from") || name.eq_ignore_ascii_case("resent-sender")
        };
        // `compose_checked` reports too many headers.
        let is_within_limit = draft.headers.len() <= self.inner.limits.custom_headers_max;
        for (_, value) in draft.headers.iter().filter(|(name, _)| is_within_limit && is_resent(name)) {
            // `compose_checked` reports a value that is too long or has control characters.
            if check_header_value(value, self.inner.limits.header_value_bytes_max).is_err() {
                continue;
            }
            let addresses = find_addresses(value).map_err(|_| Refusal::UnauthenticatedFromAddress)?;
            for address in addresses {
                self.authorise_mailbox(caller, &address).await?;
            }
        }
        Ok(())
    }

    /// Makes the last check, which reports all other problems at once, then composes the message.
    fn compose_checked(
        &self,
        server_id: ServerId,
        mut draft: MessageDraft<'_>,
        pool_id: Option<PoolId>,
        template: FillResult,
    ) -> Result<(CheckedMessage, Option<OneClickUnsubscribe>), Refusal> {
        let limits = &self.inner.limits;
        let now = self.inner.clock.now();
        let mut problems = template.problems;
        check_subject(draft.subject.as_deref(), limits, &mut problems);
        let [to, cc, bcc] =
            [&draft.to, &draft.cc, &draft.bcc].map(|list| addresses::parse_list(list, &mut problems));
        let from = parse_if_present("/from", draft.from.as_deref(), &mut problems);
        let sender = parse_if_present("/sender", draft.sender.as_deref(), &mut problems);
        let mut headers = check_headers(&draft, limits, &mut problems);
        let reply_to = match draft.reply_to.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(text) => parse_reply_to("/reply_to", text, &mut problems),
            None => headers
                .reply_to
                .map(|text| parse_reply_to("/headers/Reply-To", &text, &mut problems))
                .unwrap_or_default(),
        };
        let checked_options = options::check(&draft, limits, now, pool_id, template.name, &mut problems);
        headers.custom.extend(checked_options.headers);
        let contents = check_attachments(&mut draft.attachments, limits, &mut problems);
        check_size(&draft, &contents, limits, &mut problems);
        let Some(from) = from.filter(|_| problems.is_empty()) else {
            return Err(Refusal::Validation(problems));
        };

        let message_id = headers.message_id.unwrap_or_else(|| self.new_message_id(server_id));
        let date = headers.date.unwrap_or_else(|| now.to_rfc2822());
        let attachments: Vec<Attachment<'_>> =
            draft.attachments.iter().zip(&contents).map(attachment).collect();
        let is_present = |body: &&str| !body.trim().is_empty();
        let bytes = postroad_mail::compose(&Composition {
            from: &from,
            sender: sender.as_ref(),
            reply_to: &reply_to,
            to: &to,
            cc: &cc,
            subject: draft.subject.as_deref().unwrap_or_default(),
            date: &date,
            message_id: &message_id,
            plain_body: draft.plain_body.as_deref().filter(is_present),
            html_body: draft.html_body.as_deref().filter(is_present),
            attachments: &attachments,
            headers: &headers.custom,
        });
        if bytes.len() > limits.message_bytes_max {
            return Err(Refusal::Validation(vec![options::too_large(limits)]));
        }
        let recipients: Vec<EmailAddress> =
            addresses::unique(to.iter().chain(&cc).chain(&bcc).map(|mailbox| &mailbox.address));
        let checked = CheckedMessage {
            bytes,
            message_id,
            mail_from: from.address.as_str().to_owned(),
            from_domain: from.address.domain().as_str().to_owned(),
            subject: draft.subject.as_deref().unwrap_or_default().to_owned(),
            tag: draft
                .tag
                .as_deref()
                .or(headers.tag.as_deref())
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned),
            metadata: checked_options.metadata,
            options: checked_options.options,
            bounce: draft.bounce,
            recipients,
            warnings: headers.ignored,
        };
        Ok((checked, checked_options.unsubscribe))
    }
}

fn check_subject(subject: Option<&str>, limits: &Limits, problems: &mut Vec<FieldProblem>) {
    let Some(subject) = subject else {
        problems.push(FieldProblem::new("/subject", "`subject` parameter is required but is missing"));
        return;
    };
    if subject.len() > limits.subject_bytes_max {
        let message = format!("`subject` is longer than {} bytes", limits.subject_bytes_max);
        problems.push(FieldProblem::new("/subject", message));
    }
    if subject.chars().any(|c| c.is_control() && c != '\t') {
        let message = "`subject` must not contain line breaks or control characters";
        problems.push(FieldProblem::new("/subject", message));
    }
}

fn parse_if_present(pointer: &str, text: Option<&str>, problems: &mut Vec<FieldProblem>) -> Option<Mailbox> {
    let text = text.filter(|text| !text.trim().is_empty())?;
    addresses::parse_one(pointer, text, problems)
}

/// Parses Reply-To, which may have several mailboxes. A name with an unquoted comma is still one mailbox.
fn parse_reply_to(pointer: &str, text: &str, problems: &mut Vec<FieldProblem>) -> Vec<Mailbox> {
    if let Ok(mailbox) = Mailbox::parse(text) {
        return vec![mailbox];
    }
    let max = Limits::ADDRESSES_PER_LIST_MAX;
    let entries: Vec<&str> = postroad_model::split_address_list(text).take(max + 1).collect();
    if entries.is_empty() {
        addresses::parse_one(pointer, text, problems);
    }
    if entries.len() > max {
        let field = pointer.trim_start_matches('/');
        problems.push(FieldProblem::new(pointer, format!("`{field}` has more than {max} addresses")));
        return Vec::new();
    }
    entries.into_iter().filter_map(|entry| addresses::parse_one(pointer, entry, problems)).collect()
}

struct CheckedHeaders {
    custom: Vec<(String, String)>,
    message_id: Option<String>,
    date: Option<String>,
    reply_to: Option<String>,
    /// Value of Postal's header for the tag; the header is not sent to the recipient.
    tag: Option<String>,
    /// Warnings about headers that a parameter replaces.
    ignored: Vec<String>,
}

impl CheckedHeaders {
    fn ignore(&mut self, name: &str, parameter: &str) {
        if self.ignored.len() < IGNORED_HEADERS_SHOWN_MAX {
            self.ignored
                .push(format!("The header `{name}` was ignored: the parameter `{parameter}` sets it"));
        }
    }
}

fn check_headers(
    draft: &MessageDraft<'_>,
    limits: &Limits,
    problems: &mut Vec<FieldProblem>,
) -> CheckedHeaders {
    let (headers, has_list_unsubscribe) = (&draft.headers, draft.list_unsubscribe.is_some());
    let mut checked = CheckedHeaders {
        custom: Vec::new(),
        message_id: None,
        date: None,
        reply_to: None,
        tag: None,
        ignored: Vec::new(),
    };
    let is_given = |text: &Option<Cow<'_, str>>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    if headers.len() > limits.custom_headers_max {
        let message = format!("`headers` has more than {} headers", limits.custom_headers_max);
        problems.push(FieldProblem::new("/headers", message));
        return checked;
    }
    for (name, value) in headers {
        let pointer = format!("/headers/{}", options::pointer_token(name));
        let valid = check_header_name(name)
            .and_then(|()| check_header_value(value, limits.header_value_bytes_max))
            .map_err(|problem| problems.push(FieldProblem::new(&pointer, problem.to_string())));
        if valid.is_err() {
            continue;
        }
        match name.to_ascii_lowercase().as_str() {
            "message-id" => match postroad_mail::parse_message_id(value) {
                Some(id) => checked.message_id = Some(id),
                None => problems
                    .push(FieldProblem::new(pointer, "The Message-ID header is not a valid message id")),
            },
            "date" if is_valid_date(value) => checked.date = Some(value.trim().to_owned()),
            "date" => problems.push(FieldProblem::new(pointer, "The Date header is not a valid date")),
            "reply-to" if is_given(&draft.reply_to) => checked.ignore(name, "reply_to"),
            "reply-to" => checked.reply_to = Some(value.clone()),
            "x-postal-tag" if draft.tag.is_some() => checked.ignore(name, "tag"),
            "x-postal-tag" => {
                options::check_tag(&pointer, value, limits, problems);
                checked.tag = Some(value.clone());
            }
            // The parameter with the same meaning takes precedence; the header may occur only once.
            "list-unsubscribe" | "list-unsubscribe-post" if has_list_unsubscribe => {
                checked.ignore(name, "list_unsubscribe");
            }
            lower if PARAMETER_HEADERS.contains(&lower) => checked.ignore(name, lower),
            _ => checked.custom.push((name.clone(), value.clone())),
        }
    }
    checked
}

/// Decodes every attachment and drops its base64 text; problems are added to `problems`.
fn check_attachments(
    attachments: &mut [AttachmentDraft<'_>],
    limits: &Limits,
    problems: &mut Vec<FieldProblem>,
) -> Vec<Vec<u8>> {
    if attachments.len() > limits.attachments_max {
        let message = format!("`attachments` has more than {} entries", limits.attachments_max);
        problems.push(FieldProblem::new("/attachments", message));
        return Vec::new();
    }
    let total: usize =
        attachments.iter().filter_map(|a| a.data.as_deref()).map(base64_text::decoded_bytes_max).sum();
    if total > limits.message_bytes_max + 3 * attachments.len() {
        problems.push(options::too_large(limits));
        return Vec::new();
    }
    let mut contents = Vec::with_capacity(attachments.len());
    for (at, attachment) in attachments.iter_mut().enumerate() {
        let mut problem = |field: &str, message: String| {
            problems.push(FieldProblem::new(format!("/attachments/{at}/{field}"), message));
        };
        let name = attachment.name.as_deref().unwrap_or_default();
        if name.len() > Limits::FILE_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let max = Limits::FILE_NAME_BYTES_MAX;
            problem(
                "name",
                format!("An attachment's name must be at most {max} bytes without control characters"),
            );
        }
        if let Some(Err(wrong)) = attachment.content_type.as_deref().map(check_content_type) {
            problem("content_type", wrong.to_string());
        }
        if attachment.content_id.as_deref().is_some_and(|id| !is_content_id(id)) {
            problem("content_id", "A content id must be 1 to 255 visible ASCII characters".to_owned());
        }
        let data = attachment.data.take();
        match base64_text::decode(data.as_deref().unwrap_or_default()) {
            Some(content) => contents.push(content),
            None => problem("data", format!("`attachments/{at}/data` is not valid base64")),
        }
    }
    contents
}

fn is_content_id(id: &str) -> bool {
    let bare = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    !bare.is_empty()
        && bare.len() <= 255
        && bare.bytes().all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>')
}

fn attachment<'a>((draft, content): (&'a AttachmentDraft<'_>, &'a Vec<u8>)) -> Attachment<'a> {
    Attachment {
        name: draft.name.as_deref().unwrap_or_default(),
        content_type: draft.content_type.as_deref().unwrap_or("application/octet-stream"),
        content: Cow::Borrowed(content),
        content_id: draft.content_id.as_deref(),
    }
}

/// Refuses a message that must exceed the size limit, before it is composed: base64 adds a third to attachments.
fn check_size(
    draft: &MessageDraft<'_>,
    contents: &[Vec<u8>],
    limits: &Limits,
    problems: &mut Vec<FieldProblem>,
) {
    let bodies = [&draft.plain_body, &draft.html_body].map(|body| body.as_deref().map_or(0, str::len));
    let attached: usize = contents.iter().map(|content| content.len() / 3 * 4).sum();
    if bodies.iter().sum::<usize>() + attached > limits.message_bytes_max {
        problems.push(options::too_large(limits));
    }
}
