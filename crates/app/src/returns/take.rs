//! Accepts one returned message.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_mail::{Returned, ReturnedKind, returned};
use postroad_model::{Direction, EmailAddress, MessageId, MessageToken, SendId};
use postroad_store::{Message, NewReturn, SendInfo, SendOptions, StoreError, StoredBody};

use super::effect::{EffectContext, EventMail, effect};
use super::{ReturnAddress, ReturnReceiver, ReturnRefusal, ReturnedMail, merge};

/// Pause between two look-ups of the original message: a bounce can arrive before the outcome of the attempt is stored.
const SETTLE_WAIT: Duration = Duration::from_millis(100);
const SETTLE_WAITS_MAX: u32 = 20;
/// Lengths at which headers are cut: anybody can write a header of any length.
const SUBJECT_BYTES_MAX: usize = 998;
const MESSAGE_ID_BYTES_MAX: usize = 500;

impl ReturnReceiver {
    /// Stores the mail for each of the return paths, with its effect on their messages. Succeeds if at least one return
    /// path accepts the mail, and none fails temporarily.
    pub(super) async fn take_return(
        &self,
        paths: &[&ReturnAddress],
        mail: &ReturnedMail,
    ) -> Result<(), ReturnRefusal> {
        let (returned, body) = self.read_return(mail).await?;
        let mut outcome = Err(ReturnRefusal::Unknown);
        for path in paths {
            outcome = merge(outcome, self.take_at_path(path, mail, &returned, body.clone()).await)?;
        }
        outcome
    }

    /// Parses the mail, and compresses it for the store.
    pub(super) async fn read_return(
        &self,
        mail: &ReturnedMail,
    ) -> Result<(Returned, StoredBody), ReturnRefusal> {
        let bytes = mail.bytes.clone();
        let (returned, body) =
            self.parse_blocking(move || (returned::read(&bytes), StoredBody::compress(bytes))).await?;
        Ok((returned, body?))
    }

    async fn take_at_path(
        &self,
        to: &ReturnAddress,
        mail: &ReturnedMail,
        returned: &Returned,
        body: StoredBody,
    ) -> Result<(), ReturnRefusal> {
        let message = self.find_settled(to, returned.kind).await?;
        if !self.may_be_return_domain_of(to, &message) {
            return Err(ReturnRefusal::Unknown);
        }
        self.store_return(to, &message, mail, returned, body).await
    }

    /// Stores the returned mail, linked to `message`, and its effect on `message`.
    pub(super) async fn store_return(
        &self,
        to: &ReturnAddress,
        message: &Message,
        mail: &ReturnedMail,
        returned: &Returned,
        body: StoredBody,
    ) -> Result<(), ReturnRefusal> {
        let inner = &self.app.inner;
        let (ids, now) = (inner.store.ids()?, inner.clock.now());
        let id = MessageId(ids.next());
        let is_simulated = EmailAddress::parse(&message.rcpt_to)
            .is_ok_and(|address| *address.domain() == inner.simulator_domain);
        let token = MessageToken::random(&mut rand::rng());
        let subject = cut(&returned.subject.replace('\0', ""), SUBJECT_BYTES_MAX).to_owned();
        let event_mail = EventMail {
            token: token.0.clone(),
            to: to.address.clone(),
            from: mail.mail_from.clone(),
            subject: subject.clone(),
            message_id: message_id(returned),
        };
        let context = EffectContext { message, is_simulated, stored_id: id, mail: event_mail, now };
        let new = NewReturn {
            effect: effect(returned, &context),
            info: SendInfo {
                server_id: to.server_id,
                id: SendId(ids.next()),
                credential_id: None,
                message_id: message_id(returned),
                mail_from: mail.mail_from.clone(),
                from_domain: String::new(),
                subject,
                tag: None,
                metadata: BTreeMap::new(),
                options: SendOptions::default(),
                size: mail.bytes.len() as u64,
                direction: Direction::Incoming,
                bounce: true,
                received_with_ssl: mail.received_with_ssl,
                test: message.send.test,
                created_at: now,
            },
            body,
            id,
            token,
            rcpt_to: to.address.clone(),
            about: to.message_id,
        };
        let taken = inner.store.take_return(new).await.map_err(|error| match error {
            StoreError::NotFound => ReturnRefusal::Unknown,
            other => other.into(),
        })?;
        tracing::info!(
            message.id = %to.message_id,
            server.id = %to.server_id,
            kind = returned.kind.as_str(),
            stored = taken.is_stored,
            changes = taken.has_effect,
            "returned message received"
        );
        Ok(())
    }

    /// Whether the message's return path may have had the domain of `to`: `rp.<name>`, where the name is that of the
    /// installation, of this node or of the message's From domain.
    fn may_be_return_domain_of(&self, to: &ReturnAddress, message: &Message) -> bool {
        let name = to.address.rsplit_once('@').map_or("", |(_, name)| name);
        self.addresses.return_domains.iter().any(|own| name.eq_ignore_ascii_case(own))
            || name.eq_ignore_ascii_case(&format!("rp.{}", message.send.from_domain))
    }

    /// Finds the original message; waits briefly if its attempt is still being recorded.
    async fn find_settled(&self, to: &ReturnAddress, kind: ReturnedKind) -> Result<Message, ReturnRefusal> {
        let mut waits = 0;
        loop {
            let found = self.app.inner.store.find_message(to.server_id, to.message_id).await?;
            let message = found.ok_or(ReturnRefusal::Unknown)?;
            let is_early = kind == ReturnedKind::Bounce && message.status.is_queued();
            if !is_early || waits == SETTLE_WAITS_MAX {
                return Ok(message);
            }
            waits += 1;
            tokio::time::sleep(SETTLE_WAIT).await;
        }
    }
}

fn message_id(returned: &Returned) -> String {
    let id = returned.message_id.as_deref().unwrap_or_default().replace('\0', "");
    cut(&id, MESSAGE_ID_BYTES_MAX).to_owned()
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
