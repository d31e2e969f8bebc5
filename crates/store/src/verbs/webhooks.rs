//! Webhook endpoints: create, find, list, change, rotate the secret, delete.

use postroad_model::{EventSet, ServerId, Timestamp, WebhookFormat, WebhookId};

use crate::error::StoreError;
use crate::records::{NewWebhook, Webhook, WebhookChange, WebhookSecret};
use crate::sql::{Row, Sql};

/// Rows of the queue removed in one go: a write that is soon over.
const PURGE_ROWS: i64 = 500;

macro_rules! columns {
    () => {
        "id, server_id, url, wants, format, enabled, disabled_reason, secret, previous_secret, previous_until,
         failing_since, last_success_at, created_at, updated_at"
    };
}

pub(crate) async fn create(sql: &Sql<'_>, new: NewWebhook, now: Timestamp) -> Result<Webhook, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO webhooks (server_id, url, wants, format, enabled, secret, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7) RETURNING id",
            &[
                new.server_id.0.into(),
                new.url.into(),
                new.events.bits().into(),
                new.format.as_str().into(),
                new.enabled.into(),
                new.secret.0.into(),
                now.into(),
            ],
        )
        .await?;
    let id = WebhookId(row.ok_or(StoreError::Conflict)?.int(0)?);
    find(sql, new.server_id, id).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let text = concat!("SELECT ", columns!(), " FROM webhooks WHERE server_id = $1 AND id = $2");
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    row.as_ref().map(read).transpose()
}

/// In the order of their ids, beginning after `after`.
pub(crate) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    after: Option<WebhookId>,
    limit: i64,
) -> Result<Vec<Webhook>, StoreError> {
    let text = concat!(
        "SELECT ",
        columns!(),
        " FROM webhooks WHERE server_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    );
    let after = after.map_or(0, |id| id.0);
    sql.query(text, &[server_id.0.into(), after.into(), limit.into()]).await?.iter().map(read).collect()
}

/// Of all servers.
pub(crate) async fn list_enabled(sql: &Sql<'_>) -> Result<Vec<Webhook>, StoreError> {
    let text = concat!("SELECT ", columns!(), " FROM webhooks WHERE enabled = 1 ORDER BY id");
    sql.query(text, &[]).await?.iter().map(read).collect()
}

/// Who enables one again forgives what it did before.
pub(crate) async fn change(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
    change: WebhookChange,
    now: Timestamp,
) -> Result<Webhook, StoreError> {
    let is_enabled_again = change.enabled == Some(true);
    sql.change(
        "UPDATE webhooks SET url = coalesce($3, url), wants = coalesce($4, wants), format = coalesce($5, format),
                enabled = coalesce($6, enabled),
                disabled_reason = CASE WHEN CAST($7 AS BIGINT) = 1 THEN NULL ELSE disabled_reason END,
                failing_since = CASE WHEN CAST($7 AS BIGINT) = 1 THEN NULL ELSE failing_since END, updated_at = $8
         WHERE server_id = $1 AND id = $2",
        &[
            server_id.0.into(),
            id.0.into(),
            change.url.into(),
            change.events.map(EventSet::bits).into(),
            change.format.map(WebhookFormat::as_str).into(),
            change.enabled.into(),
            is_enabled_again.into(),
            now.into(),
        ],
    )
    .await?;
    find(sql, server_id, id).await?.ok_or(StoreError::NotFound)
}

/// The secret so far stays good until `previous_until`.
pub(crate) async fn rotate_secret(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
    secret: WebhookSecret,
    previous_until: Timestamp,
    now: Timestamp,
) -> Result<Webhook, StoreError> {
    sql.change(
        "UPDATE webhooks SET previous_secret = secret, previous_until = $4, secret = $3, updated_at = $5
         WHERE server_id = $1 AND id = $2",
        &[server_id.0.into(), id.0.into(), secret.0.into(), previous_until.into(), now.into()],
    )
    .await?;
    find(sql, server_id, id).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn delete(sql: &Sql<'_>, server_id: ServerId, id: WebhookId) -> Result<(), StoreError> {
    let text = "DELETE FROM webhooks WHERE server_id = $1 AND id = $2";
    sql.change(text, &[server_id.0.into(), id.0.into()]).await
}

/// Forgets some of what a webhook was to be told; returns how much.
pub(crate) async fn purge_queue(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 AND event_id IN (
             SELECT event_id FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 ORDER BY event_id LIMIT $3)",
        &[server_id.0.into(), id.0.into(), PURGE_ROWS.into()],
    )
    .await
}

fn read(row: &Row) -> Result<Webhook, StoreError> {
    let previous_secret = match (row.text_opt(8)?, row.time_opt(9)?) {
        (Some(secret), Some(until)) => Some((WebhookSecret(secret), until)),
        _ => None,
    };
    Ok(Webhook {
        id: WebhookId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        url: row.text(2)?,
        events: EventSet::from_bits(row.int(3)?),
        format: row.name(4, WebhookFormat::parse)?,
        enabled: row.flag(5)?,
        disabled_reason: row.text_opt(6)?,
        secret: WebhookSecret(row.text(7)?),
        previous_secret,
        failing_since: row.time_opt(10)?,
        last_success_at: row.time_opt(11)?,
        created_at: row.time(12)?,
        updated_at: row.time(13)?,
    })
}
