//! Signatures by which receivers verify posts.

mod postal;
mod standard;

pub use postal::{PostalSigner, PostalSignerError};
pub use standard::{SecretError, StandardSecret};

pub(crate) use standard::signatures;
