//! Values of dimensions as fields of answers.

use postroad_app::analytics::{Dimension, DimensionValue, Series};
use serde::{Serialize, Serializer};

use super::metrics_out::FiguresOut;
use crate::documented::ToSchema;

/// Value of the dimension: a name, or the id of a credential.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ValueOut {
    Text(String),
    Number(i64),
}

/// One series of an analytics answer; `dimension_schemas.rs` has its OpenAPI schema.
#[derive(Debug, Serialize)]
pub(crate) struct SeriesOut {
    #[serde(flatten)]
    values: SeriesValuesOut,
    #[serde(flatten)]
    points: SeriesPointsOut,
}

/// The values of the requested dimensions, in the order of `Dimension::ALL`.
#[derive(Debug)]
struct SeriesValuesOut(Vec<(Dimension, Option<ValueOut>)>);

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SeriesPointsOut {
    /// True if this series is the sum of all that are not among the largest: an answer has at most 500 series and
    /// 10,000 points.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    rest: bool,
    points: Vec<PointOut>,
}

/// One step.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PointOut {
    /// Start of the step.
    #[schema(format = DateTime)]
    at: String,
    #[serde(flatten)]
    figures: FiguresOut,
}

impl Serialize for SeriesValuesOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(dimension, value)| (dimension.as_str(), value)))
    }
}

/// JSON form of a value; `None`, which is null, for messages without a value.
pub(super) fn value_out(value: DimensionValue) -> Option<ValueOut> {
    match value {
        DimensionValue::None => None,
        DimensionValue::Text(text) => Some(ValueOut::Text(text)),
        DimensionValue::Number(number) => Some(ValueOut::Number(number)),
    }
}

/// JSON form of a series, with its values of the requested dimensions.
pub(super) fn series_out(series: Series, dimensions: &[Dimension]) -> SeriesOut {
    let points = series.points.iter();
    let points = points.map(|point| PointOut { at: point.at.to_rfc3339(), figures: (&point.figures).into() });
    let points = SeriesPointsOut { rest: series.is_rest, points: points.collect() };
    let values = series.values.into_iter().map(value_out);
    let mut values: Vec<_> = dimensions.iter().copied().zip(values).collect();
    values.sort_by_key(|(dimension, _)| *dimension);
    SeriesOut { values: SeriesValuesOut(values), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_a_series_have_a_fixed_order_and_null_for_no_value() {
        let dimensions = [Dimension::Credential, Dimension::Tag];
        let values = vec![DimensionValue::Number(7), DimensionValue::None];
        let series = Series { values, is_rest: false, points: Vec::new() };
        let text = serde_json::to_string(&series_out(series, &dimensions)).unwrap();
        assert_eq!(text, r#"{"tag":null,"credential":7,"points":[]}"#);
        let rest = Series { values: Vec::new(), is_rest: true, points: Vec::new() };
        let rest = serde_json::to_string(&series_out(rest, &[])).unwrap();
        assert_eq!(rest, r#"{"rest":true,"points":[]}"#);
    }
}
