//! What the questions have in common: a range of time, filters, and whether programs count.

use postroad_app::analytics::{Dimension, DimensionValue, Filter, SURPLUS, WORDS_MAX};
use postroad_model::Timestamp;
use utoipa::ToSchema;

use crate::fields::{Fields, Findings, shortened};
use crate::json::Json;

/// Values of one filter.
const VALUES_MAX: usize = 100;

/// A value or a list of values, any of which fits; an empty text stands for messages that have none.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the shape for the OpenAPI document")]
pub(crate) enum FilterIn {
    One(String),
    Any(Vec<String>),
}

/// Only messages that fit all of these.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct FiltersIn {
    /// The sender's.
    domain: Option<FilterIn>,
    tag: Option<FilterIn>,
    /// Whose mail servers the recipient's domain has, such as `google`; `other` for those nobody knows.
    recipient_provider: Option<FilterIn>,
    template: Option<FilterIn>,
    /// By name.
    ip_pool: Option<FilterIn>,
    /// By id.
    credential: Option<FilterIn>,
}

/// `from` or `to`, if it is there.
pub(super) fn read_time(
    fields: &mut Fields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<Timestamp> {
    let text = fields.text(name, findings)?;
    let moment = Timestamp::parse_rfc3339(&text).filter(|moment| moment.as_micros() >= 0);
    if moment.is_none() {
        let message =
            format!("`{name}` has to be a time as RFC 3339 writes it, such as 2026-11-15T00:00:00Z");
        findings.problem(format!("/{name}"), message);
    }
    moment
}

pub(super) fn read_filters(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Filter> {
    let Some(mut given) = fields.object("filters", findings) else { return Vec::new() };
    let mut filters = Vec::new();
    for dimension in Dimension::ALL {
        filters.extend(read_filter(&mut given, dimension, findings));
    }
    // Not a warning: without the filter the numbers would be others than those asked for.
    for (pointer, name, _) in given.into_entries() {
        findings.problem(
            pointer,
            format!("`{}` is no dimension; there are {}", shortened(&name), dimension_names()),
        );
    }
    filters
}

/// A dimension as a field of its own.
pub(super) fn read_filter(
    fields: &mut Fields<'_>,
    dimension: Dimension,
    findings: &mut Findings,
) -> Option<Filter> {
    let pointer = fields.pointer(dimension.as_str());
    let given = match fields.take(dimension.as_str(), findings)? {
        Json::Array(values) => values,
        one => vec![one],
    };
    if given.len() > VALUES_MAX {
        findings.problem(&pointer, format!("A filter has at most {VALUES_MAX} values"));
        return None;
    }
    let mut values = Vec::with_capacity(given.len());
    for value in given {
        match value {
            Json::Text(text) => values.push(DimensionValue::of_text(dimension, &text)),
            Json::Number(number) if dimension == Dimension::Credential && number.as_i64().is_some() => {
                values.extend(number.as_i64().map(DimensionValue::Number));
            }
            other => findings.wrong_type(&pointer, "String", other.type_name()),
        }
    }
    Some(Filter { dimension, values })
}

/// As messages list them.
pub(super) fn dimension_names() -> String {
    Dimension::ALL.map(|dimension| format!("`{}`", dimension.as_str())).join(", ")
}

/// What is said beside numbers that lag behind, or that lump things together.
pub(super) fn add_warnings(is_current: bool, has_surplus: bool, warnings: &mut Vec<String>) {
    if !is_current {
        warnings.push("The newest events are still being counted; ask again in a moment".to_owned());
    }
    if has_surplus {
        warnings.push(format!(
            "This server uses more than {WORDS_MAX} different tags or templates; those beyond are counted as `{SURPLUS}`"
        ));
    }
}
