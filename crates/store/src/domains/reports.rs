//! Receivers' reports about mail from or to our customers' domains (DMARC, TLS): add, sum up, list, delete old ones.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, Timestamp};

use crate::sql::{Row, Sql, to_json};
use crate::{RemovalProgress, Result, Store};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// Counts messages, and messages that passed (RFC 7489).
    Dmarc,
    /// Counts sessions, and successful ones (RFC 8460).
    Tls,
}

impl ReportKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dmarc => "dmarc",
            Self::Tls => "tls",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Dmarc, Self::Tls].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReport {
    pub domain: DomainName,
    pub kind: ReportKind,
    pub organisation: String,
    /// Id chosen by the organisation. The same report may arrive twice.
    pub report_id: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    pub total: u64,
    pub passed: u64,
    /// A JSON object.
    pub details: String,
}

/// All reports of one kind about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReportSum {
    pub domain: String,
    pub kind: ReportKind,
    pub reports: u64,
    pub total: u64,
    pub passed: u64,
    pub begin: Timestamp,
    pub end: Timestamp,
}

#[boxed_futures]
impl Store {
    /// The names among these that are domains of servers or accounts.
    pub async fn list_known_domains(&self, names: Vec<DomainName>) -> Result<Vec<DomainName>> {
        self.read(move |sql| Box::pin(list_known(sql, names))).await
    }

    /// Adds reports and returns how many were new. If a domain has too many, its oldest ones are deleted.
    pub async fn add_domain_reports(&self, reports: Vec<DomainReport>) -> Result<u64> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(add(sql, reports, now))).await
    }

    /// Deletes expired reports, some at a time.
    pub async fn remove_old_domain_reports(&self) -> Result<RemovalProgress> {
        let text = "DELETE FROM domain_reports WHERE (domain, kind, organisation, report_id) IN (
                        SELECT domain, kind, organisation, report_id FROM domain_reports WHERE received_at < $1
                        ORDER BY received_at LIMIT $2)";
        let before = self.clock.now().minus(REPORT_RETENTION);
        let rows = self.execute(text, vec![before.into(), REPORTS_PER_TRANSACTION.into()]).await?;
        Ok(RemovalProgress { rows, has_more: rows == REPORTS_PER_TRANSACTION as u64 })
    }

    /// Sums by domain and kind; of all domains, or of one.
    pub async fn sum_up_domain_reports(&self, domain: Option<DomainName>) -> Result<Vec<DomainReportSum>> {
        let domain = domain.map(|domain| domain.as_str().to_owned());
        self.read(move |sql| Box::pin(sum_up(sql, domain))).await
    }

    /// Reports that overlap the time range, in the order of kind, organisation and id, after `after`. Omits reports
    /// received before `received_since`, which may be about a previous owner of the domain.
    pub async fn list_domain_reports_between(
        &self,
        domain: DomainName,
        received_since: Timestamp,
        between: (Timestamp, Timestamp),
        after: Option<(ReportKind, String, String)>,
        limit: usize,
    ) -> Result<Vec<DomainReport>> {
        self.read(move |sql| {
            Box::pin(list_between(sql, domain, received_since, between, after, limit as i64))
        })
        .await
    }

    /// Reports about one domain, newest first.
    pub async fn list_domain_reports(&self, domain: DomainName, limit: usize) -> Result<Vec<DomainReport>> {
        self.read(move |sql| Box::pin(list(sql, domain, limit as i64))).await
    }
}

/// Maximum number of reports kept per domain. Anybody can send reports; honest receivers never send so many about one
/// domain.
const REPORTS_PER_DOMAIN_MAX: i64 = 10_000;
/// Number of reports deleted when a domain reaches the limit, so that not every further report has to delete one.
const DELETED_AT_LIMIT: i64 = 100;
/// Reports are deleted this long after they were received.
const REPORT_RETENTION: Duration = Duration::from_hours(400 * 24);
/// Maximum number of expired reports deleted in one transaction.
const REPORTS_PER_TRANSACTION: i64 = 500;

async fn list_known(sql: &Sql<'_>, names: Vec<DomainName>) -> Result<Vec<DomainName>> {
    let text = if sql.is_sqlite() {
        "SELECT DISTINCT name FROM domains WHERE name IN (SELECT value FROM json_each($1))"
    } else {
        "SELECT DISTINCT name FROM domains
         WHERE name IN (SELECT value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)) names(value))"
    };
    let names: Vec<&str> = names.iter().map(DomainName::as_str).collect();
    let rows = sql.query(text, &[to_json(&names).into()]).await?;
    rows.iter().map(|row| row.parsed(0, |text| DomainName::parse(text).ok())).collect()
}

