//! The installation as its operator sees it in the portal.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_store::{NodeRecord, PacingNote};

use crate::App;
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester};
use crate::domains::check::RecordCheck;

/// Notes about receivers are shown for this long.
const NOTES_TIME: Duration = Duration::from_hours(24);
const NOTES_MAX: usize = 200;

#[derive(Debug, Clone)]
pub struct InstallationStatus {
    /// Running nodes, then nodes that were seen in the last seven days.
    pub nodes: Vec<NodeRecord>,
    pub is_in_maintenance: bool,
    /// Limits of receivers learned within the last day, newest first.
    pub pacing_notes: Vec<PacingNote>,
    /// Version of Postroad on the node that answers.
    pub version: &'static str,
}

#[boxed_futures]
impl App {
    pub async fn installation_status(&self, by: &Requester) -> Result<InstallationStatus, AccountRefusal> {
        self.permit_operator(by, Operation::InstallationStatus)?;
        let since = self.inner.clock.now().minus(NOTES_TIME);
        Ok(InstallationStatus {
            nodes: self.list_nodes(by).await?,
            is_in_maintenance: self.is_in_maintenance().await?,
            pacing_notes: self.inner.store.list_pacing_notes(since, NOTES_MAX).await?,
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// The installation's host name, and its own DNS records with their current DNS content.
    pub async fn check_installation_records(
        &self,
        by: &Requester,
    ) -> Result<(String, Vec<RecordCheck>), AccountRefusal> {
        self.permit_operator(by, Operation::InstallationRecords)?;
        let checked = self.check_installation().await;
        checked.map_err(|error| AccountRefusal::Refused(crate::Refusal::Internal(error.to_string())))
    }

    /// Permission check of operations on the whole installation. Public for pages that call no function of `app` with
    /// this check, such as the inbox of `postroad dev`.
    pub fn permit_operator(&self, by: &Requester, operation: Operation) -> Result<(), AccountRefusal> {
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)
    }
}
