//! Webhook endpoints: create, find, list, change, rotate the secret, disable, delete.

use std::fmt;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{
    EventKind, EventSet, IdGenerator, LimitedObject, ServerId, Timestamp, WebhookFormat, WebhookId,
};
use serde_json::json;

use crate::UpdateResult;
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::name_part::like_pattern;
use crate::setup::object_counts;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// Maximum number of outbox rows removed in one transaction, which keeps the transaction short.
const PURGED_ROWS_MAX: i64 = 500;

/// A signing secret; its `Debug` output hides the text.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(pub String);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

#[derive(Debug, Clone)]
pub struct NewWebhook {
    pub server_id: ServerId,
    pub url: String,
    pub events: EventSet,
    pub format: WebhookFormat,
    pub enabled: bool,
    pub secret: WebhookSecret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub server_id: ServerId,
    pub url: String,
    pub events: EventSet,
    pub format: WebhookFormat,
    pub enabled: bool,
    /// Why Postroad disabled the webhook, if it did.
    pub disabled_reason: Option<String>,
    pub secret: WebhookSecret,
    /// The previous secret, with which events are also signed until this time.
    pub previous_secret: Option<(WebhookSecret, Timestamp)>,
    /// When the current series of failures began.
    pub failing_since: Option<Timestamp>,
    pub last_success_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Incremented by every change of the settings or the secret.
    pub version: i64,
}

/// Changes of a webhook; `None` keeps a value.
#[derive(Debug, Clone, Default)]
pub struct WebhookChange {
    pub url: Option<String>,
    pub events: Option<EventSet>,
    pub format: Option<WebhookFormat>,
    pub enabled: Option<bool>,
}

/// The columns that `read` reads. `wants` has the bits of an `EventSet`.
macro_rules! columns {
    () => {
        "id, server_id, url, wants, format, enabled, disabled_reason, secret, previous_secret, previous_until,
         failing_since, last_success_at, created_at, updated_at, version"
    };
}

