//! Receivers' reports about a domain's mail, summed up by source and result (RFC 7489 aggregates, RFC 8460 TLS
//! reports).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, Timestamp};
use postroad_store::{Domain, DomainReport, ReportKind, StoreError};
use serde::{Deserialize, Serialize};

use crate::App;

const PERIOD_DEFAULT: Duration = Duration::from_hours(30 * 24);
/// Number of reports that are read and parsed at a time: parsing blocks the thread.
const REPORTS_PER_READ: usize = 50;
/// Maximum numbers of sources, and of kinds of failures, that are added up one by one; further ones count only in the
/// totals.
const SOURCES_MAX: usize = 5_000;
const FAILURES_MAX: usize = 100;
/// Maximum number of sources that are shown.
const SOURCES_SHOWN_MAX: usize = 500;

/// Selects all reports that overlap the time between `from` and `to`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportPeriod {
    /// 30 days before `to` if left out.
    pub from: Option<Timestamp>,
    /// Now if left out.
    pub to: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainReports {
    pub name: DomainName,
    pub from: Timestamp,
    pub to: Timestamp,
    pub dmarc: DmarcTotals,
    pub tls: TlsTotals,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DmarcTotals {
    pub reports: u64,
    pub messages: u64,
    pub passed: u64,
    pub quarantined: u64,
    pub rejected: u64,
    /// Most messages first.
    pub sources: Vec<SourceTotals>,
    /// Number of sources that are not in `sources`. A source beyond `SOURCES_MAX` counts once for each report.
    pub sources_left_out: usize,
}

/// Messages from one address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SourceTotals {
    pub address: String,
    pub messages: u64,
    pub dkim_passed: u64,
    pub spf_passed: u64,
    pub failed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TlsTotals {
    pub reports: u64,
    pub sessions: u64,
    pub successful: u64,
    /// Failed sessions by result type.
    pub failures: BTreeMap<String, u64>,
}

/// Details of a stored DMARC report.
#[derive(Deserialize)]
struct DmarcDetails {
    #[serde(default)]
    quarantined: u64,
    #[serde(default)]
    rejected: u64,
    #[serde(default)]
    sources: Vec<SourceDetails>,
}

#[derive(Deserialize)]
struct SourceDetails {
    address: String,
    #[serde(default)]
    messages: u64,
    #[serde(default)]
    dkim_passed: u64,
    #[serde(default)]
    spf_passed: u64,
    #[serde(default)]
    failed: u64,
}

#[derive(Deserialize)]
struct TlsDetails {
    #[serde(default)]
    failures: BTreeMap<String, u64>,
}

#[boxed_futures]
impl App {
    /// Sums up the reports about the period that arrived since the domain was added.
    pub(crate) async fn sum_reports(
        &self,
        domain: Domain,
        period: ReportPeriod,
    ) -> Result<DomainReports, StoreError> {
        let to = period.to.unwrap_or_else(|| self.inner.clock.now());
        let from = period.from.unwrap_or_else(|| to.minus(PERIOD_DEFAULT));
        let Domain { name, created_at, .. } = domain;
        let mut sums = Sums::default();
        let mut after = None;
        loop {
            let store = &self.inner.store;
            let page = store
                .list_domain_reports_between(name.clone(), created_at, (from, to), after, REPORTS_PER_READ)
                .await?;
            let is_last = page.len() < REPORTS_PER_READ;
            for report in &page {
                sums.add(report);
            }
            match page.into_iter().next_back().filter(|_| !is_last) {
                Some(last) => after = Some((last.kind, last.organisation, last.report_id)),
                None => break,
            }
        }
        let (dmarc, tls) = sums.finish();
        Ok(DomainReports { name, from, to, dmarc, tls })
    }
}

#[derive(Default)]
struct Sums {
    dmarc: DmarcTotals,
    tls: TlsTotals,
    sources: HashMap<String, SourceTotals>,
}

impl Sums {
    /// Adds a report. The counts come from other people's reports, so additions saturate instead of overflowing.
    fn add(&mut self, report: &DomainReport) {
        match report.kind {
            ReportKind::Dmarc => {
                self.dmarc.reports += 1;
                add_saturating(&mut self.dmarc.messages, report.total);
                add_saturating(&mut self.dmarc.passed, report.passed);
                // This service wrote the details, so they can be parsed.
                let Ok(details) = serde_json::from_str::<DmarcDetails>(&report.details) else { return };
                add_saturating(&mut self.dmarc.quarantined, details.quarantined);
                add_saturating(&mut self.dmarc.rejected, details.rejected);
                details.sources.into_iter().for_each(|source| self.add_source(source));
            }
            ReportKind::Tls => {
                self.tls.reports += 1;
                add_saturating(&mut self.tls.sessions, report.total);
                add_saturating(&mut self.tls.successful, report.passed);
                let Ok(details) = serde_json::from_str::<TlsDetails>(&report.details) else { return };
                for (kind, count) in details.failures {
                    let is_known = self.tls.failures.contains_key(&kind);
                    if is_known || self.tls.failures.len() < FAILURES_MAX {
                        add_saturating(self.tls.failures.entry(kind).or_default(), count);
                    }
                }
            }
        }
    }

    fn add_source(&mut self, source: SourceDetails) {
        if !self.sources.contains_key(&source.address) && self.sources.len() >= SOURCES_MAX {
            self.dmarc.sources_left_out += 1;
            return;
        }
        let sum = self.sources.entry(source.address).or_default();
        add_saturating(&mut sum.messages, source.messages);
        add_saturating(&mut sum.dkim_passed, source.dkim_passed);
        add_saturating(&mut sum.spf_passed, source.spf_passed);
        add_saturating(&mut sum.failed, source.failed);
    }

    fn finish(self) -> (DmarcTotals, TlsTotals) {
        let Self { mut dmarc, tls, sources } = self;
        let named = sources.into_iter().map(|(address, sum)| SourceTotals { address, ..sum });
        dmarc.sources = named.collect();
        dmarc.sources.sort_by(|a, b| b.messages.cmp(&a.messages).then_with(|| a.address.cmp(&b.address)));
        dmarc.sources_left_out += dmarc.sources.len().saturating_sub(SOURCES_SHOWN_MAX);
        dmarc.sources.truncate(SOURCES_SHOWN_MAX);
        (dmarc, tls)
    }
}

fn add_saturating(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use postroad_model::{Limits, SystemClock};
    use postroad_store::{Database, Role, Settings, Store};
    use tokio::time::timeout;

    use super::*;
    use crate::accounts::Requester;
    use crate::domains::NamedOwner;

    #[tokio::test(flavor = "multi_thread")]
    async fn sums_of_reports_wait_for_a_permit_of_the_account() {
        let folder = tempfile::TempDir::new().unwrap();
        let settings = Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, Arc::new(SystemClock)).await.unwrap();
        let host = DomainName::parse("mail.example.test").unwrap();
        let app = App::new(store.clone(), Arc::new(SystemClock), Limits::default(), host);
        app.dev_setup().await.unwrap();
        let server = store.list_servers().await.unwrap().remove(0);
        let (by, account) = (Requester::command_line(), server.account_id);
        let owner = NamedOwner { server: Some(server.id), account: None };
        let mut permits = Vec::new();
        while let Ok(permit) = timeout(Duration::ZERO, app.inner.long_reads.permit(account)).await {
            permits.push(permit);
        }
        let mut sums =
            std::pin::pin!(app.domain_reports_as(&by, owner, "example.test", ReportPeriod::default()));
        assert!(timeout(Duration::from_millis(200), &mut sums).await.is_err(), "others hold all permits");
        permits.clear();
        assert_eq!(sums.await.unwrap().dmarc.reports, 0);
    }
}
