//! The order of events is that of their transactions' numbers, which a cluster counts from the beginning. A dump that
//! is restored into another cluster brings events with numbers that lie ahead there: new ones would come before those
//! that were read, and no reader would see them. So a constant is added to the numbers, and raised when a store is opened there.
//!
//! It is a literal in two SQL functions, which the planner puts in the place of their calls: neither an insert
//! nor a bound of an index costs a look into a table, and a prepared statement is planned again when they change.

use deadpool_postgres::Transaction;

use crate::error::StoreError;

/// Beyond everything that readers of the old cluster can have as a cursor, also if it went on after the dump: more
/// transactions than any cluster makes in a year, and room for millions of moves.
const BEYOND: i64 = 1 << 40;

/// `marks` are asked as well: the events they stand at may have been removed. A row that is visible comes from a
/// transaction below `next`, unless it came with a dump.
const LOOK: &str = "WITH now AS (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
                          settled_xact() - pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS added),
              stored AS (SELECT greatest(
                  (SELECT max(xact) FROM counter_marks),
                  (SELECT max(last.xact) FROM servers s CROSS JOIN LATERAL
                       (SELECT e.xact FROM events e WHERE e.server_id = s.id
                        ORDER BY e.xact DESC, e.id DESC LIMIT 1) last), 0) AS highest)
     SELECT now.next, now.added, stored.highest FROM now, stored";

/// Under the lock of migrations: of several nodes that open a restored database, one raises it.
pub(super) async fn go_on(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let row = transaction.query_one(LOOK, &[]).await?;
    let (next, added, highest): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if highest < next + added {
        return Ok(());
    }
    let added = highest + BEYOND - next;
    let text = format!(
        "CREATE OR REPLACE FUNCTION event_xact() RETURNS BIGINT LANGUAGE sql STABLE
             AS 'SELECT pg_current_xact_id()::text::bigint + {added}::bigint';
         CREATE OR REPLACE FUNCTION settled_xact() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
             AS 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + {added}::bigint'"
    );
    transaction.batch_execute(&text).await?;
    tracing::info!(added, "the database is in another cluster: its events go on behind those it came with");
    Ok(())
}
