//! Request inspectors: URLs of the service itself that accept any request, and the newest requests to each. They are in
//! the store so that every node shows a request, whichever node received it.

mod open;
mod record;
mod requests;

pub use record::{Inspector, InspectorRequest, NewInspector, NewInspectorRequest};
