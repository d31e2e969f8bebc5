//! `#[request_shape]` on a struct describes the fields of a request to the OpenAPI document.
//!
//! No value of such a struct is ever made: requests are read field by field, so that one answer lists every problem. The
//! attribute derives what the document needs, and tells the compiler once that the fields are not read.

use proc_macro::TokenStream;

const DERIVES: &str = r#"
    #[derive(Debug, ::utoipa::ToSchema)]
    #[expect(dead_code, reason = "only for the OpenAPI document; a test compares its names with those that are read")]
"#;

/// Derives `ToSchema`; the struct's own attributes (`#[schema(…)]`) follow.
#[proc_macro_attribute]
pub fn request_shape(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut shape: TokenStream = DERIVES.parse().expect("the attributes above are Rust");
    shape.extend(item);
    shape
}
