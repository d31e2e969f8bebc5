//! suppressions/export: the suppression list as CSV, page by page.

use crate::documented::ToSchema;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::suppression_out::SUPPRESSION_BYTES;
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{Pagination, read_cursor, read_limit};

/// Maximum number of lines of a page: quick to produce, and small enough for memory.
const LINES_MAX: usize = 1_000;

/// Page size and cursor.
#[request_fields]
#[schema(example = json!({"limit": 1000}))]
pub(crate) struct ExportSuppressionsIn {
    /// Up to 1,000, which is the default.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExportedOut {
    /// Header line and one line per entry: `address,reason,details,origin_message_id,created_at,expires_at`
    csv: String,
    /// Number of entries, without the header.
    count: usize,
}

/// Export suppressions
///
/// Sorted by address: an entry that exists during the whole export is on exactly one page.
/// `suppressions/import` accepts every page as it is. Cells that a spreadsheet would evaluate as a formula start
/// with a `'`, which the import removes.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/export",
    tag = "suppressions",
    operation_id = "exportSuppressions",
    request_body = ExportSuppressionsIn,
    responses((status = 200, body = crate::documented::Answer<ExportedOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ExportedOut>, Failure> {
    let mut findings = Findings::default();
    let (limit, after) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * SUPPRESSION_BYTES).await?.into();
    let page = call.app.export_suppressions(call.caller.server_id, after, limit).await?;
    let flags = Flags { pagination: Some(Pagination::new(limit, page.next)), warnings, ..Flags::default() };
    Ok(Success { data: ExportedOut { csv: page.csv, count: page.count }, flags, memory })
}

/// Parses the request; `ExportSuppressionsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(usize, Option<String>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let limit = read_limit(&mut fields, findings, LINES_MAX, LINES_MAX);
    // A PostgreSQL text cannot contain NUL.
    let after = read_cursor(&mut fields, findings, |text| (!text.contains('\0')).then_some(text));
    fields.finish(findings);
    Ok((limit, after))
}
