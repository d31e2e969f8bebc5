//! Audit entry of an action on data in memory: the inbox of `postroad dev` is emptied.

use postroad_boxed_futures::boxed_futures;
use postroad_store::AuditSubject;

use crate::App;
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};

/// Setting with the time when the inbox was last emptied.
const INBOX_SETTING: &str = "inbox_cleared_at";

#[boxed_futures]
impl App {
    /// Records that the operator deletes all caught messages.
    pub async fn record_cleared_inbox(&self, by: &Requester) -> Result<(), AccountRefusal> {
        let operation = Operation::InstallationClearInbox;
        self.permit_operator(by, operation)?;
        let store = self.recording(by, operation, AuditSubject::Setting(INBOX_SETTING));
        Ok(store.set_setting(INBOX_SETTING, Some(self.inner.clock.now().to_rfc3339())).await?)
    }
}
