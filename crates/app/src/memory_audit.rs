//! Audit entries of actions on data in memory: the request inspector, and the inbox of `postroad dev`.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{AuditSubject, StoreError};

use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};
use crate::{App, Caller};

/// Setting with the time when the inbox was last emptied.
const INBOX_SETTING: &str = "inbox_cleared_at";

#[boxed_futures]
impl App {
    /// Records that the caller opens the request inspector of the server.
    pub async fn record_opened_inspector(&self, caller: &Caller) -> Result<(), StoreError> {
        self.record_inspector(caller, Operation::WebhooksOpenInspector, "opened").await
    }

    /// Records that the caller removes the requests of the inspector.
    pub async fn record_cleared_inspector(&self, caller: &Caller) -> Result<(), StoreError> {
        self.record_inspector(caller, Operation::WebhooksClearInspector, "cleared").await
    }

    async fn record_inspector(
        &self,
        caller: &Caller,
        operation: Operation,
        done: &'static str,
    ) -> Result<(), StoreError> {
        let subject = AuditSubject::Inspector(caller.server_id);
        self.recording(&caller.requester(), operation, subject).record_action("inspector", done).await
    }

    /// Records that the operator deletes all caught messages.
    pub async fn record_cleared_inbox(&self, by: &Requester) -> Result<(), AccountRefusal> {
        let operation = Operation::InstallationClearInbox;
        self.permit_operator(by, operation)?;
        let store = self.recording(by, operation, AuditSubject::Setting(INBOX_SETTING));
        Ok(store.set_setting(INBOX_SETTING, Some(self.inner.clock.now().to_rfc3339())).await?)
    }
}
