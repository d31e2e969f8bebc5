//! One conformance suite over both engines: `name::sqlite` and `name::postgres` run the same function.
//! PostgreSQL comes from `cargo xtask test`.

mod accept;
mod bodies;
mod child;
mod crash;
mod fixture;
mod idempotency;
mod model;
mod nodes;
mod opening;
mod outage;
mod queue;
mod schema;
mod setup;
