//! DKIM signatures (RFC 6376; Ed25519 by RFC 8463).
//!
//! Always relaxed/relaxed; no `l=` (anybody could append to the signed part), no `x=` (a message may wait for days and
//! must keep the same bytes). A signature depends only on the message, the `Signer` and `t=`, so every attempt sends
//! the same bytes.

mod body;
mod canonical;
mod header;
mod short_rsa;
mod signer;

pub use canonical::Canonical;
pub(crate) use short_rsa::ShortRsaKey;
pub use signer::{Signer, SignerError};
