//! send/raw: a message built by the sender. Its bytes are kept, except for bare line breaks, and headers that must be
//! added or removed.

use std::collections::BTreeMap;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{CrlfWriter, missing_line_break_bytes, prepare_raw};
use postroad_model::{EmailAddress, Limits};
use postroad_store::SendOptions;

use super::accept::CheckedMessage;
use super::answer::SendAnswer;
use super::draft::{RawDraft, SendContext};
use super::prebuilt::{prebuilt_domain, prebuilt_refusal, prebuilt_subject};
use super::{TrackingOverride, addresses, base64_text, options};
use crate::{App, FieldProblem, Refusal};

#[boxed_futures]
impl App {
    /// Accepts one raw send.
    pub async fn send_raw(&self, context: SendContext, draft: RawDraft<'_>) -> Result<SendAnswer, Refusal> {
        let context = &context;
        self.check_once_and_store(context, draft, |draft| async move {
            self.check_raw(context, draft).await?.compress().await
        })
        .await
    }

    async fn check_raw(&self, context: &SendContext, draft: RawDraft<'_>) -> Result<CheckedMessage, Refusal> {
        let limits = &self.inner.limits;
        if draft.rcpt_to.is_empty() {
            return Err(Refusal::NoRecipients);
        }
        let mut problems = Vec::new();
        if draft.rcpt_to.len() > Limits::RAW_RECIPIENTS_MAX {
            let message = format!("`rcpt_to` has more than {} addresses", Limits::RAW_RECIPIENTS_MAX);
            return Err(Refusal::Validation(vec![FieldProblem::new("/rcpt_to", message)]));
        }
        let rcpt_to = addresses::parse_list(&draft.rcpt_to, &mut problems);
        let mail_from = check_mail_from(&draft.mail_from, draft.bounce, &mut problems);
        let bytes = decode(&draft.data, limits, &mut problems);
        drop(draft.data);
        let Some(bytes) = bytes.filter(|_| problems.is_empty()) else {
            return Err(Refusal::Validation(problems));
        };

        let fallback = self.prebuilt_fallback(Some(context.caller.server_id));
        let raw = prepare_raw(bytes, &fallback.as_raw())
            .map_err(|problem| prebuilt_refusal(problem, context.caller.any_from))?;
        self.authorise_prebuilt(&context.caller, &raw).await?;
        if raw.bytes.len() > limits.message_bytes_max {
            return Err(Refusal::Validation(vec![options::too_large(limits)]));
        }
        let tag = raw.tag().map(str::to_owned);
        if let Some(tag) = &tag {
            options::check_tag("/data", tag, limits, &mut problems);
        }
        if !problems.is_empty() {
            return Err(Refusal::Validation(problems));
        }
        let from_domain = prebuilt_domain(&raw);
        let tracking =
            self.decide_tracking(&context.caller, &from_domain, TrackingOverride::default(), None).await?;
        Ok(CheckedMessage {
            from_domain,
            subject: prebuilt_subject(&raw),
            message_id: raw.message_id,
            mail_from,
            bytes: raw.bytes,
            tag,
            metadata: BTreeMap::new(),
            options: SendOptions { tracking, ..SendOptions::default() },
            bounce: draft.bounce,
            recipients: addresses::unique(rcpt_to.iter().map(|mailbox| &mailbox.address)),
            warnings: Vec::new(),
        })
    }
}

/// Checks `mail_from`: `addr` or `<addr>`; for a bounce also the empty sender.
fn check_mail_from(text: &str, bounce: bool, problems: &mut Vec<FieldProblem>) -> String {
    let text = text.trim();
    let bare = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text);
    if bare.is_empty() && bounce {
        return String::new();
    }
    match EmailAddress::parse(bare) {
        Ok(address) => address.as_str().to_owned(),
        Err(error) => {
            let message = format!("`mail_from` is not a valid e-mail address: {error}");
            problems.push(FieldProblem::new("/mail_from", message));
            String::new()
        }
    }
}

/// Spare capacity for headers that are added at the top.
const ADDED_HEADER_BYTES: usize = 1 << 10;

fn decode(data: &str, limits: &Limits, problems: &mut Vec<FieldProblem>) -> Option<Vec<u8>> {
    // An upper bound, because line breaks in the base64 are counted; the exact check is on the decoded bytes.
    if base64_text::decoded_bytes_max(data) > limits.message_bytes_max + limits.message_bytes_max / 16 {
        problems.push(options::too_large(limits));
        return None;
    }
    let not_base64 = || FieldProblem::new("/data", "`data` is not valid base64");
    let Some(bytes) = base64_text::decode(data) else {
        problems.push(not_base64());
        return None;
    };
    let missing = missing_line_break_bytes(&bytes);
    let length = bytes.len() + missing;
    if length > limits.message_bytes_max {
        problems.push(options::too_large(limits));
        return None;
    }
    if missing <= bytes.len() / 4 {
        return Some(bytes);
    }
    // With so many bare line breaks, the original and the converted message together would exceed the memory limit.
    drop(bytes);
    let mut normalised = CrlfWriter::with_capacity(length + ADDED_HEADER_BYTES);
    if base64_text::decode_pieces(data, |piece| normalised.push(piece)).is_none() {
        problems.push(not_base64());
        return None;
    }
    Some(normalised.finish())
}
