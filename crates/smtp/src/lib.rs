//! SMTP state machines: bytes in, bytes and events out. The crate opens no socket and reads no clock.
//!
//! `client` is a sending session, `server` a receiving one; the owner of the socket drives the session (the modules'
//! headers show the loop). Both have their own parsers. The crate smtp-proto is unsuitable: its reply parser saturates
//! enhanced codes at 255 (Microsoft sends 5.7.511), strips them from the text that the delivery record quotes, and has
//! no limit per line. Its command parser accepts a bare LF as a line end and skips bare CRs, both of which must be
//! refused here.

pub mod body;
pub mod capabilities;
pub mod client;
pub mod phase;
pub mod reply;
pub mod reply_reader;
pub mod server;
mod stuffing;
pub mod transcript;

pub use body::{Body, BodyError};
pub use capabilities::Capabilities;
pub use client::{
    ClientConfig, ClientSession, Closed, Credentials, EndCause, Event, HeloName, Outcome, OutgoingMessage,
    ProtocolError, SendError, TlsMode, Verdict,
};
pub use phase::Phase;
pub use reply::{EnhancedCode, Reply, ReplyClass};
pub use reply_reader::ReplyError;
pub use transcript::Transcript;
