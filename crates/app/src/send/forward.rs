//! Forwards mail from outside to the operator. Forwarded mail is stored and delivered like every other message, under a
//! server that belongs to the installation itself.
//!
//! Loops are stopped: the copy is sent with the empty sender, so nobody bounces it. Its `Delivered-To` header names the
//! address at which the mail arrived, as in Postfix, so a copy that comes back is recognised.

use std::collections::BTreeMap;

use postroad_mail::{RawProblem, is_delivered_to, prepare_raw};
use postroad_model::{Direction, EmailAddress, Protocol, SendId};
use postroad_store::{InitialState, NewSend, SendInfo, SendOptions, StoredBody};

use super::accept::new_recipients;
use super::prebuilt::{prebuilt_refusal, prebuilt_subject};
use crate::{App, Refusal};

/// One message from outside, and its new recipient.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) to: EmailAddress,
    /// The address at which the mail arrived.
    pub(crate) delivered_to: String,
    pub(crate) mail_from: String,
    pub(crate) received_with_ssl: bool,
}

/// A message ready to be stored.
#[derive(Debug)]
pub(crate) struct PreparedForward {
    forward: Forward,
    message_id: String,
    subject: String,
    size: u64,
    body: StoredBody,
}

impl App {
    /// Checks and compresses the message; for a blocking thread. `MailLoop` if the message was forwarded here before,
    /// or has passed too many servers.
    pub(crate) fn prepare_forward(
        &self,
        forward: Forward,
        bytes: Vec<u8>,
    ) -> Result<PreparedForward, Refusal> {
        if is_delivered_to(&bytes, &forward.delivered_to) {
            return Err(Refusal::MailLoop);
        }
        let fallback = self.prebuilt_fallback(None);
        let raw = prepare_raw(bytes, &fallback.as_raw()).map_err(|problem| match problem {
            RawProblem::Loop => Refusal::MailLoop,
            // Senders from outside need not be authenticated.
            other => prebuilt_refusal(other, true),
        })?;
        let subject = prebuilt_subject(&raw);
        let mut bytes = format!("Delivered-To: {}\r\n", forward.delivered_to).into_bytes();
        bytes.extend_from_slice(&raw.bytes);
        let size = bytes.len() as u64;
        let body = StoredBody::compress(bytes)?;
        Ok(PreparedForward { forward, message_id: raw.message_id, subject, size, body })
    }

    /// When this returns `Ok`, the message and its queue entry are on stable storage.
    pub(crate) async fn send_forward(&self, prepared: PreparedForward) -> Result<(), Refusal> {
        let PreparedForward { forward, message_id, subject, size, body } = prepared;
        let inner = &self.inner;
        let server_id = self.find_or_create_service_server().await?;
        let (ids, now) = (inner.store.ids()?, inner.clock.now());
        let info = SendInfo {
            server_id,
            id: SendId(ids.next()),
            credential_id: None,
            message_id,
            mail_from: forward.mail_from,
            // Not the sender's domain: analytics would count under a name that anybody can choose.
            from_domain: inner.hostname.as_str().to_owned(),
            subject,
            tag: None,
            metadata: BTreeMap::new(),
            options: SendOptions {
                host: Some(inner.hostname.clone()),
                protocol: Protocol::Esmtp,
                ..SendOptions::default()
            },
            size,
            direction: Direction::Outgoing,
            // Sends with the empty sender; `mail_from` is only recorded.
            bounce: true,
            received_with_ssl: forward.received_with_ssl,
            test: false,
            created_at: now,
        };
        let recipients = new_recipients(&[forward.to], &ids, &inner.simulator_domain);
        let send = NewSend {
            info,
            body,
            recipients,
            state: InitialState::Pending,
            idempotency: None,
            hourly_limit: None,
            account_limits: None,
            batch_id: None,
        };
        inner.store.accept(send).await?;
        tracing::info!(server.id = %server_id, "mail forwarded to the operator");
        Ok(())
    }
}