#[boxed_futures]
impl Store {
    pub async fn create_webhook(&self, new: NewWebhook) -> Result<Webhook> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, now))).await
    }

    pub async fn find_webhook(&self, server_id: ServerId, id: WebhookId) -> Result<Option<Webhook>> {
        self.read(move |sql| Box::pin(find(sql, server_id, id))).await
    }

    /// Webhooks of a server with ids after `after`, in the order of their ids; with `url_part`, only those whose URL
    /// contains this text.
    pub async fn list_webhooks(
        &self,
        server_id: ServerId,
        url_part: Option<&str>,
        after: Option<WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>> {
        let limit = limit as i64;
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM webhooks WHERE server_id = $1 AND id > $2
                AND (CAST($4 AS TEXT) IS NULL OR lower(url) LIKE lower($4) ESCAPE '\\')
              ORDER BY id LIMIT $3"
        );
        let after = after.map_or(0, |id| id.0);
        let params = vec![server_id.0.into(), after.into(), limit.into(), url_part.map(like_pattern).into()];
        self.fetch_all(text, params, read).await
    }

    /// Changes a webhook if it has the version `if_version`, or any version for `None`. `enabled: true` clears the
    /// webhook's failures. A disabled webhook that is enabled again gets only new events.
    pub async fn change_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        if_version: Option<i64>,
        change: WebhookChange,
    ) -> Result<UpdateResult<Webhook>> {
        let (now, is_disabled) = (self.clock.now(), change.enabled == Some(false));
        // A transaction that began before the webhook was disabled may have added outbox rows after the others were
        // removed.
        if change.enabled == Some(true)
            && self.find_webhook(server_id, id).await?.is_some_and(|webhook| !webhook.enabled)
        {
            self.purge_webhook_queue(server_id, id).await?;
        }
        let updated =
            self.write(move |sql| Box::pin(update(sql, server_id, id, if_version, change, now))).await?;
        if is_disabled && matches!(updated, UpdateResult::Done(_)) {
            self.purge_webhook_queue(server_id, id).await?;
        }
        Ok(updated)
    }

    /// Replaces the secret; the old one stays valid until `previous_until`. `Conflict` if `replaces` is given and is
    /// not the current secret.
    pub async fn rotate_webhook_secret(
        &self,
        server_id: ServerId,
        id: WebhookId,
        secret: WebhookSecret,
        replaces: Option<WebhookSecret>,
        previous_until: Timestamp,
    ) -> Result<Webhook> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(rotate_secret(sql, server_id, id, secret, replaces, previous_until, now))
        })
        .await
    }

    /// Deletes a webhook, and then its waiting events: transactions that begin after the deletion add no more.
    pub async fn delete_webhook(&self, server_id: ServerId, id: WebhookId) -> Result<()> {
        self.write(move |sql| Box::pin(delete(sql, server_id, id))).await?;
        self.purge_webhook_queue(server_id, id).await
    }

    /// Disables an endpoint, appends `webhook.disabled`, and removes the endpoint's waiting events. `false` if the
    /// endpoint was already disabled, or has not been failing since `failing_before`, because a post succeeded
    /// meanwhile.
    pub async fn disable_webhook(
        &self,
        server_id: ServerId,
        id: WebhookId,
        reason: String,
        failing_before: Option<Timestamp>,
    ) -> Result<bool> {
        let now = self.clock.now();
        let is_changed = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { disable(sql, &ids, server_id, id, reason, failing_before, now).await })
            })
            .await?;
        if is_changed {
            self.notifier.notify([server_id]);
            self.purge_webhook_queue(server_id, id).await?;
        }
        Ok(is_changed)
    }

    /// Removes all waiting events of a webhook in small steps, so that other transactions can write in between.
    async fn purge_webhook_queue(&self, server_id: ServerId, id: WebhookId) -> Result<()> {
        while self.write(move |sql| Box::pin(purge_queue(sql, server_id, id))).await? > 0 {}
        Ok(())
    }
}

