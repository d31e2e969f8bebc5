//! Stores a checked message.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_mail::has_attachment;
use postroad_model::{
    CredentialId, Direction, DomainName, EmailAddress, HoldReason, IdGenerator, MessageId, MessageToken,
    SendId, ServerMode, Timestamp,
};
use postroad_store::{
    Accepted, HELD_IN_DEVELOPMENT, InitialState, NewRecipient, NewSend, SendInfo, SendOptions, StoredBody,
};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::answer::{AcceptedMessage, SendAnswer};
use super::draft::SendContext;
use super::idempotency::WAIT_MAX;
use crate::{App, Refusal};

/// Time after which a hold expires.
const HOLD_DURATION: Duration = Duration::from_hours(7 * 24);
/// Larger messages are processed on a blocking thread.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// A message that passed every check.
#[derive(Clone)]
pub(super) struct CheckedMessage {
    pub(super) bytes: Vec<u8>,
    pub(super) message_id: String,
    pub(super) mail_from: String,
    pub(super) from_domain: String,
    pub(super) subject: String,
    pub(super) tag: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) options: SendOptions,
    pub(super) bounce: bool,
    pub(super) recipients: Vec<EmailAddress>,
    /// Warnings for the sender about ignored parts of the message.
    pub(super) warnings: Vec<String>,
}

/// A checked message with compressed bytes: cheap to pass to the store twice.
#[derive(Clone)]
pub(super) struct CompressedMessage {
    /// The message without its bytes, which are in `body`.
    checked: CheckedMessage,
    size: u64,
    body: StoredBody,
}

impl fmt::Debug for CompressedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompressedMessage")
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

impl CompressedMessage {
    pub(super) fn recipient_count(&self) -> usize {
        self.checked.recipients.len()
    }

    /// Bytes that this value keeps in memory: the original bytes of the message, and their compressed form.
    pub(super) fn memory_bytes(&self) -> usize {
        self.size as usize + self.body.compressed_bytes()
    }

    /// Warnings for the sender about ignored parts of the message.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        mem::take(&mut self.checked.warnings)
    }
}

impl CheckedMessage {
    pub(super) async fn compress(mut self) -> Result<CompressedMessage, Refusal> {
        let bytes = mem::take(&mut self.bytes);
        self.options.attachment = has_attachment(&bytes);
        let size = bytes.len() as u64;
        Ok(CompressedMessage { checked: self, size, body: compress(bytes).await? })
    }
}

impl App {
    /// Returns the answer of an earlier request with the same idempotency key, or runs `work`. While another node holds
    /// the key, runs `work` again until the deadline.
    // Not `AsyncFn`: the compiler cannot show that the future of an `AsyncFn` is `Send`.
    pub(super) async fn run_once_per_key<W>(
        &self,
        context: &SendContext,
        work: impl Fn() -> W,
    ) -> Result<SendAnswer, Refusal>
    where
        W: Future<Output = Result<SendAnswer, Refusal>>,
    {
        let Some(request) = &context.idempotency else { return work().await };
        let deadline = Instant::now() + WAIT_MAX;
        let server_id = context.caller.server_id;
        loop {
            let _key_guard = self.inner.in_progress.lock_key(server_id, &request.key, deadline).await?;
            if let Some(stored) =
                self.inner.store.find_idempotent_answer(server_id, request.key.clone()).await?
            {
                return request.replay(&stored);
            }
            match work().await {
                // Another node holds the key. The store gave up after a second; retry until the deadline.
                Err(Refusal::IdempotencyInProgress) if Instant::now() < deadline => {}
                done => return done,
            }
        }
    }

    /// Checks a request once, and repeats only the storing while another node holds its idempotency key. The request is
    /// dropped once it is checked: request and compressed message together would exceed the memory limit of a request.
    pub(super) async fn check_once_and_store<D, C>(
        &self,
        context: &SendContext,
        draft: D,
        check: impl Fn(D) -> C,
    ) -> Result<SendAnswer, Refusal>
    where
        C: Future<Output = Result<CompressedMessage, Refusal>>,
    {
        if context.idempotency.is_none() {
            return self.store_compressed(context, check(draft).await?).await;
        }
        let draft = Mutex::new(Some(draft));
        let compressed = OnceCell::new();
        self.run_once_per_key(context, || async {
            let make = || async {
                let draft = draft.lock().take();
                let checked_twice = || Refusal::Internal("a send was checked twice".into());
                check(draft.ok_or_else(checked_twice)?).await
            };
            let compressed: &CompressedMessage = compressed.get_or_try_init(make).await?;
            self.store_compressed(context, compressed.clone()).await
        })
        .await
    }

