//! TLS reports (RFC 8460, section 4). Lists are summed up while they are parsed: a long list takes no memory beyond its
//! text.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use postroad_model::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use super::text::ReportText;
use super::{ReportProblem, TlsPolicy, TlsSummary, shorten, unpacking_problem};

/// Longest document; a report sums up one day in a few kilobytes.
const JSON_BYTES_MAX: usize = 2 << 20;
/// Maximum number of policies in a report.
const POLICIES_MAX: usize = 100;
/// Maximum number of result types that are kept; RFC 8460 4.3 defines eleven.
const FAILURE_TYPES_MAX: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    #[serde(default)]
    organization_name: String,
    date_range: DateRange,
    #[serde(rename = "report-id")]
    id: String,
    policies: Policies,
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
    failure_details: FailureTypes,
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

/// Policies, at most [`POLICIES_MAX`]; a report with more is refused while it is read.
struct Policies(Vec<TlsPolicy>);

impl<'de> Deserialize<'de> for Policies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Policies;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {POLICIES_MAX} policies")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Policies, A::Error> {
                let mut policies = Vec::new();
                while let Some(entry) = list.next_element::<PolicyEntry>()? {
                    if policies.len() == POLICIES_MAX {
                        return Err(A::Error::invalid_length(POLICIES_MAX + 1, &self));
                    }
                    policies.push(summarise(entry));
                }
                Ok(Policies(policies))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Failed sessions by result type. Beyond [`FAILURE_TYPES_MAX`] types, further ones are left out.
#[derive(Default)]
struct FailureTypes(BTreeMap<String, u64>);

impl<'de> Deserialize<'de> for FailureTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = FailureTypes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of failures")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FailureTypes, A::Error> {
                let mut types = BTreeMap::new();
                while let Some(details) = list.next_element::<FailureDetails>()? {
                    let name = shorten(&details.result_type);
                    if types.len() < FAILURE_TYPES_MAX || types.contains_key(&name) {
                        let count: &mut u64 = types.entry(name).or_default();
                        *count = count.saturating_add(details.failed_session_count);
                    }
                }
                Ok(FailureTypes(types))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Parses a report; `None` if the document is not one.
pub(super) fn parse<R: Read>(text: ReportText<'_, R>) -> Result<Option<TlsSummary>, ReportProblem> {
    let mut json = String::new();
    text.take(JSON_BYTES_MAX as u64 + 1)
        .read_to_string(&mut json)
        .map_err(|error| unpacking_problem(&error))?;
    if json.len() > JSON_BYTES_MAX {
        return Err(ReportProblem::TooLarge);
    }
    // Other JSON may arrive too; a document that looks like a report with policies but is invalid is damaged.
    if !json.contains("\"policies\"") || !json.contains("\"report-id\"") {
        return Ok(None);
    }
    let report: Report =
        serde_json::from_str(&json).map_err(|_| ReportProblem::Damaged("the JSON is not a TLS report"))?;
    let time = |text: &str| {
        Timestamp::parse_rfc3339(text).ok_or(ReportProblem::Damaged("a time in the report is invalid"))
    };
    Ok(Some(TlsSummary {
        organisation: shorten(&report.organization_name),
        report_id: shorten(&report.id),
        begin: time(&report.date_range.start_datetime)?,
        end: time(&report.date_range.end_datetime)?,
        policies: report.policies.0,
    }))
}

fn summarise(entry: PolicyEntry) -> TlsPolicy {
    let mut failure_types: Vec<(String, u64)> = entry.failure_details.0.into_iter().collect();
    failure_types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    TlsPolicy {
        domain: shorten(&entry.policy.domain).to_ascii_lowercase(),
        kind: shorten(&entry.policy.kind),
        successes: entry.summary.successes,
        failures: entry.summary.failures,
        failure_types,
    }
}