pub(crate) async fn create(sql: &Sql<'_>, new: NewWebhook, now: Timestamp) -> Result<Webhook, StoreError> {
    object_counts::check_ceiling_of_server(sql, new.server_id, LimitedObject::Webhooks, now).await?;
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
    object_counts::adjust_count_of_server(sql, new.server_id, LimitedObject::Webhooks, 1).await?;
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

/// SQL condition: at least one new value differs from the stored one.
macro_rules! is_changed {
    () => {
        "(url, wants, format, enabled)
             IS DISTINCT FROM (coalesce($3, url), coalesce($4, wants), coalesce($5, format), coalesce($6, enabled))"
    };
}

/// Equal values leave the version as it is. `enabled: true` clears the failures, even of an enabled webhook.
pub(crate) async fn update(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
    if_version: Option<i64>,
    change: WebhookChange,
    now: Timestamp,
) -> Result<UpdateResult<Webhook>, StoreError> {
    let clears_failures = change.enabled == Some(true);
    let changed = sql.execute(
        concat!(
            "UPDATE webhooks SET url = coalesce($3, url), wants = coalesce($4, wants), format = coalesce($5, format),
                enabled = coalesce($6, enabled),
                disabled_reason = CASE WHEN CAST($7 AS BIGINT) = 1 THEN NULL ELSE disabled_reason END,
                failing_since = CASE WHEN CAST($7 AS BIGINT) = 1 THEN NULL ELSE failing_since END,
                last_failure_at = CASE WHEN CAST($7 AS BIGINT) = 1 THEN NULL ELSE last_failure_at END,
                version = version + CASE WHEN ",
            is_changed!(),
            " THEN 1 ELSE 0 END, updated_at = CASE WHEN ",
            is_changed!(),
            " THEN $8 ELSE updated_at END
         WHERE server_id = $1 AND id = $2 AND version = coalesce($9, version)"
        ),
        &[
            server_id.0.into(),
            id.0.into(),
            change.url.into(),
            change.events.map(EventSet::bits).into(),
            change.format.map(WebhookFormat::as_str).into(),
            change.enabled.into(),
            clears_failures.into(),
            now.into(),
            if_version.into(),
        ],
    )
    .await?;
    let webhook = find(sql, server_id, id).await?.ok_or(StoreError::NotFound)?;
    Ok(if changed > 0 { UpdateResult::Done(webhook) } else { UpdateResult::OtherVersion(webhook.version) })
}

async fn delete(sql: &Sql<'_>, server_id: ServerId, id: WebhookId) -> Result<(), StoreError> {
    let text = "DELETE FROM webhooks WHERE server_id = $1 AND id = $2";
    sql.execute_one(text, &[server_id.0.into(), id.0.into()]).await?;
    object_counts::adjust_count_of_server(sql, server_id, LimitedObject::Webhooks, -1).await
}

/// Replaces the secret; the old one stays valid until `previous_until`.
pub(crate) async fn rotate_secret(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
    secret: WebhookSecret,
    replaces: Option<WebhookSecret>,
    previous_until: Timestamp,
    now: Timestamp,
) -> Result<Webhook, StoreError> {
    let changed = sql.execute(
        "UPDATE webhooks SET previous_secret = secret, previous_until = $4, secret = $3, updated_at = $5, version = version + 1
         WHERE server_id = $1 AND id = $2 AND secret = coalesce($6, secret)",
        &[
            server_id.0.into(),
            id.0.into(),
            secret.0.into(),
            previous_until.into(),
            now.into(),
            replaces.map(|replaced| replaced.0).into(),
        ],
    )
    .await?;
    let webhook = find(sql, server_id, id).await?.ok_or(StoreError::NotFound)?;
    if changed > 0 { Ok(webhook) } else { Err(StoreError::Conflict) }
}

/// Removes some of a webhook's waiting events; returns how many.
pub(crate) async fn purge_queue(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: WebhookId,
) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 AND event_id IN (
             SELECT event_id FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 ORDER BY event_id LIMIT $3)",
        &[server_id.0.into(), id.0.into(), PURGED_ROWS_MAX.into()],
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
        format: row.parsed(4, WebhookFormat::parse)?,
        enabled: row.flag(5)?,
        disabled_reason: row.text_opt(6)?,
        secret: WebhookSecret(row.text(7)?),
        previous_secret,
        failing_since: row.time_opt(10)?,
        last_success_at: row.time_opt(11)?,
        created_at: row.time(12)?,
        updated_at: row.time(13)?,
        version: row.int(14)?,
    })
}

/// Disables an endpoint and appends `webhook.disabled`. `false` if the endpoint was already disabled, or has not been
/// failing since `failing_before`.
pub(crate) async fn disable(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    server_id: ServerId,
    webhook_id: WebhookId,
    reason: String,
    failing_before: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql
        .execute(
            "UPDATE webhooks SET enabled = 0, disabled_reason = $3, updated_at = $4, version = version + 1
             WHERE server_id = $1 AND id = $2 AND enabled = 1
                 AND (CAST($5 AS BIGINT) IS NULL OR failing_since <= CAST($5 AS BIGINT))",
            &[
                server_id.0.into(),
                webhook_id.0.into(),
                reason.as_str().into(),
                now.into(),
                failing_before.into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    let Some(webhook) = find(sql, server_id, webhook_id).await? else { return Ok(false) };
    let data = json!({ "webhook": { "id": webhook.id, "url": webhook.url, "reason": reason } });
    let event = NewEvent { kind: EventKind::WebhookDisabled, data: data.to_string() };
    append::append_server_event(sql, ids, server_id, &event, now).await?;
    Ok(true)
}
