//! The SMTP kind: applications submit mail here as to any mail server, and mail that comes back is taken, on listeners of
//! its own that relay nothing. The session is a state machine of `smtp`, the
//! decisions are `app`'s; what is here owns the sockets and keeps clients within their bounds of time and memory.
//!
//! Bounds: sessions in all and per address, the bytes of all messages on their way in, the time between two commands,
//! the pace of a message, the length of a session. Who passes one hears 421 or 4yz and hurts nobody else.

mod bounce_receiver;
mod client;
mod connection;
mod conversation;
mod incoming;
mod maybe_tls_stream;
mod memory;
mod pace;
mod places;
mod proxy_protocol;
mod relay;
mod replies;
mod routed;
mod session_peer;
mod settings;

pub use relay::{ListenerKind, Relay};
pub use settings::{Settings, TimeLimits};
