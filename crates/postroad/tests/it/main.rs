//! The product from outside: the real binary, its HTTP port and its command line, on both engines.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod access;
mod accounts;
mod admin;
mod analytics;
mod attacks;
mod batch;
mod ceilings;
mod config;
mod crash;
mod delivery;
mod dev;
mod dev_options;
mod docs;
mod domains;
mod errors;
mod explain;
mod explain_bounce;
mod files;
mod idempotency;
mod injection;
mod large;
mod limits;
mod lookup;
mod mailpit;
mod openapi;
mod outage;
mod raw;
mod recipients;
mod returns;
mod scheduling;
mod search;
mod server_settings;
mod smtp;
mod smtp_clients;
mod smtp_crowd;
mod suppressions;
mod templates;
mod terminal;
mod test_mode;
mod tracking;
mod transport;
mod users;
mod webhooks;
mod world;
