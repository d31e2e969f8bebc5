//! Maintenance mode: the operator closes the API temporarily. The mode is kept in the store, so all nodes follow.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{AuditSubject, StoreError};

use crate::App;
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};

const MAINTENANCE_SETTING: &str = "maintenance";

#[boxed_futures]
impl App {
    pub async fn is_in_maintenance(&self) -> Result<bool, StoreError> {
        if let Some(on) = self.inner.maintenance.find(&()) {
            return Ok(on);
        }
        let start = self.inner.maintenance.start_read();
        let on = self.inner.store.find_setting(MAINTENANCE_SETTING).await?.is_some();
        self.inner.maintenance.put((), on, start);
        Ok(on)
    }

    /// Sets maintenance mode, for the operator at the command line.
    pub async fn set_maintenance(&self, on: bool) -> Result<(), StoreError> {
        self.store_maintenance(&Requester::command_line(), on).await
    }

    /// Sets maintenance mode for `by`, who must be the operator.
    pub async fn set_maintenance_as(&self, by: &Requester, on: bool) -> Result<(), AccountRefusal> {
        self.permit_operator(by, Operation::InstallationMaintenance)?;
        Ok(self.store_maintenance(by, on).await?)
    }

    async fn store_maintenance(&self, by: &Requester, on: bool) -> Result<(), StoreError> {
        let operation = Operation::InstallationMaintenance;
        let store = self.audited_store(by, operation, AuditSubject::Setting(MAINTENANCE_SETTING));
        store.set_setting(MAINTENANCE_SETTING, on.then(|| "on".to_owned())).await?;
        self.forget_setup();
        Ok(())
    }

    /// Checks that the store accepts a write; for readiness checks.
    pub async fn check_store(&self) -> Result<(), StoreError> {
        self.inner.store.check_write().await
    }
}
