//! analytics/summary: counts and rates of a time range.

use crate::documented::ToSchema;
use postroad_app::analytics::{Dimension, Summary, SummaryQuery};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::metrics_out::{FiguresOut, RatesOut};
use super::query_fields::{add_warnings, read_filter, read_filters};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::time_field::read_time;

/// Time range, and filters on messages.
#[request_fields]
#[schema(example = json!({"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "tag": "welcome"}))]
pub(crate) struct SummaryIn {
    /// Start (RFC 3339); 30 days before `to` if left out.
    from: Option<String>,
    /// End (RFC 3339); now if left out.
    to: Option<String>,
    /// Domain of the From header; alternative to `domain` in `filters`.
    domain: Option<super::filter_schema::FilterIn>,
    /// Alternative to `tag` in `filters`.
    tag: Option<super::filter_schema::FilterIn>,
    filters: Option<super::dimension_schemas::FiltersIn>,
    /// Also count opens and clicks by bots.
    include_bots: Option<bool>,
}

/// Counts and rates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummaryOut {
    /// Start, rounded down to a quarter of an hour.
    #[schema(format = DateTime)]
    from: String,
    /// End, rounded up to a quarter of an hour.
    #[schema(format = DateTime)]
    to: String,
    #[serde(flatten)]
    figures: FiguresOut,
    rates: RatesOut,
}

/// Get totals of a time range
///
/// Events count when they happen: an open today counts today, even if the message is a week old. The range is
/// extended to full quarters of an hour. Test messages and simulator recipients never count.
#[crate::documented::path(
    post,
    path = "/api/v1/analytics/summary",
    tag = "analytics",
    operation_id = "analyticsSummary",
    request_body = SummaryIn,
    responses((status = 200, body = crate::documented::Answer<SummaryOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<SummaryOut>, Failure> {
    let mut findings = Findings::default();
    let query = read(&call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let summed = call.app.analytics_summary(&call.caller, &query).await;
    let answer = summed.map(|summary| {
        add_warnings(summary.is_current, summary.has_other, &mut warnings);
        SummaryOut::from(summary)
    });
    Success::with_warnings(answer.map_err(Failure::from), warnings)
}

/// Parses the request; `SummaryIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<SummaryQuery, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let from = read_time(&mut fields, "from", findings);
    let to = read_time(&mut fields, "to", findings);
    let mut filters = read_filters(&mut fields, findings);
    for dimension in [Dimension::Domain, Dimension::Tag] {
        filters.extend(read_filter(&mut fields, dimension, findings));
    }
    let include_bots = fields.flag("include_bots", findings).unwrap_or(false);
    fields.finish(findings);
    Ok(SummaryQuery { from, to, filters, include_bots })
}

impl From<Summary> for SummaryOut {
    fn from(summary: Summary) -> Self {
        Self {
            from: summary.from.to_rfc3339(),
            to: summary.to.to_rfc3339(),
            figures: FiguresOut::from(&summary.figures),
            rates: RatesOut::from(&summary.figures),
        }
    }
}
