//! The dimensions as fields of requests and answers.

use postroad_app::analytics::{Dimension, DimensionValue, Series};
use postroad_openapi_macros::request_shape;
use serde::Serialize;

use super::metrics_out::FiguresOut;
use crate::documented::ToSchema;
use crate::envelope::OrNull;

/// One value, or a list of which any may match; an empty string matches messages without a value.
#[request_shape]
#[serde(untagged)]
pub(crate) enum FilterIn {
    One(String),
    Any(Vec<String>),
}

/// Only messages that match all of these.
#[request_shape]
pub(crate) struct FiltersIn {
    /// Domain of the sender.
    domain: Option<FilterIn>,
    tag: Option<FilterIn>,
    /// Mail provider of the recipient's domain, such as `google`; `other` if unknown.
    recipient_provider: Option<FilterIn>,
    template: Option<FilterIn>,
    /// Name of the pool.
    ip_pool: Option<FilterIn>,
    /// Id of the credential.
    credential: Option<FilterIn>,
    /// Why attempts failed or messages bounced, such as `spam_block`; empty for messages that did not fail.
    bounce_class: Option<FilterIn>,
    /// Address of this service from which the attempt was made.
    source_ip: Option<FilterIn>,
    /// `TLSv1.3`, `TLSv1.2`, `other`; empty for attempts without TLS.
    tls_version: Option<FilterIn>,
}

/// Has the requested dimensions; null for messages without a value.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct SeriesOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    domain: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    tag: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    recipient_provider: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    template: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    ip_pool: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    credential: Option<OrNull<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    bounce_class: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    source_ip: Option<OrNull<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    tls_version: Option<OrNull<String>>,
    /// True if this series adds up everything beyond the largest series: there are at most 500 series and
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

/// JSON form of a series, with its values of the requested dimensions.
pub(super) fn series_out(series: Series, dimensions: &[Dimension]) -> SeriesOut {
    let points = series.points.iter();
    let points = points.map(|point| PointOut { at: point.at.to_rfc3339(), figures: (&point.figures).into() });
    let mut out = SeriesOut { rest: series.is_rest, points: points.collect(), ..SeriesOut::default() };
    for (dimension, value) in dimensions.iter().zip(series.values) {
        let (text, number) = match value {
            DimensionValue::None => (None, None),
            DimensionValue::Text(text) => (Some(text), None),
            DimensionValue::Number(number) => (None, Some(number)),
        };
        match dimension {
            Dimension::Domain => out.domain = Some(OrNull(text)),
            Dimension::Tag => out.tag = Some(OrNull(text)),
            Dimension::RecipientProvider => out.recipient_provider = Some(OrNull(text)),
            Dimension::Template => out.template = Some(OrNull(text)),
            Dimension::IpPool => out.ip_pool = Some(OrNull(text)),
            Dimension::Credential => out.credential = Some(OrNull(number)),
            Dimension::BounceClass => out.bounce_class = Some(OrNull(text)),
            Dimension::SourceIp => out.source_ip = Some(OrNull(text)),
            Dimension::TlsVersion => out.tls_version = Some(OrNull(text)),
        }
    }
    out
}
