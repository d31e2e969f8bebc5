//! The page with the reports about one domain in a period.

use std::time::Duration;

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::domains::{DomainRefusal, DomainReports, ReportPeriod, SourceTotals};

use crate::answer::{Answer, page};
use crate::days::DayRange;
use crate::display::{When, count, counted, percent};
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

const DAYS: [u32; 3] = [7, 30, 90];
const DAYS_DEFAULT: u32 = 30;
/// Maximum number of domains to choose from; others can be named in the URL.
const DOMAINS_MAX: usize = 200;
const SOURCES_MAX: usize = 200;

struct SourceRow {
    address: String,
    messages: String,
    dkim: String,
    spf: String,
    failed: String,
    /// Whether DMARC fails for some messages, because neither DKIM nor SPF is aligned.
    is_failing: bool,
}

struct FailureRow {
    kind: String,
    sessions: String,
    explanation: &'static str,
}

struct Report {
    from: When,
    to: When,
    dmarc_reports: String,
    messages: String,
    aligned: String,
    quarantined: String,
    rejected: String,
    sources: Vec<SourceRow>,
    sources_left_out: usize,
    tls_reports: String,
    sessions: String,
    successful: String,
    failures: Vec<FailureRow>,
    is_empty: bool,
}

/// First and last day, if they are chosen instead of a number of days.
struct Filters {
    days: DayRange,
}

#[derive(Template)]
#[template(path = "reports/show.html")]
struct ReportsPage {
    layout: Layout,
    server: i64,
    domains: Vec<String>,
    domain: String,
    days: u32,
    filters: Filters,
    report: Option<Report>,
    is_unverified: bool,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsReports).await?;
    let (_, layout) = visit.server_layout(server, "Reports", Section::Reports).await?;
    let (found, _) = visit.app().list_domains(&caller, None, DOMAINS_MAX).await?;
    let default_domain = found.iter().find(|view| view.domain.is_verified()).or(found.first());
    let default_domain = default_domain.map(|view| view.domain.name.to_string()).unwrap_or_default();
    let domain = visit.query.filled("domain").map_or(default_domain, ToOwned::to_owned);
    let days =
        visit.query.number("days").and_then(|days| DAYS.into_iter().find(|one| i64::from(*one) == days));
    let days = days.unwrap_or(DAYS_DEFAULT);
    let mut filters = Filters { days: DayRange::read(&visit.query, &visit.zone) };
    let (mut report, mut is_unverified) = (None, false);
    if !domain.is_empty() {
        let to = filters.days.to().unwrap_or_else(|| visit.app().now());
        let default_from = || to.minus(Duration::from_hours(24 * u64::from(days)));
        let from = filters.days.from().unwrap_or_else(default_from);
        if from >= to {
            filters.days.problem = Some("The period should end after it begins.".to_owned());
        } else {
            let period = ReportPeriod { from: Some(from), to: Some(to) };
            match visit.app().domain_reports_as(&visit.requester, (&caller).into(), &domain, period).await {
                Ok(sums) => report = Some(report_of(&sums)),
                Err(DomainRefusal::NotVerified) => is_unverified = true,
                Err(refusal) => return Err(Problem::from(refusal)),
            }
        }
    }
    let mut domains: Vec<String> = found.iter().map(|view| view.domain.name.to_string()).collect();
    if !domain.is_empty() && !domains.contains(&domain) {
        domains.push(domain.clone());
    }
    page(&ReportsPage { layout, server, domains, domain, days, filters, report, is_unverified })
}

fn report_of(sums: &DomainReports) -> Report {
    let (dmarc, tls) = (&sums.dmarc, &sums.tls);
    let failures = tls.failures.iter().map(|(kind, sessions)| FailureRow {
        kind: kind.clone(),
        sessions: count(*sessions),
        explanation: explain(kind),
    });
    Report {
        from: When(sums.from),
        to: When(sums.to),
        dmarc_reports: counted(dmarc.reports, "report"),
        messages: count(dmarc.messages),
        aligned: share(dmarc.passed, dmarc.messages),
        quarantined: count(dmarc.quarantined),
        rejected: count(dmarc.rejected),
        sources: dmarc.sources.iter().take(SOURCES_MAX).map(source_row).collect(),
        sources_left_out: dmarc.sources_left_out + dmarc.sources.len().saturating_sub(SOURCES_MAX),
        tls_reports: counted(tls.reports, "report"),
        sessions: count(tls.sessions),
        successful: share(tls.successful, tls.sessions),
        failures: failures.collect(),
        is_empty: dmarc.reports == 0 && tls.reports == 0,
    }
}

fn source_row(source: &SourceTotals) -> SourceRow {
    SourceRow {
        address: source.address.clone(),
        messages: count(source.messages),
        dkim: share(source.dkim_passed, source.messages),
        spf: share(source.spf_passed, source.messages),
        failed: count(source.failed),
        is_failing: source.failed > 0,
    }
}

fn share(part: u64, whole: u64) -> String {
    percent((whole > 0).then(|| part as f64 / whole as f64))
}

/// Explanation of a result type of RFC 8460, section 4.3; empty if it is unknown.
fn explain(kind: &str) -> &'static str {
    match kind {
        "starttls-not-supported" => "The receiving host does not offer STARTTLS.",
        "certificate-host-mismatch" => "The certificate has another name than the MX host.",
        "certificate-expired" => "The certificate of the MX host has expired: renew it.",
        "certificate-not-trusted" => "The certificate of the MX host is from an unknown authority.",
        "validation-failure" => "The TLS handshake failed for another reason.",
        "tlsa-invalid" => "The TLSA record of the MX host matches no certificate.",
        "dnssec-invalid" => "DNSSEC of the domain does not validate.",
        "dane-required" => "The sender requires DANE and found no TLSA record.",
        "sts-policy-fetch-error" => "The MTA-STS policy could not be fetched.",
        "sts-policy-invalid" => "The MTA-STS policy could not be read.",
        "sts-webpki-invalid" => "The certificate of the MTA-STS policy host is not valid.",
        _ => "",
    }
}
