//! Signing stored messages so that receivers can tell who answers for them (RFC 6376; Ed25519 by RFC 8463).
//!
//! Always relaxed/relaxed, no `l=` (a signed beginning lets anybody append), no `x=` (a message may wait for two days
//! and must leave with the same bytes). The bytes of a signature depend on message, key and `t=` alone, so every
//! attempt sends the same message.

mod body;
mod canonical;
mod header;
mod short_rsa;
mod signer;

pub use canonical::Canonical;
pub(crate) use short_rsa::ShortRsaKey;
pub use signer::{Signer, SignerError};
