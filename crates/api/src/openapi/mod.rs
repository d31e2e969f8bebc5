//! OpenAPI 3.1 document of the API.

#[cfg(test)]
mod document;

/// The document as served: the file in `docs`, which a test in `document.rs` compares with the code.
pub const OPENAPI_JSON: &str = include_str!("../../../../docs/openapi.json");
