//! Tests of client and server sessions: scripted dialogues, random bytes and real sockets.

#![cfg(test)]

mod any_bytes;
mod bdat;
mod closing;
mod data;
mod dialogue;
mod driver;
mod opening;
mod over_tcp;
mod server;
