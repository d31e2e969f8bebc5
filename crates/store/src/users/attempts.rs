//! Counted attempts to sign in, shared by all nodes. Keys are hashes, so that the table names nobody.

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;

use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Counts one attempt under each key; returns the numbers since `window_start`, this one included, and the moment
    /// from which each is counted.
    pub async fn count_attempt(
        &self,
        keys: Vec<KeyHash>,
        window_start: Timestamp,
    ) -> Result<Vec<(u32, Timestamp)>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(count(sql, keys, window_start, now))).await
    }

    /// Takes one attempt back under each key, because it was the right person.
    pub async fn forgive_attempt(&self, keys: Vec<KeyHash>) -> Result<()> {
        self.write(move |sql| Box::pin(forgive(sql, keys))).await
    }

    /// Removes counts that are over; returns their number.
    pub async fn purge_attempts(&self, window_start: Timestamp, limit: usize) -> Result<u64> {
        self.execute(
            "DELETE FROM sign_in_attempts WHERE key IN
             (SELECT key FROM sign_in_attempts WHERE since < $1 ORDER BY since LIMIT $2)",
            vec![window_start.into(), (limit as i64).into()],
        )
        .await
    }
}

async fn count(
    sql: &Sql<'_>,
    keys: Vec<KeyHash>,
    window_start: Timestamp,
    now: Timestamp,
) -> Result<Vec<(u32, Timestamp)>, StoreError> {
    // In one order, so that two nodes do not wait for each other in a circle.
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|at| keys[*at].0);
    let mut counts = vec![(0, now); keys.len()];
    for at in order {
        let row = sql
            .query_opt(
                "INSERT INTO sign_in_attempts (key, since, count) VALUES ($1, $2, 1)
                 ON CONFLICT (key) DO UPDATE SET
                     since = CASE WHEN sign_in_attempts.since < $3 THEN $2 ELSE sign_in_attempts.since END,
                     count = CASE WHEN sign_in_attempts.since < $3 THEN 1 ELSE sign_in_attempts.count + 1 END
                 RETURNING count, since",
                &[keys[at].0.to_vec().into(), now.into(), window_start.into()],
            )
            .await?
            .ok_or(StoreError::Conflict)?;
        counts[at] = (u32::try_from(row.int(0)?).unwrap_or(u32::MAX), row.time(1)?);
    }
    Ok(counts)
}

async fn forgive(sql: &Sql<'_>, mut keys: Vec<KeyHash>) -> Result<(), StoreError> {
    keys.sort_unstable_by_key(|key| key.0);
    for key in keys {
        let text = "UPDATE sign_in_attempts SET count = count - 1 WHERE key = $1 AND count > 0";
        sql.execute(text, &[key.0.to_vec().into()]).await?;
    }
    Ok(())
}
