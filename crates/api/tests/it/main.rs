//! The HTTP API seen from outside: a real HTTP server on a free port, over a real store (SQLite, in some tests
//! PostgreSQL).

#![cfg(test)]

mod bodies;
mod calls;
mod clock_back;
mod dev_inbox;
mod domains_over_time;
mod forms;
mod holds;
mod large_messages;
mod limits;
mod listeners;
mod logs;
mod lookups;
mod reference;
mod service;
