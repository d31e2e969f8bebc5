//! suppressions/list: the server's suppressions, newest first.

use crate::documented::ToSchema;
use postroad_model::{SuppressionReason, Timestamp};
use postroad_openapi_macros::request_fields;
use postroad_store::{Suppression, SuppressionCursor, SuppressionFilter};
use serde::Serialize;

use super::suppression_out::{SUPPRESSION_BYTES, SuppressionOut};
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Filters and page; all suppressions without filters.
#[request_fields]
#[schema(example = json!({"reason": "complaint", "since": "2026-11-01T00:00:00Z"}))]
pub(crate) struct ListSuppressionsIn {
    /// Only suppressions with this reason.
    reason: Option<String>,
    /// Only suppressions created at this time or later (RFC 3339).
    since: Option<String>,
    /// Only suppressions created before this time (RFC 3339).
    until: Option<String>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionListOut {
    items: Vec<SuppressionOut>,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct ListRequest {
    filter: SuppressionFilter,
    limit: usize,
    after: Option<SuppressionCursor>,
}

/// List suppressions
///
/// Newest first, without expired ones.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/list",
    tag = "suppressions",
    operation_id = "listSuppressions",
    request_body = ListSuppressionsIn,
    responses((status = 200, body = crate::documented::Answer<SuppressionListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<SuppressionListOut>, Failure> {
    let mut findings = Findings::default();
    let ListRequest { filter, limit, after } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * SUPPRESSION_BYTES).await?.into();
    let (found, has_more) = call.app.list_suppressions(call.caller.server_id, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(cursor);
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(SuppressionOut::from).collect();
    Ok(Success { data: SuppressionListOut { items }, flags, memory })
}

/// Parses the request; `ListSuppressionsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<ListRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = SuppressionFilter {
        reason: read_reason(&mut fields, findings),
        since: fields.time("since", findings),
        until: fields.time("until", findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| parse_cursor(&text));
    fields.finish(findings);
    Ok(ListRequest { filter, limit, after })
}

fn read_reason(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<SuppressionReason> {
    let text = fields.text("reason", findings)?;
    let reason = SuppressionReason::parse(&text);
    if reason.is_none() {
        let names = SuppressionReason::ALL.map(SuppressionReason::as_str).join(", ");
        findings.problem("/reason", format!("`reason` should be one of {names}"));
    }
    reason
}

fn cursor(last: &Suppression) -> String {
    format!("{} {}", last.created_at.as_micros(), last.address)
}

fn parse_cursor(text: &str) -> Option<SuppressionCursor> {
    let (micros, address) = text.split_once(' ')?;
    let created_at = Timestamp::from_micros(micros.parse().ok()?);
    // A PostgreSQL text cannot contain NUL.
    (!address.contains('\0')).then(|| SuppressionCursor { created_at, address: address.to_owned() })
}
