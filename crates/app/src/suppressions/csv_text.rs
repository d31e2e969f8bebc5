//! Suppression lists as CSV (RFC 4180), for import and export.

use std::borrow::Cow;
use std::fmt::Write as _;

use csv::{QuoteStyle, WriterBuilder};
use postroad_store::Suppression;

use super::check::SuppressionRequest;
use super::csv_lines::{Record, Records};

/// Exported columns in order; the import understands all of them.
const COLUMNS: [&str; 6] = ["address", "reason", "details", "origin_message_id", "created_at", "expires_at"];
/// Columns of a text without a header.
const COLUMNS_WITHOUT_HEADER: [Column; 4] =
    [Column::Address, Column::Reason, Column::ExpiresAt, Column::Details];
/// Accepted names of the address column: other services name it differently.
const ADDRESS_NAMES: [&str; 4] = ["address", "email", "email_address", "recipient"];

/// Parsed list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CsvList {
    pub lines: Vec<CsvLine>,
    /// Unknown columns of the header.
    pub unknown_columns: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct CsvLine {
    /// Line at which the entry begins, counted from 1.
    pub number: u64,
    pub request: Result<SuppressionRequest, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Address,
    Reason,
    Details,
    Origin,
    ExpiresAt,
    /// Not used: an unknown or unnamed column, or the creation time, which Postroad sets itself.
    Ignored,
}

/// Reads a list with or without a header. `None` if it has more than `lines_max` entries.
pub fn read_csv(text: &str, lines_max: usize) -> Option<CsvList> {
    let mut reader = CsvReader::new(text);
    let lines: Vec<CsvLine> = reader.by_ref().take(lines_max.saturating_add(1)).collect();
    let unknown_columns = reader.unknown_columns;
    (lines.len() <= lines_max).then_some(CsvList { lines, unknown_columns })
}

/// Reads a list entry by entry.
pub struct CsvReader<'a> {
    records: Records<'a>,
    columns: Option<Vec<Column>>,
    /// Unknown columns of the header; set once the first line was read.
    pub unknown_columns: Vec<String>,
}

impl<'a> CsvReader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { records: Records::of(text), columns: None, unknown_columns: Vec::new() }
    }
}

impl Iterator for CsvReader<'_> {
    type Item = CsvLine;

    fn next(&mut self) -> Option<CsvLine> {
        let mut record = self.records.next()?;
        if self.columns.is_none()
            && let Some((columns, unknown)) = read_header(&record.fields)
        {
            self.columns = Some(columns);
            self.unknown_columns = unknown;
            record = self.records.next()?;
        }
        let columns = self.columns.get_or_insert_with(|| COLUMNS_WITHOUT_HEADER.to_vec());
        for field in &mut record.fields {
            let cell = without_guard(field).trim();
            if cell.len() < field.len() {
                *field = cell.to_owned();
            }
        }
        Some(CsvLine { number: record.line, request: read_line(columns, record) })
    }
}

impl std::fmt::Debug for CsvReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvReader").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// Returns the columns and the unknown names; `None` if the fields are not a header.
fn read_header(fields: &[String]) -> Option<(Vec<Column>, Vec<String>)> {
    let mut unknown = Vec::new();
    let mut column = |field: &String| {
        let name = field.to_ascii_lowercase().replace([' ', '-'], "_");
        match name.as_str() {
            name if ADDRESS_NAMES.contains(&name) => Column::Address,
            "reason" => Column::Reason,
            "details" => Column::Details,
            "origin_message_id" => Column::Origin,
            "expires_at" => Column::ExpiresAt,
            "created_at" | "" => Column::Ignored,
            _ => {
                unknown.push(field.clone());
                Column::Ignored
            }
        }
    };
    let columns: Vec<Column> = fields.iter().map(&mut column).collect();
    columns.contains(&Column::Address).then_some((columns, unknown))
}

fn read_line(columns: &[Column], record: Record) -> Result<SuppressionRequest, String> {
    let Record { fields, count, has_unkept_text, is_too_long, .. } = record;
    if has_unkept_text || fields.iter().skip(columns.len()).any(|field| !field.is_empty()) {
        return Err(format!("it has {count} fields where {} are expected", columns.len()));
    }
    if is_too_long {
        return Err("a field is too long".to_owned());
    }
    let mut request = SuppressionRequest::default();
    for (column, field) in columns.iter().zip(fields) {
        let text = || (!field.is_empty()).then(|| field.clone());
        match column {
            Column::Address => request.address = field,
            Column::Reason => request.reason = text(),
            Column::Details => request.details = text(),
            Column::ExpiresAt => request.expires_at = text(),
            Column::Origin if field.is_empty() => {}
            Column::Origin => {
                let id = field.parse().map_err(|_| "`origin_message_id` is not the id of a message")?;
                request.origin_message_id = Some(id);
            }
            Column::Ignored => {}
        }
    }
    Ok(request)
}

/// Spreadsheets treat a cell with one of these first characters as a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Escapes a cell so that no spreadsheet evaluates it: adds an apostrophe before a formula. A cell whose leading
/// apostrophes are followed by a formula gets one more, so that `without_guard` restores the exact text.
fn with_guard(cell: &str) -> Cow<'_, str> {
    if is_guarded_or_formula(cell) { format!("'{cell}").into() } else { cell.into() }
}

/// Reverses `with_guard`.
fn without_guard(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_guarded_or_formula(rest)).unwrap_or(cell)
}

fn is_guarded_or_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA_STARTS)
}

