//! SMTP listeners. Applications submit mail to some of them; others accept returned mail (bounces, complaints, reports)
//! and mail to the operator.
//!
//! The session is a state machine in `smtp`, and `app` decides. This crate owns the sockets and enforces
//! limits: sessions in total and per address, bytes of all messages being received, time between two commands,
//! speed of a message, length of a session. A client that exceeds a limit gets a 4yz reply, usually 421. On listeners
//! with TLS from the first byte, surplus connections are closed without a reply. All listeners of one `Relay` share its
//! limits for sessions and memory.

mod bounce_receiver;
mod client;
mod connection;
mod conversation;
mod incoming;
mod listener_kind;
mod maybe_tls_stream;
mod memory;
mod phase;
mod proxy_protocol;
mod relay;
mod replies;
mod routed;
mod session_deadlines;
mod session_limit;
mod session_peer;
mod settings;

pub use listener_kind::ListenerKind;
pub use relay::Relay;
pub use settings::{Settings, TimeLimits};
