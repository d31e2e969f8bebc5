//! Mail from the service itself to people who use the portal, such as a link to set a password.

use std::collections::BTreeMap;

use postroad_mail::Composition;
use postroad_model::{Direction, EmailAddress, Mailbox, Protocol, SendId};
use postroad_store::{Accepted, InitialState, NewSend, SendInfo, SendOptions, StoredBody};

use super::IdempotencyRequest;
use super::accept::new_recipients;
use crate::{App, FieldProblem, Refusal};

const SENDER_NAME: &str = "Postroad";

impl App {
    /// Sends a notice. When this returns `Ok`, the message and its queue entry are on stable storage. The notice is
    /// delivered like every other message, under the server of the installation. Sends nothing if `idempotency` has the
    /// key of an earlier notice.
    pub(crate) async fn send_notice(
        &self,
        to: EmailAddress,
        subject: &str,
        text: &str,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<(), Refusal> {
        let inner = &self.inner;
        let from = self.notice_sender()?;
        let server_id = self.find_or_create_service_server().await?;
        let (ids, now) = (inner.store.ids()?, inner.clock.now());
        let message_id = self.new_message_id(server_id);
        let bytes = postroad_mail::compose(&Composition {
            to: &[Mailbox { name: None, address: to.clone() }],
            plain_body: Some(text),
            headers: &[("Auto-Submitted".to_owned(), "auto-generated".to_owned())],
            ..Composition::new(&from, subject, &now.to_rfc2822(), &message_id)
        });
        let size = bytes.len() as u64;
        let info = SendInfo {
            server_id,
            id: SendId(ids.next()),
            credential_id: None,
            message_id,
            mail_from: from.address.as_str().to_owned(),
            from_domain: from.address.domain().as_str().to_owned(),
            subject: subject.to_owned(),
            tag: None,
            metadata: BTreeMap::new(),
            options: SendOptions {
                host: Some(inner.hostname.clone()),
                protocol: Protocol::Http,
                ..SendOptions::default()
            },
            size,
            direction: Direction::Outgoing,
            bounce: false,
            received_with_ssl: true,
            test: false,
            created_at: now,
        };
        let send = NewSend {
            info,
            body: StoredBody::compress(bytes)?,
            recipients: new_recipients(&[to], &ids, &inner.simulator_domain),
            state: InitialState::Pending,
            idempotency: idempotency.map(|request| request.with_answer(&(), now)),
            hourly_limit: None,
            account_limits: None,
            batch_id: None,
        };
        match inner.store.accept(send).await? {
            Accepted::Stored(_) => tracing::info!(server.id = %server_id, "notice to a person queued"),
            Accepted::Repeated(_) => {}
        }
        Ok(())
    }

    /// The configured sender, or a default at this node's host name.
    fn notice_sender(&self) -> Result<Mailbox, Refusal> {
        let name = Some(SENDER_NAME.to_owned());
        if let Some(address) = &self.inner.notices_from {
            return Ok(Mailbox { name, address: address.clone() });
        }
        let text = format!("postroad@{}", self.inner.hostname);
        let address = EmailAddress::parse(&text)
            .map_err(|problem| Refusal::Validation(vec![FieldProblem::new("/from", problem.to_string())]))?;
        Ok(Mailbox { name, address })
    }
}
