//! PostgreSQL for tests: one private cluster per run, one database per test, outages on demand.

mod cluster;
mod database;
mod proxy;

pub use cluster::{Cluster, ClusterError, find_server_programs};
pub use database::{Database, SERVER_VARIABLE, all_text};
pub use proxy::PgProxy;
