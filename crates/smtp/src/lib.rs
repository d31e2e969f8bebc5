//! SMTP as a state machine: bytes in, bytes and events out. Nothing here opens a socket or reads a clock.
//!
//! `client` is a sending session, `server` a receiving one; whoever owns the socket drives it (their headers show the
//! loop). Both read by hand and not by smtp-proto. Its reply parser saturates enhanced codes at 255 (Microsoft sends
//! 5.7.511), strips them from the text that the delivery record quotes, and offers no bound per line; its command
//! parser takes a bare LF for a line end and passes over bare CRs, both of which have to be refused here.

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
