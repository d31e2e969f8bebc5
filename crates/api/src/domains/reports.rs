//! domains/reports: receivers' reports about a domain's mail.

use std::collections::BTreeMap;

use crate::documented::ToSchema;
use postroad_app::domains::{DmarcTotals, DomainReports, NamedOwner, ReportPeriod, SourceTotals, TlsTotals};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::shared_params::{read_name, read_owner};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::time_field::read_time;

/// Approximate size of an answer with all its sources.
const ANSWER_BYTES: usize = 128 << 10;

/// The domain and time range.
#[request_fields]
#[schema(example = json!({"name": "example.com", "from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"}))]
pub(crate) struct DomainReportsIn {
    /// Name of the domain, such as `example.com`.
    name: String,
    /// Start (RFC 3339); 30 days before `to` if left out.
    from: Option<String>,
    /// End (RFC 3339); now if left out.
    to: Option<String>,
    /// With an account's or the operator's key: id of the server whose domain it is; if left out, it is a domain of the
    /// account itself.
    server: Option<i64>,
    /// Id of the account, with the operator's key.
    account: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainReportsOut {
    name: String,
    #[schema(format = DateTime)]
    from: String,
    #[schema(format = DateTime)]
    to: String,
    dmarc: DmarcOut,
    tls: TlsOut,
}

/// DMARC reports (RFC 7489).
#[derive(Debug, Serialize, ToSchema)]
struct DmarcOut {
    reports: u64,
    messages: u64,
    /// Messages that passed DKIM or SPF, aligned with the domain.
    passed: u64,
    failed: u64,
    quarantined: u64,
    rejected: u64,
    /// By address, most messages first.
    sources: Vec<SourceOut>,
    /// Sources with fewer messages that are not listed.
    sources_left_out: usize,
}

#[derive(Debug, Serialize, ToSchema)]
struct SourceOut {
    #[schema(example = "192.0.2.1")]
    address: String,
    messages: u64,
    dkim_passed: u64,
    spf_passed: u64,
    /// Neither DKIM nor SPF passed.
    failed: u64,
}

/// Reports on TLS to the domain's mail servers (RFC 8460).
#[derive(Debug, Serialize, ToSchema)]
struct TlsOut {
    reports: u64,
    sessions: u64,
    successful: u64,
    failed: u64,
    /// Failed sessions by result, such as `certificate-expired`.
    failures: BTreeMap<String, u64>,
}

/// Sum up the reports about a domain
///
/// Only for a verified domain. Receivers send DMARC reports if the domain's DMARC record names an address of this
/// service, and TLS reports if the record `_smtp._tls.<domain>` names one.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/reports",
    tag = "domains",
    operation_id = "getDomainReports",
    request_body = DomainReportsIn,
    responses((status = 200, body = crate::documented::Answer<DomainReportsOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DomainReportsOut>, Failure> {
    let mut findings = Findings::default();
    let (owner, name, period) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(ANSWER_BYTES).await?;
    let summed = call.app.domain_reports_as(&call.caller, owner, &name, period).await.map_err(Failure::from);
    let answer = Success::with_warnings(summed.map(DomainReportsOut::from), warnings)?;
    Ok(Success { memory: memory.into(), ..answer })
}

/// Parses the request; `DomainReportsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(NamedOwner, String, ReportPeriod), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let name = read_name(&mut fields, findings);
    let from = read_time(&mut fields, "from", findings);
    let to = read_time(&mut fields, "to", findings);
    let owner = read_owner(&mut fields, findings);
    fields.finish(findings);
    Ok((owner, name, ReportPeriod { from, to }))
}

impl From<DomainReports> for DomainReportsOut {
    fn from(reports: DomainReports) -> Self {
        let DomainReports { name, from, to, dmarc, tls } = reports;
        Self {
            name: name.into(),
            from: from.to_rfc3339(),
            to: to.to_rfc3339(),
            dmarc: dmarc.into(),
            tls: tls.into(),
        }
    }
}

impl From<DmarcTotals> for DmarcOut {
    fn from(totals: DmarcTotals) -> Self {
        let DmarcTotals { reports, messages, passed, quarantined, rejected, sources, sources_left_out } =
            totals;
        let failed = messages.saturating_sub(passed);
        let sources = sources.into_iter().map(SourceOut::from).collect();
        Self { reports, messages, passed, failed, quarantined, rejected, sources, sources_left_out }
    }
}

impl From<SourceTotals> for SourceOut {
    fn from(totals: SourceTotals) -> Self {
        let SourceTotals { address, messages, dkim_passed, spf_passed, failed } = totals;
        Self { address, messages, dkim_passed, spf_passed, failed }
    }
}

impl From<TlsTotals> for TlsOut {
    fn from(totals: TlsTotals) -> Self {
        let TlsTotals { reports, sessions, successful, failures } = totals;
        Self { reports, sessions, successful, failed: sessions.saturating_sub(successful), failures }
    }
}
