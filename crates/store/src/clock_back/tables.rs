//! Corrections of holds, idempotency keys, gates, message limits, warm-ups and webhooks.

use std::time::Duration;

use postroad_model::{LimitPeriod, Timestamp};

use crate::accept::initial::{HOLD_DURATION, hour_at};
use crate::error::StoreError;
use crate::pools::source_days::day_of;
use crate::sql::Sql;

/// Shortens holds that end later than any hold can, at most `limit`. Returns how many.
pub(crate) async fn shorten_holds(sql: &Sql<'_>, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
    sql.execute(
        "UPDATE messages SET hold_expiry = $1 WHERE (server_id, id) IN (
             SELECT server_id, id FROM messages WHERE hold_expiry > $1 ORDER BY hold_expiry DESC LIMIT $2)",
        &[now.plus(HOLD_DURATION).into(), limit.into()],
    )
    .await
}

/// Shortens the lifetime of idempotency keys that expire later than `key_lifetime` from now, at most `limit` keys.
/// Returns how many.
pub(crate) async fn shorten_idempotency_keys(
    sql: &Sql<'_>,
    now: Timestamp,
    key_lifetime: Duration,
    limit: i64,
) -> Result<u64, StoreError> {
    sql.execute(
        "UPDATE idempotency_keys SET expires_at = $1 WHERE (server_id, key) IN (
             SELECT server_id, key FROM idempotency_keys WHERE expires_at > $1 ORDER BY expires_at DESC LIMIT $2)",
        &[now.plus(key_lifetime).into(), limit.into()],
    )
    .await
}

/// Corrects gates, periods of limits, days of warm-ups and the health of webhooks, whose tables have only a few rows
/// for each server or address.
pub(crate) async fn correct_small_tables(sql: &Sql<'_>, now: Timestamp) -> Result<(), StoreError> {
    let changes = [
        "UPDATE gates SET ends_at = ends_at - (created_at - $1), created_at = $1 WHERE created_at > $1",
        "UPDATE webhooks SET last_success_at = $1 WHERE last_success_at > $1",
        "UPDATE webhooks SET failing_since = $1 WHERE failing_since > $1",
        "UPDATE webhooks SET last_failure_at = $1 WHERE last_failure_at > $1",
        "UPDATE sources SET warmup_started_at = $1 WHERE warmup_started_at > $1",
        "UPDATE sources SET warmup_paused_at = $1 WHERE warmup_paused_at > $1",
    ];
    for text in changes {
        sql.execute(text, &[now.into()]).await?;
    }
    sql.execute("DELETE FROM server_hours WHERE hour > $1", &[hour_at(now).into()]).await?;
    for period in LimitPeriod::ALL {
        let text = "DELETE FROM account_periods WHERE period = $1 AND number > $2";
        sql.execute(text, &[(period as i64 + 1).into(), period.number_at(now).into()]).await?;
    }
    let today = [day_of(now).into()];
    sql.execute(
        "INSERT INTO source_days (source_id, provider, day, sent, bounced, complained, sent_before, bounced_before,
             complained_before)
         SELECT source_id, provider, CAST($1 AS BIGINT), CAST(sum(sent) AS BIGINT), CAST(sum(bounced) AS BIGINT),
                CAST(sum(complained) AS BIGINT), CAST(sum(sent_before) AS BIGINT),
                CAST(sum(bounced_before) AS BIGINT), CAST(sum(complained_before) AS BIGINT)
         FROM source_days WHERE day > $1 GROUP BY source_id, provider
         ON CONFLICT (source_id, provider, day) DO UPDATE SET sent = source_days.sent + excluded.sent,
             bounced = source_days.bounced + excluded.bounced, complained = source_days.complained + excluded.complained,
             sent_before = source_days.sent_before + excluded.sent_before,
             bounced_before = source_days.bounced_before + excluded.bounced_before,
             complained_before = source_days.complained_before + excluded.complained_before",
        &today,
    )
    .await?;
    sql.execute("DELETE FROM source_days WHERE day > $1", &today).await?;
    Ok(())
}
