//! Tests of server sessions.

mod any_split;
mod auth;
mod chunks;
mod data;
mod dialogue;
mod envelope;
mod greeting;
mod limits;
mod over_tcp;
mod smuggling;
