//! The macros that describe endpoints and structs for the OpenAPI document. In tests these are utoipa's, which build
//! the document; elsewhere these are macros of the same names that do nothing.

#[cfg(not(test))]
pub(crate) use postroad_openapi_macros::{ToSchema, path};
#[cfg(test)]
pub(crate) use utoipa::{ToSchema, path};

/// Every HTTP 200 answer is one of these two; check `status`.
#[cfg(test)]
#[derive(Debug, serde::Serialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "no value of it is ever made")]
#[expect(dead_code, reason = "only its schema is used; the two are written from different places")]
pub(crate) enum Answer<T> {
    Success(crate::envelope::SuccessEnvelope<T>),
    Failure(crate::envelope::FailureEnvelope<'static>),
}
