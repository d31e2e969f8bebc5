//! The store's verbs as others call them, by what they are about. Each one goes to the engine that is open.

mod analytics;
mod clock_back;
mod health;
mod mail;
mod queue;
mod queue_desk;
mod retention;
mod returns;
mod server_change;
mod setup;
