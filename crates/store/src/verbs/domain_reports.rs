//! Reports about domains: add, sum up, list.

use std::time::Duration;

use postroad_model::{DomainName, Timestamp};

use crate::error::StoreError;
use crate::records::{DomainReport, DomainReportSum, ReportKind};
use crate::sql::Sql;

/// Anybody can send them: more about one domain are nobody's honest work.
const PER_DOMAIN_MAX: i64 = 10_000;
const KEPT_FOR: Duration = Duration::from_hours(400 * 24);

/// Adds those that are about `own`, a name below it, or a domain that a server sends from or has above it. Returns how
/// many were new; `NotFound` if none is about a domain of ours.
pub(crate) async fn add(
    sql: &Sql<'_>,
    own: DomainName,
    reports: Vec<DomainReport>,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let (mut ours, mut added) = (0, 0);
    for report in reports {
        if !is_ours(sql, &own, &report.domain).await? {
            continue;
        }
        ours += 1;
        if has_room(sql, &report.domain, now).await? {
            added += insert(sql, report, now).await?;
        }
    }
    if ours == 0 { Err(StoreError::NotFound) } else { Ok(added) }
}

async fn is_ours(sql: &Sql<'_>, own: &DomainName, domain: &DomainName) -> Result<bool, StoreError> {
    if domain == own || domain.as_str().ends_with(&format!(".{own}")) {
        return Ok(true);
    }
    // The policy may be published above the domain that is sent from (RFC 7489 6.6.3).
    let text = "SELECT id FROM domains WHERE name = $1 OR name LIKE $2 LIMIT 1";
    let below = format!("%.{domain}");
    Ok(sql.query_opt(text, &[domain.as_str().into(), below.into()]).await?.is_some())
}

async fn has_room(sql: &Sql<'_>, domain: &DomainName, now: Timestamp) -> Result<bool, StoreError> {
    sql.execute(
        "DELETE FROM domain_reports WHERE domain = $1 AND received_at < $2",
        &[domain.as_str().into(), now.minus(KEPT_FOR).into()],
    )
    .await?;
    let count = sql
        .query_opt("SELECT count(*) FROM domain_reports WHERE domain = $1", &[domain.as_str().into()])
        .await?;
    Ok(count.map_or(Ok(0), |row| row.int(0))? < PER_DOMAIN_MAX)
}

async fn insert(sql: &Sql<'_>, report: DomainReport, now: Timestamp) -> Result<u64, StoreError> {
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
            // Bounded, so that a sum of them is a number of 64 bits.
            count(report.total).min(COUNT_MAX).into(),
            count(report.passed).min(COUNT_MAX).into(),
            report.details.into(),
        ],
    )
    .await
}

const COUNT_MAX: i64 = 1 << 48;

/// By domain and kind; of all domains, or of one.
pub(crate) async fn sum_up(
    sql: &Sql<'_>,
    domain: Option<String>,
) -> Result<Vec<DomainReportSum>, StoreError> {
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
                kind: row.name(1, ReportKind::parse)?,
                reports: row.int(2)? as u64,
                total: row.int(3)? as u64,
                passed: row.int(4)? as u64,
                begin: row.time(5)?,
                end: row.time(6)?,
            })
        })
        .collect()
}

/// Of one domain, the newest first.
pub(crate) async fn list(
    sql: &Sql<'_>,
    domain: DomainName,
    limit: i64,
) -> Result<Vec<DomainReport>, StoreError> {
    let rows = sql
        .query(
            "SELECT kind, organisation, report_id, begin_at, end_at, total, passed, details FROM domain_reports
             WHERE domain = $1 ORDER BY end_at DESC, report_id LIMIT $2",
            &[domain.as_str().into(), limit.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(DomainReport {
                domain: domain.clone(),
                kind: row.name(0, ReportKind::parse)?,
                organisation: row.text(1)?,
                report_id: row.text(2)?,
                begin: row.time(3)?,
                end: row.time(4)?,
                total: row.int(5)? as u64,
                passed: row.int(6)? as u64,
                details: row.text(7)?,
            })
        })
        .collect()
}
