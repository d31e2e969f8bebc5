//! One conformance suite over both engines: `name::sqlite` and `name::postgres` run the same function.
//! PostgreSQL comes from `cargo xtask test`.

mod accept;
mod begin;
mod bodies;
mod child;
mod clock_back;
mod counting;
mod crash;
mod delivery_setup;
mod domain_reports;
mod domains;
mod feed;
mod fixture;
mod fresh;
mod history;
mod hourly_limit;
mod idempotency;
mod model;
mod nodes;
mod opening;
mod outage;
mod outcomes;
mod queue;
mod queue_admin;
mod recount;
mod restored;
mod retention;
mod returns;
mod scheduled;
mod schema;
mod server_events;
mod setup;
mod suppressions;
mod templates;
mod tracking_events;
mod webhooks;
