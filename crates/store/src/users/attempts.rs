//! Counts of sign-in attempts, shared by all nodes. Keys are hashes, so the table names nobody.

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;

use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Counts one attempt under each key. Returns the counts since `window_start`, including this attempt, and the
    /// start of each count.
    pub async fn count_attempt(
        &self,
        keys: Vec<KeyHash>,
        window_start: Timestamp,
    ) -> Result<Vec<(u32, Timestamp)>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(count(sql, keys, window_start, now))).await
    }

    /// Removes one attempt under each key, after a successful sign-in.
    pub async fn forgive_attempt(&self, keys: Vec<KeyHash>) -> Result<()> {
        self.write(move |sql| Box::pin(forgive(sql, keys))).await
    }

    /// Removes expired counts; returns how many.
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
    // In a fixed order, to avoid deadlocks between nodes.
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
