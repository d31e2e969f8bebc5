//! send/batch: many messages in one transaction. Each message passes the checks of send/message.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{BatchId, Limits};
use postroad_store::{Accepted, NewSend};
use tokio::time::Instant;

use super::accept::CompressedMessage;
use super::answer::SendAnswer;
use super::batch_answer::{BatchAnswer, BatchResult, ProblemBudget};
use super::batch_warnings::BatchWarnings;
use super::draft::{MessageDraft, SendContext};
use super::idempotency::{KeyGuard, WAIT_MAX};
use crate::templates::BatchWork;
use crate::{App, FieldProblem, Refusal};

/// Rough memory of a message in addition to its bytes: addresses, ids, options and rows.
const MESSAGE_OVERHEAD_BYTES: usize = 4 << 10;

/// Whether the valid messages of a batch are accepted if others are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BatchMode {
    /// Valid messages are accepted.
    #[default]
    Independent,
    /// No message is accepted.
    Atomic,
}

#[derive(Debug)]
pub enum BatchStart {
    /// The idempotency key was used before for the same request: the stored answer.
    Replayed(BatchAnswer),
    New(Box<Batch>),
}

#[derive(Debug)]
pub enum BatchOutcome {
    /// All messages that could be accepted are on stable storage.
    Done(BatchAnswer),
    /// An atomic batch with messages that were refused: nothing was accepted.
    Rejected { results: Vec<BatchResult>, warnings: Vec<String> },
}

/// A batch whose messages are being checked. Nothing is stored before `finish`.
#[derive(Debug)]
pub struct Batch {
    app: App,
    context: SendContext,
    mode: BatchMode,
    deadline: Instant,
    /// Set if the batch has a key: no other request of this process uses the key meanwhile.
    _key_guard: Option<KeyGuard>,
    /// Result of the checks of each message added so far.
    checked: Vec<Result<CompressedMessage, Refusal>>,
    recipients: usize,
    /// Bytes that the checked messages keep in memory.
    memory_bytes: usize,
    /// Text about the limit that the messages would exceed together; further messages are refused with it.
    exceeded_limit: Option<String>,
    problems: ProblemBudget,
    warnings: BatchWarnings,
    /// Work that the templates of the batch may still do.
    work: Arc<BatchWork>,
}

#[boxed_futures]
impl App {
    /// Begins a batch, unless its key was used before.
    pub async fn begin_batch(&self, context: SendContext, mode: BatchMode) -> Result<BatchStart, Refusal> {
        let deadline = Instant::now() + WAIT_MAX;
        let mut key_guard = None;
        if let Some(request) = &context.idempotency {
            let server_id = context.caller.server_id;
            key_guard = Some(self.inner.in_progress.lock_key(server_id, &request.key, deadline).await?);
            let stored = self.inner.store.find_idempotent_answer(server_id, request.key.clone()).await?;
            if let Some(stored) = stored {
                return request.replay(&stored).map(BatchStart::Replayed);
            }
        }
        Ok(BatchStart::New(Box::new(Batch {
            app: self.clone(),
            context,
            mode,
            deadline,
            _key_guard: key_guard,
            checked: Vec::new(),
            recipients: 0,
            memory_bytes: 0,
            exceeded_limit: None,
            problems: ProblemBudget::default(),
            warnings: BatchWarnings::default(),
            work: Arc::default(),
        })))
    }
}

#[boxed_futures]
impl Batch {
    /// Checks and composes the next message, or records why the entry point could not parse it. Returns the bytes that
    /// the messages so far keep in memory. `Err` ends the whole batch.
    pub async fn add(&mut self, message: Result<MessageDraft<'_>, Refusal>) -> Result<usize, Refusal> {
        let checked = match (message, &self.exceeded_limit) {
            // The message is refused anyway; composing it would only cost time.
            (Ok(_), Some(text)) => Err(Refusal::Validation(vec![FieldProblem::new("", text.clone())])),
            (Ok(draft), None) => self.app.check_message(&self.context.caller, draft, Some(&self.work)).await,
            (Err(refusal), _) => Err(refusal),
        };
        let index = self.checked.len();
        let checked = match checked {
            Err(failed @ (Refusal::Unavailable(_) | Refusal::Internal(_))) => return Err(failed),
            Err(refusal) => Err(self.problems.refusal_at(index, refusal)),
            Ok(mut compressed) => {
                self.warn(compressed.take_warnings());
                match self.count(&compressed) {
                    Ok(()) => Ok(compressed),
                    Err(text) => {
                        let problem = FieldProblem::new("", text.clone());
                        self.exceeded_limit = Some(text);
                        Err(self.problems.refusal_at(index, Refusal::Validation(vec![problem])))
                    }
                }
            }
        };
        self.checked.push(checked);
        Ok(self.memory_bytes)
    }

