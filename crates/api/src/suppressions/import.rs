//! suppressions/import: adds a list of suppressions from CSV.

use crate::documented::ToSchema;
use postroad_app::suppressions::{CsvReader, SuppressionRequest};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Maximum number of lines per call; longer lists are sent in parts.
const LINES_MAX: usize = 10_000;
/// Maximum size of `csv`, which is copied while it is read; enough for `LINES_MAX` lines.
const CSV_BYTES_MAX: usize = 8 << 20;
/// Number of lines passed to `app` in one call.
const LINES_PER_PART: usize = 500;
/// Maximum number of refused lines listed with their reasons; further ones are counted.
const ERRORS_SHOWN_MAX: usize = 1_000;

/// List of addresses.
#[request_fields]
#[schema(example = json!({"csv": "address,reason,expires_at,details\nann@example.com,manual,,asked by phone\n"}))]
pub(crate) struct ImportSuppressionsIn {
    /// CSV text of up to 10,000 lines and 8 MiB: with a header that names its columns (`address`, `reason`,
    /// `expires_at`, `details`, `origin_message_id`), or the first four of these in this order, or just
    /// addresses.
    csv: String,
}

/// Result of the import.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ImportedOut {
    /// Number of lines, without the header and blank ones.
    lines: usize,
    added: usize,
    /// Lines whose address is already suppressed by an entry that lasts at least as long.
    exists: usize,
    /// Lines that were refused.
    failed: usize,
    /// The refused lines with their reasons, up to 1,000.
    errors: Vec<LineErrorOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineErrorOut {
    /// Line number, from 1.
    line: u64,
    /// All problems of the line.
    message: String,
}

/// Import suppressions
///
/// Accepts the valid lines even if others are wrong; importing a list twice is harmless. Needs the scope
/// `full`.
#[crate::documented::path(
    post,
    path = "/api/v1/suppressions/import",
    tag = "suppressions",
    operation_id = "importSuppressions",
    request_body = ImportSuppressionsIn,
    responses((status = 200, body = crate::documented::Answer<ImportedOut>)),
)]
pub(crate) async fn handle(mut call: Call) -> Result<Success<ImportedOut>, Failure> {
    let mut findings = Findings::default();
    let csv = read(&call.body, &mut findings)?;
    // `csv` takes over the memory reserved for the request, until the last line is stored.
    call.free_body();
    let mut lines = CsvReader::new(&csv);
    if lines.by_ref().nth(LINES_MAX).is_some() {
        findings.problem("/csv", format!("`csv` has more than {LINES_MAX} lines; send it in parts"));
    }
    for column in &lines.unknown_columns {
        findings.warn("column", column);
    }
    let mut warnings = findings.reject_problems()?;
    let imported = import(&call, &csv).await;
    if imported.as_ref().is_ok_and(|out| out.failed > out.errors.len()) {
        warnings.push(format!("Only the first {ERRORS_SHOWN_MAX} errors are listed"));
    }
    Success::with_warnings(imported, warnings)
}

/// Parses the request; `ImportSuppressionsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<String, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let problems_before = findings.problems.len();
    let csv = fields.text("csv", findings);
    fields.finish(findings);
    let Some(csv) = csv else {
        if findings.problems.len() == problems_before {
            findings.missing("csv");
        }
        return Ok(String::new());
    };
    if csv.len() > CSV_BYTES_MAX {
        findings.problem("/csv", format!("`csv` is longer than {CSV_BYTES_MAX} bytes; send it in parts"));
        return Ok(String::new());
    }
    Ok(csv.into_owned())
}

/// Adds the lines in parts, so that only the requests of one part are in memory. If a later part fails, earlier lines
/// stay: importing the same list again is harmless.
async fn import(call: &Call, csv: &str) -> Result<ImportedOut, Failure> {
    let mut out = ImportedOut::default();
    let mut part = Part::default();
    for line in CsvReader::new(csv) {
        out.lines += 1;
        match line.request {
            Ok(request) => part.push(line.number, request),
            Err(message) => out.add_error(line.number, message),
        }
        if part.requests.len() == LINES_PER_PART {
            add_part(call, std::mem::take(&mut part), &mut out).await?;
        }
    }
    add_part(call, part, &mut out).await?;
    out.errors.sort_by_key(|error| error.line);
    Ok(out)
}

async fn add_part(call: &Call, part: Part, out: &mut ImportedOut) -> Result<(), Failure> {
    let added =
        call.app.add_suppressions(&call.caller.requester(), call.caller.server_id, &part.requests).await?;
    for (line, added) in part.line_numbers.into_iter().zip(added) {
        match added {
            Ok(added) if added.is_new => out.added += 1,
            Ok(_) => out.exists += 1,
            Err(problems) => {
                let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
                out.add_error(line, messages.join("; "));
            }
        }
    }
    Ok(())
}

/// Lines to pass to `app` at once.
#[derive(Default)]
struct Part {
    line_numbers: Vec<u64>,
    requests: Vec<SuppressionRequest>,
}

impl Part {
    fn push(&mut self, number: u64, request: SuppressionRequest) {
        self.line_numbers.push(number);
        self.requests.push(request);
    }
}

impl ImportedOut {
    fn add_error(&mut self, line: u64, message: String) {
        self.failed += 1;
        if self.errors.len() < ERRORS_SHOWN_MAX {
            self.errors.push(LineErrorOut { line, message });
        }
    }
}
