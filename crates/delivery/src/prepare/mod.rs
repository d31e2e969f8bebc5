//! Prepares a stored message for sending: return path, `Received`, `X-Postroad-Id`, feedback headers and DKIM
//! signature. All are derived from the stored message and the setup of its From domain, so every attempt on every node
//! sends identical bytes until that setup changes.

mod accounts;
mod memory;
mod own_domains;
mod personal;
mod signed_head;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use postroad_mail::{
    ReturnPathKey, RewritePlan, TrackKey, has_utf8_header, postroad_id_field, received_field,
};
use postroad_model::{DomainName, EmailAddress, MessageId, MessageToken, SendId, ServerId, Timestamp};
use postroad_smtp::{Body, OutgoingMessage};
use postroad_store::{FreshMessages, Message, SendInfo, Store, StoreError};
use tokio::sync::OnceCell;

pub(crate) use memory::FreshMemory;
pub(crate) use own_domains::OwnDomains;
pub(crate) use signed_head::SigningKeys;

use crate::signing::SigningPool;
use signed_head::{HeadSigner, SignedHead};

/// Everything needed to send one message.
#[derive(Debug)]
pub(crate) struct LoadedMessage {
    pub(crate) server_id: ServerId,
    pub(crate) message_id: MessageId,
    pub(crate) token: MessageToken,
    pub(crate) rcpt_to: String,
    /// Time of sending that the caller chose.
    pub(crate) send_at: Option<Timestamp>,
    /// When the message was released, if it was held.
    pub(crate) released_at: Option<Timestamp>,
    pub(crate) send: Arc<PreparedSend>,
}

impl LoadedMessage {
    pub(crate) fn size(&self) -> u64 {
        self.send.info.size
    }

    /// When the message was first due: the latest of acceptance, `send_at` and release. The retry period starts then.
    pub(crate) fn first_due(&self) -> Timestamp {
        let accepted_at = self.send.info.created_at;
        [self.send_at, self.released_at].into_iter().flatten().fold(accepted_at, Timestamp::max)
    }
}

/// Data shared by the messages of one send: read once, and signed at most once for each of its two heads unless
/// each copy has its own links.
#[derive(Debug)]
pub(crate) struct PreparedSend {
    pub(crate) info: Arc<SendInfo>,
    body: OnceCell<Bytes>,
    head: OnceCell<SignedHead>,
    /// `head` for receivers whose feedback loop uses DKIM signatures.
    feedback_head: OnceCell<SignedHead>,
    /// Positions where the copies of a tracked send differ.
    plan: OnceCell<Arc<RewritePlan>>,
    /// The send's share of the memory for fresh messages; `None` if the send was read from the store.
    _share: Option<memory::Share>,
}

/// A message ready to be sent.
#[derive(Debug)]
pub(crate) struct PreparedMessage {
    pub(crate) message: OutgoingMessage,
    /// DNS names of the DKIM keys that signed the message.
    pub(crate) dkim: Option<Arc<str>>,
}

/// Why a message cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    /// Temporary if it is `StoreError::Unavailable`, otherwise permanent.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Permanent.
    #[error("the stored message cannot be sent: {0}")]
    Broken(String),
}

