//! Tests of the portal of the real binary, over HTTP and in Chromium.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod account_pages;
mod analytics;
mod audit;
mod cancellation;
mod cross_site_attacks;
mod customers;
mod day_filters;
mod developer;
mod domains;
mod events;
mod first_run;
mod foreign_objects;
mod forms;
mod hostile_names;
mod hostile_returns;
mod hostile_texts;
mod inbox;
mod inspector;
mod keyboard;
mod keys;
mod live_updates;
mod messages;
mod operator_pages;
mod page_weight;
mod pages;
mod pools;
mod queue;
mod refused_forms;
mod repeated_forms;
mod reports;
mod rescheduling;
mod roles;
mod routes;
mod servers;
mod service;
mod set_up;
mod shared_links;
mod suppressions;
mod templates;
mod tls;
mod tour;
mod webhooks;
mod without_javascript;
