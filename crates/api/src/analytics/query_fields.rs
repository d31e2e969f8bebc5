//! Filters and warnings that analytics calls share.

use postroad_app::analytics::{Dimension, DimensionValue, Filter, LIMITED_VALUES_MAX, OTHER_VALUES};

use crate::fields::{Fields, Findings, shortened};
use crate::json::Json;

/// Maximum number of values in one filter.
const VALUES_MAX: usize = 100;

pub(super) fn read_filters(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Filter> {
    let Some(mut filter_fields) = fields.object("filters", findings) else { return Vec::new() };
    let mut filters = Vec::new();
    for dimension in Dimension::ALL {
        filters.extend(read_filter(&mut filter_fields, dimension, findings));
    }
    // An unknown filter is a problem, not a warning: an ignored filter would return numbers that include other
    // messages.
    for (pointer, name, _) in filter_fields.into_entries() {
        findings.problem(
            pointer,
            format!("`{}` is not a dimension; use one of {}", shortened(&name), dimension_names()),
        );
    }
    filters
}

/// Takes the filter of one dimension from `fields`: the object `filters`, or the request itself.
pub(super) fn read_filter(
    fields: &mut Fields<'_>,
    dimension: Dimension,
    findings: &mut Findings,
) -> Option<Filter> {
    let pointer = fields.pointer(dimension.as_str());
    let entries = match fields.take(dimension.as_str(), findings)? {
        Json::Array(values) => values,
        one => vec![one],
    };
    if entries.len() > VALUES_MAX {
        findings.problem(&pointer, format!("A filter has at most {VALUES_MAX} values"));
        return None;
    }
    let mut values = Vec::with_capacity(entries.len());
    for value in entries {
        match value {
            Json::Text(text) => values.push(DimensionValue::of_text(dimension, &text)),
            Json::Number(number) if dimension.is_number() && number.as_i64().is_some() => {
                values.extend(number.as_i64().map(DimensionValue::Number));
            }
            other => findings.wrong_type(&pointer, "String", other.type_name()),
        }
    }
    Some(Filter { dimension, values })
}

/// Names of all dimensions, for error messages.
pub(super) fn dimension_names() -> String {
    Dimension::ALL.map(|dimension| format!("`{}`", dimension.as_str())).join(", ")
}

/// Adds warnings if the numbers lag behind, or if values beyond a limit are counted together.
pub(super) fn add_warnings(is_current: bool, has_other: bool, warnings: &mut Vec<String>) {
    if !is_current {
        warnings.push("The newest events are still being counted; ask again in a moment".to_owned());
    }
    if has_other {
        warnings.push(format!(
            "This server uses more than {LIMITED_VALUES_MAX} different tags, templates or source addresses; those beyond are counted as `{OTHER_VALUES}`"
        ));
    }
}
