//! The DNS records of the installation itself, checked like customers' records.

use postroad_boxed_futures::boxed_futures;
use serde_json::{Value, json};

use super::check::{DkimRecord, ExpectedRecords, RecordCheck, check, zone_fragment};
use crate::App;
use crate::admin::AdminError;

#[boxed_futures]
impl App {
    /// All records of the installation, with the current DNS content if this process checks domains.
    pub async fn installation_records(&self) -> Result<Value, AdminError> {
        let (host, checks) = self.check_installation().await?;
        Ok(json!({ "name": host, "records": checks }))
    }

    /// The records as a fragment of a zone file; records that are in place are comments.
    pub async fn installation_zone(&self) -> Result<Value, AdminError> {
        let (_, checks) = self.check_installation().await?;
        Ok(json!({ "zone": zone_fragment(&checks) }))
    }

    pub(crate) async fn check_installation(&self) -> Result<(String, Vec<RecordCheck>), AdminError> {
        let installation = self.installation().await?;
        let service = self.installation_facts().await;
        let key = DkimRecord {
            selector: installation.dkim_selector,
            public_spki_der: installation.dkim_public_spki,
            required: true,
        };
        let expected = ExpectedRecords::of_installation(&service, &[key]);
        let checks = match self.checker() {
            Some(checker) => check(&checker.dns, &expected).await,
            None => expected.pending(),
        };
        Ok((service.host.to_string(), checks))
    }
}