async fn add(sql: &Sql<'_>, reports: Vec<DomainReport>, now: Timestamp) -> Result<u64> {
    let mut added = 0;
    for report in reports {
        drop_oldest(sql, &report.domain).await?;
        added += insert(sql, report, now).await?;
    }
    Ok(added)
}

/// Deletes the domain's oldest reports if it has the maximum number of reports.
async fn drop_oldest(sql: &Sql<'_>, domain: &DomainName) -> Result<()> {
    let text = "SELECT count(*) FROM domain_reports WHERE domain = $1";
    let counted = sql.query_opt(text, &[domain.as_str().into()]).await?;
    let count = counted.map_or(Ok(0), |row| row.int(0))?;
    if count >= REPORTS_PER_DOMAIN_MAX {
        let oldest = "DELETE FROM domain_reports WHERE (domain, kind, organisation, report_id) IN (
                          SELECT domain, kind, organisation, report_id FROM domain_reports WHERE domain = $1
                          ORDER BY received_at LIMIT $2)";
        sql.execute(oldest, &[domain.as_str().into(), DELETED_AT_LIMIT.into()]).await?;
    }
    Ok(())
}

async fn insert(sql: &Sql<'_>, report: DomainReport, now: Timestamp) -> Result<u64> {
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    sql.execute(
        "INSERT INTO domain_reports (domain, kind, organisation, report_id, begin_at, end_at, received_at, total,
                                     passed, details)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (domain, kind, organisation, report_id) DO NOTHING",
        &[
            report.domain.as_str().into(),
            report.kind.as_str().into(),
            report.organisation.into(),
            report.report_id.into(),
            report.begin.into(),
            report.end.into(),
            now.into(),
            count(report.total).min(COUNT_MAX).into(),
            count(report.passed).min(COUNT_MAX).into(),
            report.details.into(),
        ],
    )
    .await
}

/// Highest count that is stored for one report; sums of many reports must fit into 64 bits.
const COUNT_MAX: i64 = 1 << 48;

/// Sums by domain and kind; of all domains, or of one.
async fn sum_up(sql: &Sql<'_>, domain: Option<String>) -> Result<Vec<DomainReportSum>> {
    let rows = sql
        .query(
            "SELECT domain, kind, count(*), CAST(sum(total) AS BIGINT), CAST(sum(passed) AS BIGINT), min(begin_at),
                    max(end_at)
             FROM domain_reports WHERE domain = $1 OR $1 = '' GROUP BY domain, kind ORDER BY domain, kind",
            &[domain.unwrap_or_default().into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(DomainReportSum {
                domain: row.text(0)?,
                kind: row.parsed(1, ReportKind::parse)?,
                reports: row.int(2)? as u64,
                total: row.int(3)? as u64,
                passed: row.int(4)? as u64,
                begin: row.time(5)?,
                end: row.time(6)?,
            })
        })
        .collect()
}

/// Reports of one domain, newest first.
async fn list(sql: &Sql<'_>, domain: DomainName, limit: i64) -> Result<Vec<DomainReport>> {
    let rows = sql
        .query(
            "SELECT kind, organisation, report_id, begin_at, end_at, total, passed, details FROM domain_reports
             WHERE domain = $1 ORDER BY end_at DESC, report_id LIMIT $2",
            &[domain.as_str().into(), limit.into()],
        )
        .await?;
    rows.iter().map(|row| read(row, &domain)).collect()
}

async fn list_between(
    sql: &Sql<'_>,
    domain: DomainName,
    received_since: Timestamp,
    (from, to): (Timestamp, Timestamp),
    after: Option<(ReportKind, String, String)>,
    limit: i64,
) -> Result<Vec<DomainReport>> {
    let (kind, organisation, report_id) = after.map_or_else(Default::default, |(kind, organisation, id)| {
        (kind.as_str().to_owned(), organisation, id)
    });
    let rows = sql
        .query(
            "SELECT kind, organisation, report_id, begin_at, end_at, total, passed, details FROM domain_reports
             WHERE domain = $1 AND (kind, organisation, report_id) > ($2, $3, $4) AND end_at >= $5 AND begin_at < $6
               AND received_at >= $8
             ORDER BY kind, organisation, report_id LIMIT $7",
            &[
                domain.as_str().into(),
                kind.into(),
                organisation.into(),
                report_id.into(),
                from.into(),
                to.into(),
                limit.into(),
                received_since.into(),
            ],
        )
        .await?;
    rows.iter().map(|row| read(row, &domain)).collect()
}

fn read(row: &Row, domain: &DomainName) -> Result<DomainReport> {
    Ok(DomainReport {
        domain: domain.clone(),
        kind: row.parsed(0, ReportKind::parse)?,
        organisation: row.text(1)?,
        report_id: row.text(2)?,
        begin: row.time(3)?,
        end: row.time(4)?,
        total: row.int(5)? as u64,
        passed: row.int(6)? as u64,
        details: row.text(7)?,
    })
}
