//! Accepts a message that arrived by SMTP.

use aws_lc_rs::digest::{Context, SHA256};
use postroad_boxed_futures::boxed_futures;
use postroad_mail::{RawMessage, RawProblem, prepare_submission};
use postroad_model::{EmailAddress, Protocol};
use postroad_store::SendOptions;

use super::accept::{CheckedMessage, CompressedMessage, run_blocking_if_large};
use super::addresses;
use super::answer::SendAnswer;
use super::draft::SendContext;
use super::idempotency::IdempotencyRequest;
use super::prebuilt::{prebuilt_domain, prebuilt_refusal, prebuilt_subject};
use super::submission_options::{self, SubmissionOptions};
use crate::{App, Caller, Refusal};

/// A whole message and its envelope as the SMTP session accepted them: sizes and counts are within the limits.
#[derive(Debug)]
pub struct Submission {
    /// Envelope sender, which is only recorded; empty for `<>`, which marks a bounce.
    pub mail_from: String,
    /// In order; a recipient listed twice gets one message.
    pub rcpt_to: Vec<EmailAddress>,
    pub bytes: Vec<u8>,
    pub protocol: Protocol,
}

#[boxed_futures]
impl App {
    /// Accepts one message by SMTP. When this returns `Ok`, it is on stable storage.
    pub async fn submit(&self, caller: Caller, submission: Submission) -> Result<SendAnswer, Refusal> {
        let Submission { mail_from, rcpt_to, bytes, protocol } = submission;
        let recipients = addresses::unique(rcpt_to.iter());
        if recipients.is_empty() {
            return Err(Refusal::NoRecipients);
        }
        let bounce = mail_from.is_empty();
        let fallback = self.prebuilt_fallback(Some(caller.server_id));
        let envelope = Envelope { mail_from, recipients, by_test_key: caller.test };
        let (read, envelope) = run_blocking_if_large(bytes.len(), move || {
            let raw = prepare_submission(bytes, &fallback.as_raw());
            (raw.map(|raw| with_fingerprint(raw, &envelope)), envelope)
        })
        .await?;
        let (raw, fingerprint) = read.map_err(|problem| match problem {
            RawProblem::Loop => Refusal::MailLoop,
            other => prebuilt_refusal(other, caller.any_from),
        })?;
        self.authorise_prebuilt(&caller, &raw).await?;
        let mut options = submission_options::read(&raw, &self.inner.limits)?;
        let idempotency = options.idempotency_key.take().zip(fingerprint);
        let context = SendContext {
            caller,
            test: options.test,
            idempotency: idempotency.map(|(key, fingerprint)| IdempotencyRequest { key, fingerprint }),
            warnings: Vec::new(),
        };
        let draft = SubmissionDraft { raw, options, envelope, protocol, bounce };
        // A repeated message is answered before its template is rendered: the template may have been changed or
        // deleted.
        self.check_once_and_store(&context, draft, |draft| self.compress_submission(&context.caller, draft))
            .await
    }

    async fn compress_submission(
        &self,
        caller: &Caller,
        draft: SubmissionDraft,
    ) -> Result<CompressedMessage, Refusal> {
        let SubmissionDraft { raw, options, envelope, protocol, bounce } = draft;
        let (raw, template) = match options.template {
            Some(call) => {
                let (raw, name) = self.fill_in_submission(caller.server_id, raw, call).await?;
                (raw, Some(name))
            }
            None => (raw, None),
        };
        let from_domain = prebuilt_domain(&raw);
        let tracking = self.decide_tracking(caller, &from_domain, options.track, None).await?;
        let checked = CheckedMessage {
            from_domain,
            subject: prebuilt_subject(&raw),
            message_id: raw.message_id,
            mail_from: envelope.mail_from,
            bytes: raw.bytes,
            tag: options.tag,
            metadata: options.metadata,
            options: SendOptions { tracking, protocol, template, ..SendOptions::default() },
            bounce,
            recipients: envelope.recipients,
            warnings: Vec::new(),
        };
        checked.compress().await
    }
}

/// A submission whose sender is authorised.
struct SubmissionDraft {
    raw: RawMessage,
    options: SubmissionOptions,
    envelope: Envelope,
    protocol: Protocol,
    bounce: bool,
}

struct Envelope {
    mail_from: String,
    recipients: Vec<EmailAddress>,
    by_test_key: bool,
}

/// The hash of the request, if the message has an idempotency key. The hash excludes headers that we add, because those
/// differ each time. Control headers count by name and value, except for the key itself.
fn with_fingerprint(raw: RawMessage, envelope: &Envelope) -> (RawMessage, Option<[u8; 32]>) {
    let Some(key) = raw.control(IDEMPOTENCY_KEY_HEADER) else { return (raw, None) };
    let mut hash = Context::new(&SHA256);
    let mut add = |text: &[u8]| {
        // The length prefix keeps different requests from producing the same bytes.
        hash.update(&(text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    add(b"smtp");
    add(&[u8::from(envelope.by_test_key)]);
    add(envelope.mail_from.as_bytes());
    add(&(envelope.recipients.len() as u64).to_be_bytes());
    for recipient in &envelope.recipients {
        add(recipient.as_str().as_bytes());
    }
    for (name, value) in
        raw.controls.iter().filter(|(name, value)| name != IDEMPOTENCY_KEY_HEADER || value != key)
    {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    add(&raw.bytes[raw.added_bytes..]);
    let fingerprint = hash.finish().as_ref().try_into().expect("SHA-256 gives 32 bytes");
    (raw, Some(fingerprint))
}

const IDEMPOTENCY_KEY_HEADER: &str = "x-idempotency-key";
