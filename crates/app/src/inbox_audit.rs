//! Audit entry of an action on data in memory: the operator deletes messages from the inbox of `postroad dev`.

use postroad_boxed_futures::boxed_futures;
use postroad_store::AuditSubject;

use crate::App;
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};

/// Setting with the time when messages were last deleted from the inbox.
const INBOX_SETTING: &str = "inbox_cleared_at";

#[boxed_futures]
impl App {
    /// Records that the operator deletes one or all messages of the inbox. Call it before they are deleted.
    pub async fn record_inbox_clearing(&self, by: &Requester) -> Result<(), AccountRefusal> {
        let operation = Operation::InstallationClearInbox;
        self.permit_operator(by, operation)?;
        let store = self.audited_store(by, operation, AuditSubject::Setting(INBOX_SETTING));
        Ok(store.set_setting(INBOX_SETTING, Some(self.inner.clock.now().to_rfc3339())).await?)
    }
}