    /// Adds warnings about the next message.
    pub fn warn(&mut self, warnings: Vec<String>) {
        for text in warnings {
            self.warnings.add(self.checked.len(), text);
        }
    }

    /// Counts a message. If the batch would then exceed a limit, the message is not counted, and `Err` names the limit.
    fn count(&mut self, compressed: &CompressedMessage) -> Result<(), String> {
        let recipients = self.recipients + compressed.recipient_count();
        let memory_bytes = self.memory_bytes + compressed.memory_bytes() + MESSAGE_OVERHEAD_BYTES;
        let recipients_max = Limits::BATCH_RECIPIENTS_MAX;
        let bytes_max = self.app.inner.limits.batch_bytes_max;
        if recipients > recipients_max {
            return Err(format!(
                "The messages of the batch have more than {recipients_max} recipients together; send fewer at once"
            ));
        }
        // Templates and defaults can turn a small request into large messages.
        if memory_bytes > 2 * bytes_max {
            return Err(format!(
                "The messages of the batch are together much larger than {bytes_max} bytes; send fewer at once"
            ));
        }
        (self.recipients, self.memory_bytes) = (recipients, memory_bytes);
        Ok(())
    }

    fn all_warnings(&self) -> Vec<String> {
        self.context.warnings.iter().cloned().chain(self.warnings.texts()).collect()
    }

    /// Accepts the messages that passed, in one transaction.
    pub async fn finish(self) -> Result<BatchOutcome, Refusal> {
        let has_refused = self.checked.iter().any(Result::is_err);
        if has_refused && self.mode == BatchMode::Atomic {
            let warnings = self.all_warnings();
            let result = |checked| match checked {
                Ok(_) => BatchResult::NotSent,
                Err(refusal) => BatchResult::Refused(refusal),
            };
            let results = self.checked.into_iter().map(result).collect();
            return Ok(BatchOutcome::Rejected { results, warnings });
        }
        loop {
            match self.store().await {
                // Another node holds the key. The store gave up after a second; retry until the deadline.
                Err(Refusal::IdempotencyInProgress) if Instant::now() < self.deadline => {}
                done => return done.map(BatchOutcome::Done),
            }
        }
    }

    async fn store(&self) -> Result<BatchAnswer, Refusal> {
        let (app, context) = (&self.app, &self.context);
        let ids = app.inner.store.ids()?;
        let now = app.inner.clock.now();
        // The batch id is taken first, so that it is lower than the ids of all messages of the batch.
        let batch_id = BatchId(ids.next());
        let mut sends: Vec<NewSend> = Vec::with_capacity(self.checked.len());
        let mut result = |checked: &Result<CompressedMessage, Refusal>| match checked {
            Err(refusal) => BatchResult::Refused(refusal.clone()),
            Ok(compressed) => {
                let (send, answer) = app.new_send(context, compressed.clone(), &ids, now);
                sends.push(NewSend { batch_id: Some(batch_id), ..send });
                let SendAnswer { message_id, messages, .. } = answer;
                BatchResult::Accepted { message_id, messages }
            }
        };
        let answer = BatchAnswer {
            batch_id,
            results: self.checked.iter().map(&mut result).collect(),
            test_mode: context.test || context.caller.test,
            warnings: self.all_warnings(),
            replayed: false,
            limits: Vec::new(),
        };
        let Some(first) = sends.first_mut() else { return Ok(answer) };
        first.idempotency = context.idempotency.as_ref().map(|request| request.with_answer(&answer, now));
        let (server_id, credential_id, messages) =
            (context.caller.server_id, context.caller.credential_id, sends.len());
        match app.inner.store.accept_batch(sends).await? {
            Accepted::Stored(limits) => {
                tracing::debug!(server.id = server_id.0, credential.id = credential_id.map(|id| id.0), batch.id = %batch_id, messages, "batch accepted");
                Ok(BatchAnswer { limits, ..answer })
            }
            Accepted::Repeated(stored) => {
                let request = context.idempotency.as_ref().expect("a repetition has a key");
                request.replay(&stored)
            }
        }
    }
}