/// Writes a list with its header. Anybody can choose addresses and details, so formulas are escaped; reading removes
/// the escape.
pub(crate) fn write_csv(list: &[Suppression]) -> String {
    let mut writer = WriterBuilder::new().quote_style(QuoteStyle::Necessary).from_writer(Vec::new());
    let mut write = |fields: [&str; 6]| writer.write_record(fields).expect("writing to memory cannot fail");
    write(COLUMNS);
    let mut origin = String::new();
    for one in list {
        origin.clear();
        if let Some(id) = one.origin_message_id {
            // Writing into a String cannot fail.
            let _ = write!(origin, "{id}");
        }
        let (created_at, expires_at) =
            (one.created_at.to_rfc3339(), one.expires_at.map(postroad_model::Timestamp::to_rfc3339));
        write([
            &with_guard(&one.address),
            one.reason.as_str(),
            &with_guard(&one.details),
            &origin,
            &created_at,
            expires_at.as_deref().unwrap_or_default(),
        ]);
    }
    let bytes = writer.into_inner().expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("all fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use csv::ReaderBuilder;
    use postroad_model::{MessageId, SuppressionReason, Timestamp};

    use super::*;

    fn read(text: &str) -> CsvList {
        read_csv(text, 10).unwrap()
    }

    fn addresses(text: &str) -> Vec<(u64, String)> {
        read(text).lines.into_iter().map(|line| (line.number, line.request.unwrap().address)).collect()
    }

    #[test]
    fn a_bare_list_is_read_with_its_line_numbers() {
        let expected = [(1, "a@example.com".to_owned()), (4, "b@example.com".to_owned())];
        for line_break in ["\n", "\r\n", "\r"] {
            for end in ["", line_break] {
                let text = format!(
                    "\u{feff}a@example.com{line_break}{line_break}  {line_break} b@example.com {end}"
                );
                assert_eq!(addresses(&text), expected, "{text:?}");
            }
        }
        assert_eq!(addresses(""), []);
        assert_eq!(addresses("Email\n"), [], "only a header");
    }

    #[test]
    fn a_header_names_the_columns_in_any_order() {
        let list = read(
            "Details,Name,Expires At,EMAIL,reason,created_at,origin_message_id\r\n\
             \"said \"\"no\"\",\r\ntwice\",Ann,2027-01-01T00:00:00Z,a@example.com,complaint,x,17\r\n\
             ,,,b@example.com\r\n",
        );
        assert_eq!(list.unknown_columns, ["Name"]);
        let first = SuppressionRequest {
            address: "a@example.com".into(),
            reason: Some("complaint".into()),
            details: Some("said \"no\",\ntwice".into()),
            origin_message_id: Some(17),
            expires_at: Some("2027-01-01T00:00:00Z".into()),
        };
        let second = SuppressionRequest { address: "b@example.com".into(), ..SuppressionRequest::default() };
        assert_eq!(
            list.lines,
            [CsvLine { number: 2, request: Ok(first) }, CsvLine { number: 4, request: Ok(second) }]
        );
    }

    #[test]
    fn without_a_header_the_columns_have_a_fixed_order() {
        let list = read("a@example.com,manual,2027-01-01T00:00:00Z,asked by phone\nb@example.com,,,,x\n");
        let request = list.lines[0].request.as_ref().unwrap();
        assert_eq!(
            (request.reason.as_deref(), request.details.as_deref()),
            (Some("manual"), Some("asked by phone"))
        );
        assert_eq!(list.lines[1].request, Err("it has 5 fields where 4 are expected".to_owned()));
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_as_a_whole() {
        assert!(read_csv("address\na\nb\n", 2).is_some());
        assert!(read_csv("address\na\nb\nc\n", 2).is_none());
    }

    fn suppression(address: &str, details: &str) -> Suppression {
        Suppression {
            address: address.into(),
            reason: SuppressionReason::HardBounce,
            details: details.into(),
            origin_message_id: None,
            created_at: Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap(),
            expires_at: None,
        }
    }

    #[test]
    fn cells_that_look_like_formulas_are_neutralised_and_read_back_the_same() {
        for start in ["=", "+", "-", "@", "'", "'=", "''+", "x", "\""] {
            let address = format!("{start}cmd@example.com");
            let details = format!("{start}HYPERLINK(\"http://x.example\")");
            let text = write_csv(&[suppression(&address, &details)]);
            let cells = ReaderBuilder::new().from_reader(text.as_bytes()).records().next().unwrap().unwrap();
            for cell in &cells {
                assert!(!cell.starts_with(FORMULA_STARTS), "{cell:?} would be evaluated");
            }
            let request = read(&text).lines.remove(0).request.unwrap();
            assert_eq!((request.address, request.details), (address, Some(details)));
        }
        let text = write_csv(&[suppression("a@example.com", "\t=1+1")]);
        assert!(text.contains(",'\t=1+1,"), "{text}");
    }

    #[test]
    fn written_text_can_be_read_again() {
        let suppression = Suppression {
            address: "\"=cmd(),x\"@example.com".into(),
            reason: SuppressionReason::HardBounce,
            details: "550 \"no\", such user".into(),
            origin_message_id: Some(MessageId(12)),
            created_at: Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap(),
            expires_at: None,
        };
        let text = write_csv(std::slice::from_ref(&suppression));
        assert_eq!(
            text,
            "address,reason,details,origin_message_id,created_at,expires_at\n\
             \"\"\"=cmd(),x\"\"@example.com\",hard_bounce,\"550 \"\"no\"\", such user\",12,2026-11-15T12:00:00Z,\n"
        );
        let line = read(&text).lines.remove(0);
        let request = line.request.unwrap();
        assert_eq!((line.number, request.address), (2, suppression.address));
        assert_eq!(
            (request.details.as_deref(), request.expires_at),
            (Some(suppression.details.as_str()), None)
        );
        assert_eq!(request.origin_message_id, Some(12));
    }
}
