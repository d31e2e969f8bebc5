//! Request inspectors: URLs of the service itself that accept any request, and the newest requests to each. In the store,
//! so that a request that arrives at one node is shown by all.

mod open;
mod record;
mod requests;

pub use record::{Inspector, InspectorRequest, NewInspector, NewInspectorRequest};
