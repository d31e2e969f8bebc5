//! Reports about domains: accepted at the report addresses, stored as summaries, shown to the operator.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use bytes::Bytes;
use postroad_boxed_futures::boxed_futures;
use postroad_mail::reports::{
    self, DmarcSender, DmarcSource, DmarcSummary, DomainReport as Report, ReportProblem, TlsSummary,
    UnpackBudget,
};
use postroad_model::DomainName;
use postroad_store::{DomainReport, DomainReportSum, ReportKind, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ReturnReceiver, ReturnRefusal, ReturnedMail};
use crate::App;
use crate::admin::AdminError;

/// Maximum number of failure types kept of one domain in a TLS report, whatever the number of its policies.
const FAILURE_TYPES_MAX: usize = 50;
/// Maximum number of reports shown of one domain.
const REPORTS_SHOWN_MAX: usize = 50;

impl ReturnReceiver {
    /// Stores the report's data about our domains.
    pub(super) async fn take_report(&self, mail: &ReturnedMail) -> Result<(), ReturnRefusal> {
        let (bytes, peer) = (mail.bytes.clone(), mail.peer);
        let read = self.read_report(bytes, peer).await?;
        let rows = match read? {
            Some(Report::Dmarc(summary)) => self.dmarc_rows(summary).await?,
            Some(Report::Tls(summary)) => self.tls_rows(&summary).await?,
            None => return Err(ReturnRefusal::NoReport),
        };
        if rows.is_empty() {
            return Err(ReturnRefusal::ReportAboutOtherDomain);
        }
        let reserved = self.stored_report_budget.reserve(peer, rows.len(), Instant::now());
        reserved.ok_or(ReturnRefusal::Busy)?;
        let added = self.app.inner.store.add_domain_reports(rows).await?;
        tracing::info!(added, "report about domains received");
        Ok(())
    }

    /// Those of `names` that are ours: names of the installation, and domains of servers and accounts.
    async fn own_domains(&self, names: &[DomainName]) -> Result<HashSet<DomainName>, StoreError> {
        let mut ours: HashSet<DomainName> =
            self.app.inner.store.list_known_domains(names.to_vec()).await?.into_iter().collect();
        let is_own = |name: &&DomainName| self.addresses.own_names().any(|own| own == name.as_str());
        ours.extend(names.iter().filter(is_own).cloned());
        Ok(ours)
    }

    /// One row for each of our domains with mail in the report. Mail from other names counts for the domain whose
    /// policy applied; that domain also gets a row if the report has no mail.
    async fn dmarc_rows(&self, summary: DmarcSummary) -> Result<Vec<DomainReport>, ReturnRefusal> {
        let parse = |name: &str| DomainName::parse(name).ok();
        let policy_domain = parse(&summary.domain);
        let mut names: Vec<DomainName> =
            summary.senders.iter().filter_map(|sender| parse(&sender.header_from)).collect();
        names.extend(policy_domain.clone());
        let ours = self.own_domains(&names).await?;
        let policy_domain = policy_domain.filter(|domain| ours.contains(domain));
        let mut by_domain: BTreeMap<DomainName, DmarcSender> = BTreeMap::new();
        if let (Some(domain), true) = (&policy_domain, summary.senders.is_empty()) {
            by_domain.insert(domain.clone(), DmarcSender::default());
        }
        for sender in summary.senders {
            let own = parse(&sender.header_from).filter(|name| ours.contains(name));
            if let Some(domain) = own.or_else(|| policy_domain.clone()) {
                by_domain.entry(domain).or_default().add(sender);
            }
        }
        let row = |(domain, sender): (DomainName, DmarcSender)| DomainReport {
            domain,
            kind: ReportKind::Dmarc,
            organisation: summary.organisation.clone(),
            report_id: summary.report_id.clone(),
            begin: summary.begin,
            end: summary.end,
            total: sender.messages,
            passed: sender.passed,
            details: dmarc_details(&summary.policy, &sender).to_string(),
        };
        Ok(by_domain.into_iter().map(row).collect())
    }

    async fn tls_rows(&self, summary: &TlsSummary) -> Result<Vec<DomainReport>, ReturnRefusal> {
        let mut rows = rows_of_policies(summary);
        let names: Vec<DomainName> = rows.iter().map(|row| row.domain.clone()).collect();
        let ours = self.own_domains(&names).await?;
        rows.retain(|row| ours.contains(&row.domain));
        Ok(rows)
    }

    /// Parses the report after reserving the largest size to which it can unpack.
    async fn read_report(
        &self,
        bytes: Bytes,
        peer: IpAddr,
    ) -> Result<Result<Option<Report>, ReportProblem>, ReturnRefusal> {
        let bytes_max = reports::unpacked_bytes_max(bytes.len());
        let reservation =
            self.report_bytes_budget.reserve(peer, bytes_max, Instant::now()).ok_or(ReturnRefusal::Busy)?;
        let reading = self.parse_blocking(move || {
            let mut budget = UnpackBudget::new(bytes_max);
            (reports::read(&bytes, &mut budget), bytes_max - budget.bytes_left())
        });
        let outcome = reading.await;
        self.report_bytes_budget
            .return_unused(reservation, outcome.as_ref().map_or(0, |(_, bytes_used)| *bytes_used));
        outcome.map(|(read, _)| read)
    }
}