    /// When this returns `Ok`, the message and its queue entries are on stable storage.
    pub(super) async fn store_compressed(
        &self,
        context: &SendContext,
        compressed: CompressedMessage,
    ) -> Result<SendAnswer, Refusal> {
        let ids = self.inner.store.ids()?;
        let now = self.inner.clock.now();
        let (mut send, answer) = self.new_send(context, compressed, &ids, now);
        send.idempotency = context.idempotency.as_ref().map(|request| request.with_answer(&answer, now));
        let (server_id, credential_id, send_id) =
            (send.info.server_id, context.caller.credential_id, send.info.id);
        match self.inner.store.accept(send).await? {
            Accepted::Stored(limits) => {
                log_accepted(server_id.0, credential_id, send_id, answer.messages.len());
                Ok(SendAnswer { limits, ..answer })
            }
            Accepted::Repeated(stored) => {
                let request = context.idempotency.as_ref().expect("a repetition has a key");
                request.replay(&stored)
            }
        }
    }

    /// A send with its ids, without an idempotency key; and the answer to give once the send is stored.
    pub(super) fn new_send(
        &self,
        context: &SendContext,
        compressed: CompressedMessage,
        ids: &IdGenerator,
        now: Timestamp,
    ) -> (NewSend, SendAnswer) {
        let CompressedMessage { checked, size, body } = compressed;
        let test = context.test || context.caller.test;
        let state = initial_state(context, test, checked.options.send_at, now);
        let recipients = new_recipients(&checked.recipients, ids, &self.inner.simulator_domain);
        let answer = SendAnswer {
            message_id: checked.message_id.clone(),
            messages: recipients
                .iter()
                .map(|recipient| AcceptedMessage {
                    address: recipient.rcpt_to.clone(),
                    id: recipient.id,
                    token: recipient.token.clone(),
                })
                .collect(),
            test_mode: test,
            warnings: context.warnings.iter().chain(&checked.warnings).cloned().collect(),
            replayed: false,
            limits: Vec::new(),
        };
        let info = SendInfo {
            server_id: context.caller.server_id,
            id: SendId(ids.next()),
            credential_id: context.caller.credential_id,
            message_id: checked.message_id,
            mail_from: checked.mail_from,
            from_domain: checked.from_domain,
            subject: checked.subject,
            tag: checked.tag,
            metadata: checked.metadata,
            options: SendOptions { host: Some(self.inner.hostname.clone()), ..checked.options },
            size,
            direction: Direction::Outgoing,
            bounce: checked.bounce,
            received_with_ssl: context.caller.peer.tls,
            test,
            created_at: now,
        };
        let (hourly_limit, account_limits) = (context.caller.hourly_limit, context.caller.account_limits);
        let send = NewSend {
            info,
            body,
            recipients,
            state,
            idempotency: None,
            hourly_limit,
            account_limits,
            batch_id: None,
        };
        (send, answer)
    }
}

fn log_accepted(server_id: i64, credential_id: Option<CredentialId>, send_id: SendId, messages: usize) {
    tracing::debug!(server.id = server_id, credential.id = credential_id.map(|id| id.0), send.id = %send_id, messages, "accepted");
}

fn initial_state(
    context: &SendContext,
    test: bool,
    send_at: Option<Timestamp>,
    now: Timestamp,
) -> InitialState {
    let held = |reason, details: &str| InitialState::Held {
        reason,
        details: details.to_owned(),
        expiry: now.plus(HOLD_DURATION),
    };
    if test {
        return InitialState::TestSent { details: "Test mode: validated, not delivered".to_owned() };
    }
    if context.caller.mode == ServerMode::Development {
        return held(HoldReason::Development, HELD_IN_DEVELOPMENT);
    }
    if context.caller.hold {
        let details = "The credential holds all messages sent with it until they are released";
        return held(HoldReason::Credential, details);
    }
    match send_at {
        Some(at) if at > now => InitialState::Scheduled(at),
        _ => InitialState::Pending,
    }
}

pub(super) fn new_recipients(
    addresses: &[EmailAddress],
    ids: &IdGenerator,
    simulator_domain: &DomainName,
) -> Vec<NewRecipient> {
    let mut rng = rand::rng();
    addresses
        .iter()
        .map(|address| NewRecipient {
            id: MessageId(ids.next()),
            token: MessageToken::random(&mut rng),
            rcpt_to: address.as_str().to_owned(),
            domain: address.domain().clone(),
            exempt: address.domain() == simulator_domain,
        })
        .collect()
}

async fn compress(bytes: Vec<u8>) -> Result<StoredBody, Refusal> {
    Ok(run_blocking_if_large(bytes.len(), move || StoredBody::compress(bytes)).await??)
}

/// Runs `work`, which processes a message of `bytes` bytes: inline, or on a blocking thread if the message is large.
pub(super) async fn run_blocking_if_large<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    if bytes <= INLINE_BYTES_MAX {
        return Ok(work());
    }
    let working = tokio::task::spawn_blocking(work);
    working.await.map_err(|_| Refusal::Unavailable("the service is stopping".into()))
}
