//! The values of a filter as a field of requests, for the OpenAPI document.

use postroad_openapi_macros::request_fields;

/// One value, or a list of which any may match; an empty string matches messages without a value.
#[request_fields]
#[serde(untagged)]
pub(crate) enum FilterIn {
    One(FilterValueIn),
    Any(Vec<FilterValueIn>),
}

/// A text; for `credential` also its id as an integer.
#[request_fields]
#[serde(untagged)]
pub(crate) enum FilterValueIn {
    Text(String),
    Id(i64),
}
