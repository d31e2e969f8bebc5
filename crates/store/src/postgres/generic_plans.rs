//! Transactions in which PostgreSQL keeps the plans of statements (generic plans).
//!
//! Planning each time took a third of the database's time. Keeping a plan is only safe for statements whose plan does
//! not depend on table statistics. The statistics are those of the last ANALYZE, when the queue was usually empty and a
//! new weekly partition still small. Inserts are safe. So are reads of one row by its primary key. So are statements that look up
//! one row for each of a batch inside a `LATERAL … LIMIT 1`, which the planner cannot turn into another join. A plain
//! join of the batch with a table is planned each time.

use deadpool_postgres::ClientWrapper;
use futures_util::future::join3;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::StoreError;

/// Begins a transaction that uses generic plans.
pub(super) const BEGIN_WITH_GENERIC_PLANS: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";

/// Runs one statement in its own transaction. BEGIN, the statement and COMMIT are sent at once.
pub(crate) async fn query(
    client: &ClientWrapper,
    text: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    let statement = client.prepare_cached(text).await?;
    let (begun, rows, committed) = join3(
        client.batch_execute(BEGIN_WITH_GENERIC_PLANS),
        client.query(&statement, params),
        client.batch_execute("COMMIT"),
    )
    .await;
    begun?;
    let rows = rows?;
    committed?;
    Ok(rows)
}
