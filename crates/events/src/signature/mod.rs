//! How receivers know that a post is ours.

mod postal;
mod standard;

pub use postal::{PostalSigner, PostalSignerError};
pub use standard::{SecretError, StandardSecret};

pub(crate) use standard::signatures;
