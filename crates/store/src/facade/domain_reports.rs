//! What receivers report of the mail of our domains.

use postroad_model::DomainName;

use crate::records::{DomainReport, DomainReportSum};
use crate::verbs::domain_reports;
use crate::{Result, Store};

impl Store {
    /// Keeps those about `own` and about domains that servers have; returns how many were new. `NotFound` if none is
    /// about a domain of ours.
    pub async fn add_domain_reports(&self, own: DomainName, reports: Vec<DomainReport>) -> Result<u64> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(domain_reports::add(sql, own, reports, now))).await
    }

    /// By domain and kind; of all domains, or of one.
    pub async fn sum_up_domain_reports(&self, domain: Option<DomainName>) -> Result<Vec<DomainReportSum>> {
        let domain = domain.map(|domain| domain.as_str().to_owned());
        self.read(move |sql| Box::pin(domain_reports::sum_up(sql, domain))).await
    }

    /// The newest first.
    pub async fn list_domain_reports(&self, domain: DomainName, limit: usize) -> Result<Vec<DomainReport>> {
        self.read(move |sql| Box::pin(domain_reports::list(sql, domain, limit as i64))).await
    }
}
