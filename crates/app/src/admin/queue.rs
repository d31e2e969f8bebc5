//! Admin commands for messages that are queued or held.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId};
use postroad_store::{AuditSubject, CancelResult, RetryResult, Store, StoreError};

use crate::App;
use crate::access::Operation;
use crate::accounts::Requester;

#[boxed_futures]
impl App {
    /// Makes a queued message due now, or puts a held message into the queue.
    pub async fn retry_waiting(&self, server_id: ServerId, id: MessageId) -> Result<RetryResult, StoreError> {
        let store = self.audited_store_for_changes(Operation::MessagesRetry, server_id);
        store.retry(server_id, id, self.inner.simulator_domain.clone()).await
    }

    /// Cancels a message that is queued or held.
    pub async fn cancel_waiting(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<CancelResult, StoreError> {
        self.audited_store_for_changes(Operation::SendCancel, server_id).cancel(server_id, id).await
    }

    fn audited_store_for_changes(&self, operation: Operation, server_id: ServerId) -> Store {
        self.audited_store(&Requester::command_line(), operation, AuditSubject::Messages(server_id))
    }
}
