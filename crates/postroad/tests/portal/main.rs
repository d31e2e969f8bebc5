//! The portal in a real browser: the binary, its pages, Chromium.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod audit;
mod changes;
mod first_run;
mod forms;
mod hostile;
mod hostile_names;
mod hostile_returns;
mod inbox;
mod managing;
mod messages;
mod operating;
mod pages;
mod repeats;
mod roles;
mod routes;
mod served;
mod set_up;
mod sharing;
mod site;
mod tour;
mod unscripted;
