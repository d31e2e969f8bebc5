//! analytics/timeseries: figures by minute, hour, day or month.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_app::analytics::{DIMENSIONS_MAX, Dimension, Granularity, Timeseries, TimeseriesQuery, Zone};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::dimension_fields::{SeriesOut, series_out};
use super::query_fields::{add_warnings, dimension_names, read_filters};
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings, expect_text};
use crate::json;
use crate::time_field::read_time;

/// Estimated size of one point in an answer, for reserving memory.
const POINT_BYTES: usize = 700;
/// Maximum number of entries in `dimensions`, repeated names included; `DIMENSIONS_MAX` limits the different names.
const DIMENSION_ENTRIES_MAX: usize = 100;

/// Time range, step and dimensions.
#[request_fields]
#[schema(example = json!({"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "granularity": "day", "timezone": "Europe/Berlin", "dimensions": ["tag"]}))]
pub(crate) struct TimeseriesIn {
    /// Start (RFC 3339). If left out: an hour before `to` for minutes, a day for hours, 30 days for days, a
    /// year for months.
    from: Option<String>,
    /// End (RFC 3339); now if left out.
    to: Option<String>,
    /// `minute` (at most 48 hours, recent days only), `hour`, `day` (the default) or `month`.
    #[schema(pattern = "^(minute|hour|day|month)$")]
    granularity: Option<String>,
    /// IANA name such as `Europe/Berlin`; `UTC` if left out.
    timezone: Option<String>,
    /// Up to two names of dimensions, as in `filters`.
    dimensions: Option<Vec<String>>,
    filters: Option<super::dimension_schemas::FiltersIn>,
    /// Also count opens and clicks by bots.
    include_bots: Option<bool>,
}

/// One series per combination of dimension values, largest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimeseriesOut {
    /// Start of the first point.
    #[schema(format = DateTime)]
    from: String,
    /// End of the last point.
    #[schema(format = DateTime)]
    to: String,
    series: Vec<SeriesOut>,
}

/// Get a time series
///
/// Contains every step of the range, also those without events; the range is extended to whole steps. Days and
/// months are in `timezone`.
#[crate::documented::path(
    post,
    path = "/api/v1/analytics/timeseries",
    tag = "analytics",
    operation_id = "analyticsTimeseries",
    request_body = TimeseriesIn,
    responses((status = 200, body = crate::documented::Answer<TimeseriesOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TimeseriesOut>, Failure> {
    let mut findings = Findings::default();
    let query = read(&call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    match find(&call, &query, &mut warnings).await {
        Ok((data, memory)) => {
            let flags = Flags { warnings, ..Flags::default() };
            Ok(Success { data, flags, memory: memory.into() })
        }
        Err(failure) => Err(failure.with_warnings(warnings)),
    }
}

/// Finds the series; also returns the memory reserved for a large answer.
async fn find(
    call: &Call,
    query: &TimeseriesQuery,
    warnings: &mut Vec<String>,
) -> Result<(TimeseriesOut, Option<crate::memory::Share>), Failure> {
    let found = call.app.analytics_timeseries(&call.caller, query).await?;
    add_warnings(found.is_current, found.has_other, warnings);
    let points: usize = found.series.iter().map(|series| series.points.len()).sum();
    let memory = call.reserve_answer(points * POINT_BYTES).await?;
    Ok((timeseries_out(found, &query.dimensions), memory))
}

/// Parses the request; `TimeseriesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<TimeseriesQuery, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let query = TimeseriesQuery {
        from: read_time(&mut fields, "from", findings),
        to: read_time(&mut fields, "to", findings),
        granularity: read_granularity(&mut fields, findings),
        zone: read_zone(&mut fields, findings),
        dimensions: read_dimensions(&mut fields, findings),
        filters: read_filters(&mut fields, findings),
        include_bots: fields.flag("include_bots", findings).unwrap_or(false),
    };
    fields.finish(findings);
    Ok(query)
}

fn read_granularity(fields: &mut Fields<'_>, findings: &mut Findings) -> Granularity {
    let known = [
        ("minute", Granularity::Minute),
        ("hour", Granularity::Hour),
        ("day", Granularity::Day),
        ("month", Granularity::Month),
    ];
    let Some(text) = fields.text("granularity", findings) else { return Granularity::Day };
    let found = known.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        findings.problem("/granularity", "`granularity` has to be `minute`, `hour`, `day` or `month`");
    }
    found.map_or(Granularity::Day, |(_, granularity)| *granularity)
}

fn read_zone(fields: &mut Fields<'_>, findings: &mut Findings) -> Zone {
    let name = fields.text("timezone", findings).unwrap_or(Cow::Borrowed("UTC"));
    Zone::parse(&name).unwrap_or_else(|| {
        findings.problem("/timezone", "`timezone` has to be an IANA name, such as `Europe/Berlin`");
        Zone::utc()
    })
}

fn read_dimensions(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Dimension> {
    let mut dimensions = Vec::new();
    let names = fields.array("dimensions", DIMENSION_ENTRIES_MAX, findings).unwrap_or_default();
    if names.len() > DIMENSION_ENTRIES_MAX {
        findings.problem("/dimensions", format!("There may be at most {DIMENSIONS_MAX} dimensions"));
        return dimensions;
    }
    for (pointer, json) in names {
        let Some(name) = expect_text(&pointer, json, findings) else { continue };
        match Dimension::parse(&name) {
            Some(dimension) if dimensions.contains(&dimension) => {}
            Some(dimension) => dimensions.push(dimension),
            None => {
                findings
                    .problem(pointer, format!("This is not a dimension; use one of {}", dimension_names()));
            }
        }
    }
    if dimensions.len() > DIMENSIONS_MAX {
        findings.problem("/dimensions", format!("There may be at most {DIMENSIONS_MAX} dimensions"));
    }
    dimensions
}

fn timeseries_out(found: Timeseries, dimensions: &[Dimension]) -> TimeseriesOut {
    TimeseriesOut {
        from: found.from.to_rfc3339(),
        to: found.to.to_rfc3339(),
        series: found.series.into_iter().map(|series| series_out(series, dimensions)).collect(),
    }
}
