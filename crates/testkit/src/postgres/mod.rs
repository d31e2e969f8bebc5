//! PostgreSQL for tests: one private cluster per run, one database per test, outages on demand.

mod database;
mod proxy;

pub use database::{Database, RowLock, all_text, run};
pub(crate) use database::{columns_named, pairs};
pub use postroad_test_programs::{Cluster, ClusterError, find_server_programs};
pub use proxy::PgProxy;
