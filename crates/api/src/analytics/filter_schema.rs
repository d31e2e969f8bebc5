//! The values of a filter as a field of requests, for the OpenAPI document.

use postroad_openapi_macros::request_fields;

/// One value, or a list of which any may match; an empty string matches messages without a value.
#[request_fields]
#[serde(untagged)]
pub(crate) enum FilterIn {
    One(String),
    Any(Vec<String>),
}

/// One id, or a list of which any may match; an empty string matches messages without a value.
#[request_fields]
#[serde(untagged)]
pub(crate) enum IdFilterIn {
    One(IdFilterValueIn),
    Any(Vec<IdFilterValueIn>),
}

/// The id as an integer or as text.
#[request_fields]
#[serde(untagged)]
pub(crate) enum IdFilterValueIn {
    Text(String),
    Id(i64),
}