fn dmarc_details(policy: &str, sender: &DmarcSender) -> Value {
    let source = |source: &DmarcSource| {
        json!({
            "address": source.address,
            "messages": source.messages,
            "dkim_passed": source.dkim_passed,
            "spf_passed": source.spf_passed,
            "failed": source.failed,
        })
    };
    json!({
        "policy": policy,
        "quarantined": sender.quarantined,
        "rejected": sender.rejected,
        "sources": sender.sources.iter().map(source).collect::<Vec<_>>(),
    })
}

/// One row for each domain. A domain can have several policies in a report, such as `sts` and `tlsa`: the sessions of
/// these policies are added up.
fn rows_of_policies(summary: &TlsSummary) -> Vec<DomainReport> {
    let mut by_domain: BTreeMap<DomainName, PolicySum> = BTreeMap::new();
    for policy in &summary.policies {
        if let Ok(domain) = DomainName::parse(&policy.domain) {
            by_domain.entry(domain).or_default().add(policy);
        }
    }
    let row = |(domain, sum): (DomainName, PolicySum)| DomainReport {
        domain,
        kind: ReportKind::Tls,
        organisation: summary.organisation.clone(),
        report_id: summary.report_id.clone(),
        begin: summary.begin,
        end: summary.end,
        total: sum.successes.saturating_add(sum.failures),
        passed: sum.successes,
        details: json!({ "policy": sum.kinds.join(", "), "failures": sum.failure_types }).to_string(),
    };
    by_domain.into_iter().map(row).collect()
}

/// Sessions under all policies of a domain.
#[derive(Default)]
struct PolicySum<'a> {
    kinds: Vec<&'a str>,
    successes: u64,
    failures: u64,
    failure_types: BTreeMap<&'a str, u64>,
}

impl<'a> PolicySum<'a> {
    fn add(&mut self, policy: &'a reports::TlsPolicy) {
        if !self.kinds.contains(&policy.kind.as_str()) {
            self.kinds.push(&policy.kind);
        }
        self.successes = self.successes.saturating_add(policy.successes);
        self.failures = self.failures.saturating_add(policy.failures);
        for (kind, count) in &policy.failure_types {
            if self.failure_types.len() < FAILURE_TYPES_MAX || self.failure_types.contains_key(kind.as_str())
            {
                let sum = self.failure_types.entry(kind).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
}

#[boxed_futures]
impl App {
    /// One summary per domain and report kind; for a single domain also its newest reports.
    pub async fn domain_reports(&self, domain: Option<&str>) -> Result<Value, AdminError> {
        let store = &self.inner.store;
        let Some(domain) = domain else {
            let sums = store.sum_up_domain_reports(None).await?;
            return Ok(sums.iter().map(sum_json).collect());
        };
        let domain = DomainName::parse(domain)
            .map_err(|error| AdminError::refused(format!("`{domain}` is not a domain name: {error}")))?;
        let sums = store.sum_up_domain_reports(Some(domain.clone())).await?;
        let reports = store.list_domain_reports(domain.clone(), REPORTS_SHOWN_MAX).await?;
        Ok(json!({
            "domain": domain,
            "summaries": sums.iter().map(sum_json).collect::<Vec<_>>(),
            "reports": reports.iter().map(report_json).collect::<Vec<_>>(),
        }))
    }
}

fn sum_json(sum: &DomainReportSum) -> Value {
    let mut answer = json!({ "domain": sum.domain, "kind": sum.kind.as_str(), "reports": sum.reports });
    add_counts(&mut answer, sum.kind, sum.total, sum.passed);
    answer["begin"] = json!(sum.begin.to_rfc3339());
    answer["end"] = json!(sum.end.to_rfc3339());
    answer
}

fn report_json(report: &DomainReport) -> Value {
    let mut answer = json!({
        "kind": report.kind.as_str(),
        "organisation": report.organisation,
        "report_id": report.report_id,
        "begin": report.begin.to_rfc3339(),
        "end": report.end.to_rfc3339(),
    });
    add_counts(&mut answer, report.kind, report.total, report.passed);
    // Postroad wrote the details, so they are JSON.
    answer["details"] = serde_json::from_str(&report.details).unwrap_or_default();
    answer
}

/// Adds the counts under the field names of the report kind.
fn add_counts(answer: &mut Value, kind: ReportKind, total: u64, passed: u64) {
    let (total_name, passed_name) = match kind {
        ReportKind::Dmarc => ("messages", "passed"),
        ReportKind::Tls => ("sessions", "successful"),
    };
    answer[total_name] = json!(total);
    answer[passed_name] = json!(passed);
    answer["failed"] = json!(total.saturating_sub(passed));
}
