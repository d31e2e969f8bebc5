//! Keeps the order of events after a restore into another PostgreSQL cluster. Events are ordered by transaction number,
//! which each cluster counts from the beginning. A dump restored into another cluster has events with higher numbers
//! than that cluster's new events. New events would then come before events that were already read, and no reader would
//! see them. So an offset is added to the numbers, and raised when a store is opened in another cluster.
//!
//! The offset is a literal in two SQL functions, which the planner inlines: neither an insert nor an index bound
//! needs a table lookup, and prepared statements are planned again when the offset changes.

use deadpool_postgres::Transaction;

use crate::error::StoreError;

/// Gap left at each move to another cluster. New numbers then exceed any cursor that readers of the old cluster can
/// have, even if that cluster continued after the dump. It is more transactions than a cluster makes in a year, with
/// room for millions of moves.
const GAP: i64 = 1 << 40;

/// Reads the next transaction number, the offset, and the highest stored number. A visible row comes from a
/// transaction below `next`, unless it came with a dump. `counter_marks` is read as well, because the events at its
/// positions may have been removed.
const READ: &str = "WITH now AS (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
                          settled_xact() - pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS added),
              stored AS (SELECT greatest(
                  (SELECT max(xact) FROM counter_marks),
                  (SELECT max(changed_xact) FROM servers), (SELECT max(changed_xact) FROM accounts),
                  (SELECT max(last.xact) FROM servers s CROSS JOIN LATERAL
                       (SELECT e.xact FROM events e WHERE e.server_id = s.id
                        ORDER BY e.xact DESC, e.id DESC LIMIT 1) last), 0) AS highest)
     SELECT now.next, now.added, stored.highest FROM now, stored";

/// Raises the offset if stored numbers are not below this cluster's next number. Runs under the migration lock: if
/// several nodes open a restored database, only one raises the offset.
pub(super) async fn continue_order(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let row = transaction.query_one(READ, &[]).await?;
    let (next, offset, highest): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if highest < next + offset {
        return Ok(());
    }
    let offset = highest + GAP - next;
    let text = format!(
        "CREATE OR REPLACE FUNCTION event_xact() RETURNS BIGINT LANGUAGE sql STABLE
             AS 'SELECT pg_current_xact_id()::text::bigint + {offset}::bigint';
         CREATE OR REPLACE FUNCTION settled_xact() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
             AS 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + {offset}::bigint'"
    );
    transaction.batch_execute(&text).await?;
    tracing::info!(
        added = offset,
        "database was restored into another cluster; new events continue after the restored ones"
    );
    Ok(())
}
