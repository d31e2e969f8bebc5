//! analytics/top: the largest values of one dimension.

use crate::documented::ToSchema;
use postroad_app::analytics::{Dimension, METRICS, Metric, Top, TopBy, TopQuery};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::dimension_fields::{ValueOut, value_out};
use super::metrics_out::FiguresOut;
use super::query_fields::{add_warnings, dimension_names, read_filters};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json::{self, Json};
use crate::time_field::read_time;

const RECIPIENT_DOMAIN: &str = "recipient_domain";
const LIMIT_DEFAULT: u64 = 20;
const LIMIT_MAX: u64 = 500;

/// Time range, dimension and metric.
#[request_fields]
#[schema(example = json!({"dimension": "recipient_domain", "metric": "hard_fail", "limit": 10}))]
pub(crate) struct TopIn {
    /// Start (RFC 3339); 30 days before `to` if left out.
    from: Option<String>,
    /// End (RFC 3339); now if left out.
    to: Option<String>,
    /// `recipient_domain` (whole UTC days, no filters, no latencies), or the name of a dimension, as in `filters`.
    dimension: String,
    /// Metric to sort by; `accepted` if left out.
    metric: Option<String>,
    /// 20 if left out.
    #[schema(minimum = 1, maximum = 500)]
    limit: Option<u64>,
    filters: Option<super::dimension_schemas::FiltersIn>,
    /// Also count opens and clicks by bots.
    include_bots: Option<bool>,
}

/// Values in descending order of the metric.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopOut {
    #[schema(format = DateTime)]
    from: String,
    #[schema(format = DateTime)]
    to: String,
    items: Vec<TopEntryOut>,
}

/// One value with its figures.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopEntryOut {
    /// Null for messages without a value.
    value: Option<ValueOut>,
    #[serde(flatten)]
    figures: FiguresOut,
}

/// List the largest values of a dimension
///
/// Lists the values of one dimension with the largest numbers of one metric, such as the recipient domains that
/// refuse the most messages.
#[crate::documented::path(
    post,
    path = "/api/v1/analytics/top",
    tag = "analytics",
    operation_id = "analyticsTop",
    request_body = TopIn,
    responses((status = 200, body = crate::documented::Answer<TopOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TopOut>, Failure> {
    let mut findings = Findings::default();
    let query = read(&call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let found = call.app.analytics_top(&call.caller, &query).await;
    let answer = found.map(|top| {
        add_warnings(top.is_current, top.has_other, &mut warnings);
        TopOut::from(top)
    });
    Success::with_warnings(answer.map_err(Failure::from), warnings)
}

/// Parses the request; `TopIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<TopQuery, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let query = TopQuery {
        from: read_time(&mut fields, "from", findings),
        to: read_time(&mut fields, "to", findings),
        by: read_dimension(&mut fields, findings),
        metric: read_metric(&mut fields, findings),
        filters: read_filters(&mut fields, findings),
        include_bots: fields.flag("include_bots", findings).unwrap_or(false),
        limit: read_limit(&mut fields, findings) as usize,
    };
    fields.finish(findings);
    Ok(query)
}

fn read_dimension(fields: &mut Fields<'_>, findings: &mut Findings) -> TopBy {
    let placeholder = TopBy::RecipientDomain;
    if fields.is_absent("dimension") {
        fields.take("dimension", findings);
        findings.missing("dimension");
        return placeholder;
    }
    let Some(name) = fields.text("dimension", findings) else { return placeholder };
    if name == RECIPIENT_DOMAIN {
        return TopBy::RecipientDomain;
    }
    Dimension::parse(&name).map_or_else(
        || {
            let names = dimension_names();
            findings.problem(
                "/dimension",
                format!("This is not a dimension; use one of `{RECIPIENT_DOMAIN}`, {names}"),
            );
            placeholder
        },
        TopBy::Dimension,
    )
}

fn read_metric(fields: &mut Fields<'_>, findings: &mut Findings) -> Metric {
    let Some(name) = fields.text("metric", findings) else { return Metric::Accepted };
    let found = METRICS.into_iter().find(|metric| metric.as_str() == name);
    found.unwrap_or_else(|| {
        let names = METRICS.map(|metric| format!("`{}`", metric.as_str())).join(", ");
        findings.problem("/metric", format!("This is not a metric; use one of {names}"));
        Metric::Accepted
    })
}

fn read_limit(fields: &mut Fields<'_>, findings: &mut Findings) -> u64 {
    match fields.take("limit", findings) {
        None => LIMIT_DEFAULT,
        Some(Json::Number(number))
            if number.as_u64().is_some_and(|limit| (1..=LIMIT_MAX).contains(&limit)) =>
        {
            number.as_u64().unwrap_or(LIMIT_DEFAULT)
        }
        Some(Json::Number(_)) => {
            findings.problem("/limit", format!("`limit` has to be an integer from 1 to {LIMIT_MAX}"));
            LIMIT_DEFAULT
        }
        Some(other) => {
            findings.wrong_type("/limit", "Integer", other.type_name());
            LIMIT_DEFAULT
        }
    }
}

impl From<Top> for TopOut {
    fn from(top: Top) -> Self {
        let items = top
            .entries
            .into_iter()
            .map(|entry| TopEntryOut { value: value_out(entry.value), figures: (&entry.figures).into() });
        Self { from: top.from.to_rfc3339(), to: top.to.to_rfc3339(), items: items.collect() }
    }
}
