//! Macros for structs and endpoints that the OpenAPI document describes.
//!
//! The document is a file, `docs/openapi.json`, which the service serves unchanged. A test of the API crate builds the
//! document from the endpoints and their structs with utoipa, and fails if the file differs. Outside tests nothing
//! needs the descriptions, and they take time to compile. Therefore the API crate uses utoipa's macros only in tests,
//! and the macros of this crate elsewhere (`api/src/documented.rs`).

use proc_macro::TokenStream;

const TEST_ONLY_ATTRIBUTES: &str = r#"
    #[cfg(test)]
    #[derive(Debug, ::utoipa::ToSchema)]
    #[expect(dead_code, reason = "only for the OpenAPI document; a test compares its names with those that are read")]
"#;

/// Marks a struct that describes the fields of a request. The struct exists in tests only.
///
/// No value of such a struct is ever made: requests are read field by field, so that one answer lists every problem.
#[proc_macro_attribute]
pub fn request_fields(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut fields: TokenStream = TEST_ONLY_ATTRIBUTES.parse().expect("the attributes above are Rust");
    fields.extend(item);
    fields
}

/// Stands in for `utoipa::ToSchema` outside tests: accepts `#[schema(…)]` and adds nothing.
#[proc_macro_derive(ToSchema, attributes(schema))]
pub fn to_schema(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Stands in for `utoipa::path` outside tests: leaves the function as it is.
#[proc_macro_attribute]
pub fn path(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    item
}