impl PrepareError {
    /// The reason for delivery records. The store's own error text is only in the log.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Store(_) => "the stored message cannot be read".to_owned(),
            Self::Broken(_) => self.to_string(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Preparer {
    store: Store,
    /// `None` where a smart host signs.
    head_signer: Option<HeadSigner>,
    domains: OwnDomains,
    return_paths: ReturnPathKey,
    track_key: TrackKey,
    hostname: DomainName,
    /// Domain of return paths, unless the From domain has its own.
    return_domain: DomainName,
    memory: Arc<FreshMemory>,
    /// Sends that were read from the store and have messages being worked on.
    sends: Mutex<HashMap<SendId, Weak<PreparedSend>>>,
}

impl Preparer {
    pub(crate) fn new(
        store: Store,
        signing_pool: Option<SigningPool>,
        domains: OwnDomains,
        secret: &[u8; 32],
        hostname: DomainName,
        return_domain: DomainName,
        fresh_bytes_max: usize,
    ) -> Self {
        Self {
            head_signer: signing_pool.map(|pool| HeadSigner::new(store.clone(), pool, secret)),
            store,
            domains,
            return_paths: ReturnPathKey::new(secret),
            track_key: TrackKey::new(secret),
            hostname,
            return_domain,
            memory: FreshMemory::new(fresh_bytes_max),
            sends: Mutex::default(),
        }
    }

    /// Takes the messages of a send that was just accepted. `None` if there is no memory for them: they are
    /// then read from the store at their turn.
    pub(crate) fn take_fresh(&self, fresh: &FreshMessages) -> Option<Vec<Arc<LoadedMessage>>> {
        let share = self.memory.reserve(fresh.body.len(), fresh.recipients.len())?;
        let send = Arc::new(PreparedSend {
            info: Arc::clone(&fresh.send),
            body: OnceCell::new_with(Some(fresh.body.clone())),
            head: OnceCell::new(),
            feedback_head: OnceCell::new(),
            plan: OnceCell::new(),
            _share: Some(share),
        });
        let loaded_messages = fresh.recipients.iter().map(|recipient| {
            Arc::new(LoadedMessage {
                server_id: fresh.send.server_id,
                message_id: recipient.message_id,
                token: recipient.token.clone(),
                rcpt_to: recipient.rcpt_to.clone(),
                send_at: fresh.send.options.send_at,
                released_at: None,
                send: Arc::clone(&send),
            })
        });
        Some(loaded_messages.collect())
    }

    /// Takes a message that was read from the store.
    pub(crate) fn take_loaded(&self, message: Message) -> Arc<LoadedMessage> {
        let send = self.shared_send(message.send);
        Arc::new(LoadedMessage {
            server_id: send.info.server_id,
            message_id: message.id,
            token: message.token,
            rcpt_to: message.rcpt_to,
            send_at: message.send_at,
            released_at: message.released_at,
            send,
        })
    }

    fn shared_send(&self, info: Arc<SendInfo>) -> Arc<PreparedSend> {
        let mut sends = self.sends.lock();
        if let Some(send) = sends.get(&info.id).and_then(Weak::upgrade) {
            return send;
        }
        if sends.len() >= 4_096 {
            sends.retain(|_, send| send.strong_count() > 0);
        }
        let id = info.id;
        let send = Arc::new(PreparedSend {
            info,
            body: OnceCell::new(),
            head: OnceCell::new(),
            feedback_head: OnceCell::new(),
            plan: OnceCell::new(),
            _share: None,
        });
        sends.insert(id, Arc::downgrade(&send));
        send
    }

    /// The message as it is sent to this recipient.
    pub(crate) async fn outgoing(
        &self,
        loaded_message: &LoadedMessage,
        signing_keys: SigningKeys,
    ) -> Result<PreparedMessage, PrepareError> {
        let send = &loaded_message.send;
        let info = &send.info;
        let read =
            || async { self.store.read_body(info.server_id, info.id, info.size).await.map(Bytes::from) };
        let body = send.body.get_or_try_init(read).await?;
        let copy = match &info.options.tracking {
            None => None,
            Some(tracking) => {
                let plan = send.plan.get_or_try_init(|| personal::plan(tracking, body)).await?;
                personal::copy(Arc::clone(plan), tracking, &self.track_key, loaded_message, body).await?
            }
        };
        let (body, head) = if let Some(copy) = copy {
            let head = self.sign(info, &copy, signing_keys).await?;
            (copy, head)
        } else {
            let signed = match signing_keys {
                SigningKeys::Usual => &send.head,
                SigningKeys::ForFeedback => &send.feedback_head,
            };
            let head = signed.get_or_try_init(|| self.sign(info, body, signing_keys)).await?;
            (body.clone(), head.clone())
        };
        let broken = |problem: String| PrepareError::Broken(problem);
        // The error does not quote the address, because its text goes into the log.
        let rcpt_to = EmailAddress::parse(&loaded_message.rcpt_to)
            .map_err(|e| broken(format!("its recipient is not an address: {e}")))?;
        // The local part of the return path is also the value of `X-Postroad-Id`.
        let id = self.return_paths.local_part(
            loaded_message.server_id,
            loaded_message.message_id,
            &loaded_message.token,
        );
        let mail_from = if info.bounce { None } else { Some(self.return_path(loaded_message, &id).await?) };
        let protocol = info.options.protocol.as_str();
        let mut trace = received_field(self.host_of(info), &loaded_message.token, protocol, info.created_at);
        trace.push_str(&postroad_id_field(&id));
        let has_utf8_header = has_utf8_header(&body);
        let parts = vec![Bytes::from(trace), head.bytes, body];
        let message = OutgoingMessage {
            mail_from,
            rcpt_to,
            body: Body::parse(parts).map_err(|e| broken(e.to_string()))?,
            has_utf8_header,
        };
        Ok(PreparedMessage { message, dkim: head.keys })
    }

    /// The host that accepted the message; our own for messages of older versions.
    fn host_of<'a>(&'a self, info: &'a SendInfo) -> &'a DomainName {
        info.options.host.as_ref().unwrap_or(&self.hostname)
    }

    /// The return path, which is in the envelope only. Its domain is the From domain's own bounce domain if that points
    /// here, which aligns SPF; else the installation's, whose SPF record has the addresses of all nodes.
    async fn return_path(
        &self,
        loaded_message: &LoadedMessage,
        local_part: &str,
    ) -> Result<EmailAddress, PrepareError> {
        let own = match DomainName::parse(&loaded_message.send.info.from_domain) {
            Ok(domain) => self.domains.find(loaded_message.server_id, domain).await?,
            Err(_) => None,
        };
        let domain = own.as_ref().and_then(|own| own.return_domain.as_ref()).unwrap_or(&self.return_domain);
        EmailAddress::parse(&format!("{local_part}@{domain}"))
            .map_err(|e| PrepareError::Broken(format!("its return path is not an address: {e}")))
    }

    /// Signs `body`. The result is empty if a smart host signs. `outgoing` keeps the result for recipients that get the
    /// same bytes.
    async fn sign(
        &self,
        info: &SendInfo,
        body: &Bytes,
        signing_keys: SigningKeys,
    ) -> Result<SignedHead, PrepareError> {
        match &self.head_signer {
            Some(signer) => signer.sign(&self.domains, info, body, signing_keys).await,
            None => Ok(SignedHead::default()),
        }
    }

    /// Clears the cached domains, so that later messages read them again. Call this after a change of the setup.
    pub(crate) fn forget_domains(&self) {
        self.domains.forget();
    }
}
