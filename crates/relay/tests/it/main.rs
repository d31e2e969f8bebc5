//! The relay on real sockets: a service in this process, and scripted clients.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod addresses;
mod credentials;
mod limits;
mod messages;
mod prebuilt_mail;
mod service;
mod smuggling;
mod stopping;
mod submission_options;
