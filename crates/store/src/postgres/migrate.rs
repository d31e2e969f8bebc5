//! Runs migrations under an advisory lock, so that only one of several starting nodes runs them. The correction after a
//! restore into another cluster (`event_order.rs`) runs under the same lock.

use deadpool_postgres::Object;
use postroad_model::Timestamp;

use super::event_order;
use crate::error::{OpenError, StoreError};
use crate::migrations;

/// Key of the advisory lock: an arbitrary number that nothing else uses.
const LOCK_KEY: i64 = 0x706f_7374_726f_6164;

pub(super) async fn migrate(client: &mut Object, now: Timestamp) -> Result<(), OpenError> {
    run_migrations(client, now).await.map_err(|error| match error {
        // `lock_timeout` ended the wait for another node's migration, or for a table that somebody else uses.
        OpenError::Store(error) if error.is_lock_timeout() => {
            let text = "the schema is locked: another node is migrating it, or a program uses its tables; start again \
                        in a moment";
            StoreError::Unavailable(text.into()).into()
        }
        other => other,
    })
}

async fn run_migrations(client: &mut Object, now: Timestamp) -> Result<(), OpenError> {
    let transaction = client.transaction().await.map_err(StoreError::from)?;
    let text = format!(
        "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '10min'; SELECT pg_advisory_xact_lock({LOCK_KEY});
         CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY)"
    );
    transaction.batch_execute(&text).await.map_err(StoreError::from)?;
    let found: i64 = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[])
        .await
        .map_err(StoreError::from)?
        .get(0);
    for migration in migrations::pending(found)? {
        transaction
            .batch_execute(&migrations::fill_in_now(migration.postgres, now))
            .await
            .map_err(StoreError::from)?;
        transaction
            .execute("INSERT INTO schema_version (version) VALUES ($1)", &[&migration.version])
            .await
            .map_err(StoreError::from)?;
        tracing::info!(version = migration.version, "schema migrated");
    }
    event_order::continue_order(&transaction).await?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(())
}
