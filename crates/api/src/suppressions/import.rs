//! suppressions/import: a list from elsewhere, as CSV.

use postroad_app::suppressions::{CsvList, read_csv};
use serde::Serialize;
use utoipa::ToSchema;

use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::openapi::OtherAnswers;

/// Lines in one call; longer lists come in parts.
const LINES_MAX: usize = 10_000;
/// More than so many lines need; a text is copied while it is read.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// A list of addresses.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"csv": "address,reason,expires_at,details\nann@example.com,manual,,asked by phone\n"}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct ImportSuppressionsIn {
    /// CSV text of up to 10,000 lines and 8 MiB: with a header that names its columns (`address`, `reason`, `expires_at`,
    /// `details`, `origin_message_id`), or those first four in this order, or just addresses.
    csv: String,
}

/// How it went; lines that are not among `errors` were taken.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ImportedOut {
    /// Without the header and blank ones.
    lines: usize,
    added: usize,
    /// Suppressed already, by an entry that lasts at least as long.
    exists: usize,
    failed: usize,
    errors: Vec<LineErrorOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineErrorOut {
    /// Counted from 1.
    line: u64,
    /// Everything that is wrong with it.
    message: String,
}

/// Import suppressions
///
/// Good lines are taken whatever the others are; importing a list again does no harm. Needs the scope `full`.
#[utoipa::path(
    post,
    path = "/api/v1/suppressions/import",
    tag = "suppressions",
    operation_id = "importSuppressions",
    request_body = ImportSuppressionsIn,
    responses((status = 200, description = "The call was handled; look at `status`", body = Answer<ImportedOut>), OtherAnswers),
    security(("server_api_key" = [])),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ImportedOut>, Failure> {
    let mut findings = Findings::default();
    let list = read(&call.text, &mut findings)?;
    for column in &list.unknown_columns {
        findings.warn("column", column);
    }
    let warnings = findings.into_warnings()?;
    Success::with_warnings(import(&call, list).await, warnings)
}

/// The fields of the request; their names are those of `ImportSuppressionsIn`.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<CsvList, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?, text);
    let problems = findings.problems.len();
    let csv = fields.text("csv", findings);
    fields.finish(findings);
    let Some(csv) = csv else {
        if findings.problems.len() == problems {
            findings.missing("csv");
        }
        return Ok(CsvList::default());
    };
    if csv.len() > TEXT_BYTES_MAX {
        findings.problem("/csv", format!("`csv` is longer than {TEXT_BYTES_MAX} bytes; send it in parts"));
        return Ok(CsvList::default());
    }
    Ok(read_csv(&csv, LINES_MAX).unwrap_or_else(|| {
        findings.problem("/csv", format!("`csv` has more than {LINES_MAX} lines; send it in parts"));
        CsvList::default()
    }))
}

async fn import(call: &Call, list: CsvList) -> Result<ImportedOut, Failure> {
    let mut out = ImportedOut { lines: list.lines.len(), ..ImportedOut::default() };
    let mut numbers = Vec::new();
    let mut given = Vec::new();
    for line in list.lines {
        match line.given {
            Ok(one) => {
                numbers.push(line.number);
                given.push(one);
            }
            Err(message) => out.errors.push(LineErrorOut { line: line.number, message }),
        }
    }
    let added = call.app.add_suppressions(call.caller.server_id, &given).await?;
    for (line, added) in numbers.into_iter().zip(added) {
        match added {
            Ok(added) if added.is_new => out.added += 1,
            Ok(_) => out.exists += 1,
            Err(problems) => {
                let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                out.errors.push(LineErrorOut { line, message: messages.join("; ") });
            }
        }
    }
    out.errors.sort_by_key(|error| error.line);
    out.failed = out.errors.len();
    Ok(out)
}
