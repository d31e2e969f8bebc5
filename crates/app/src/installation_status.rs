//! The installation as its operator sees it in the portal.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_store::PacingNote;

use crate::App;
use crate::access::{Operation, Subject, permit};
use crate::accounts::{AccountRefusal, Requester};
use crate::domains::check::RecordCheck;

/// Time for which notes about receivers are worth showing.
const NOTES_TIME: Duration = Duration::from_hours(24);
const NOTES_MAX: usize = 200;

#[derive(Debug, Clone)]
pub struct InstallationStatus {
    /// Nodes that share the work, this one among them.
    pub live_nodes: u32,
    pub is_in_maintenance: bool,
    /// Limits that receivers were found to have within the last day, the newest first.
    pub pacing_notes: Vec<PacingNote>,
    /// Version of the program that answers.
    pub version: &'static str,
}

#[boxed_futures]
impl App {
    pub async fn installation_status(&self, by: &Requester) -> Result<InstallationStatus, AccountRefusal> {
        self.permit_operator(by, Operation::InstallationStatus)?;
        let since = self.inner.clock.now().minus(NOTES_TIME);
        Ok(InstallationStatus {
            live_nodes: self.inner.store.live_nodes().await?,
            is_in_maintenance: self.is_in_maintenance().await?,
            pacing_notes: self.inner.store.list_pacing_notes(since, NOTES_MAX).await?,
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// The installation's own DNS records with what the DNS has at this moment, below the host name.
    pub async fn check_installation_records(
        &self,
        by: &Requester,
    ) -> Result<(String, Vec<RecordCheck>), AccountRefusal> {
        self.permit_operator(by, Operation::InstallationRecords)?;
        let checked = self.check_installation().await;
        checked.map_err(|error| AccountRefusal::Refused(crate::Refusal::Internal(error.to_string())))
    }

    /// For what only the operator sees and no function of `app` has, such as the inbox of `postroad dev`.
    pub fn permit_operator(&self, by: &Requester, operation: Operation) -> Result<(), AccountRefusal> {
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)
    }
}
