//! The portal of the real binary, over HTTP and in Chromium: the binary, its pages, Chromium.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod analytics;
mod audit;
mod cancelling;
mod changes;
mod customers;
mod days;
mod developer;
mod domains;
mod events;
mod first_run;
mod foreign;
mod forms;
mod hostile;
mod hostile_names;
mod hostile_returns;
mod inbox;
mod inspector;
mod keyboard;
mod keys;
mod live;
mod managing;
mod messages;
mod operating;
mod over_tls;
mod pages;
mod refused;
mod repeats;
mod roles;
mod routes;
mod served;
mod set_up;
mod sharing;
mod site;
mod suppressions;
mod templates;
mod tour;
mod unscripted;
mod webhooks;
mod weight;
