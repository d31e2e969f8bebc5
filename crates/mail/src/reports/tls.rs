//! TLS reports (RFC 8460, section 4).

use std::collections::BTreeMap;

use postroad_model::Timestamp;
use serde::Deserialize;

use super::{ReportProblem, TlsPolicy, TlsSummary, shorten};

/// A report has one policy for each domain; a receiver of ours has few.
const POLICIES_MAX: usize = 1_000;
/// RFC 8460 4.3 knows about twenty result types.
const FAILURE_TYPES_MAX: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    #[serde(default)]
    organization_name: String,
    date_range: DateRange,
    #[serde(rename = "report-id")]
    id: String,
    policies: Vec<PolicyEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DateRange {
    start_datetime: String,
    end_datetime: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PolicyEntry {
    policy: Policy,
    summary: Summary,
    #[serde(default)]
    failure_details: Vec<FailureDetails>,
}

#[derive(Deserialize)]
struct Policy {
    #[serde(rename = "policy-type")]
    kind: String,
    #[serde(rename = "policy-domain")]
    domain: String,
}

#[derive(Deserialize)]
struct Summary {
    #[serde(rename = "total-successful-session-count", default)]
    successes: u64,
    #[serde(rename = "total-failure-session-count", default)]
    failures: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FailureDetails {
    result_type: String,
    #[serde(default)]
    failed_session_count: u64,
}

/// `None` if the document is something else.
pub(super) fn parse(text: &str) -> Result<Option<TlsSummary>, ReportProblem> {
    // Other JSON is mailed too; what calls itself a report with policies and is none is damaged.
    if !text.contains("\"policies\"") || !text.contains("\"report-id\"") {
        return Ok(None);
    }
    let report: Report =
        serde_json::from_str(text).map_err(|_| ReportProblem::Damaged("the JSON is no TLS report"))?;
    if report.policies.len() > POLICIES_MAX {
        return Err(ReportProblem::Bomb);
    }
    let time = |text: &str| {
        Timestamp::parse_rfc3339(text).ok_or(ReportProblem::Damaged("a time of the report is none"))
    };
    Ok(Some(TlsSummary {
        organisation: shorten(&report.organization_name),
        report_id: shorten(&report.id),
        begin: time(&report.date_range.start_datetime)?,
        end: time(&report.date_range.end_datetime)?,
        policies: report.policies.into_iter().map(summarise).collect(),
    }))
}

fn summarise(entry: PolicyEntry) -> TlsPolicy {
    let mut types: BTreeMap<String, u64> = BTreeMap::new();
    for details in entry.failure_details {
        let count = types.entry(shorten(&details.result_type)).or_default();
        *count = count.saturating_add(details.failed_session_count);
    }
    let mut failure_types: Vec<(String, u64)> = types.into_iter().collect();
    failure_types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    failure_types.truncate(FAILURE_TYPES_MAX);
    TlsPolicy {
        domain: shorten(&entry.policy.domain).to_ascii_lowercase(),
        kind: shorten(&entry.policy.kind),
        successes: entry.summary.successes,
        failures: entry.summary.failures,
        failure_types,
    }
}
