//! Versions of templates: insert, find, list, prune.

use postroad_model::{ServerId, TemplateId, Timestamp};

use super::records::{Template, TemplateContent, TemplateVersion, TemplateVersionInfo};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};

pub(super) async fn insert(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    version: i64,
    content: &TemplateContent,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO template_versions (server_id, template_id, version, layout_id, content, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            server_id.0.into(),
            id.0.into(),
            version.into(),
            content.layout.map(|layout| layout.0).into(),
            to_json(content).into(),
            now.into(),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    version: i64,
) -> Result<Option<TemplateVersion>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT version, created_at, published_at, content FROM template_versions
             WHERE server_id = $1 AND template_id = $2 AND version = $3",
            &[server_id.0.into(), id.0.into(), version.into()],
        )
        .await?;
    row.map(|row| Ok(TemplateVersion { info: read_info(&row)?, content: row.json(3)? })).transpose()
}

/// The layout of a version, if it has one.
pub(super) async fn find_layout(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    version: i64,
) -> Result<Option<TemplateId>, StoreError> {
    let text =
        "SELECT layout_id FROM template_versions WHERE server_id = $1 AND template_id = $2 AND version = $3";
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into(), version.into()]).await?;
    Ok(row.map(|row| row.int_opt(0)).transpose()?.flatten().map(TemplateId))
}

pub(super) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<TemplateVersionInfo>, StoreError> {
    let rows = sql
        .query(
            "SELECT version, created_at, published_at FROM template_versions
             WHERE server_id = $1 AND template_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4",
            &[server_id.0.into(), id.0.into(), before.unwrap_or(i64::MAX).into(), limit.into()],
        )
        .await?;
    rows.iter().map(read_info).collect()
}

/// Removes all but the newest `kept_max` versions; the published version and the one published before it stay.
pub(super) async fn prune(sql: &Sql<'_>, template: &Template, kept_max: i64) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM template_versions WHERE server_id = $1 AND template_id = $2 AND version <= $3
             AND version <> $4 AND version <> $5",
        &[
            template.server_id.0.into(),
            template.id.0.into(),
            (template.latest - kept_max).into(),
            template.published.unwrap_or(0).into(),
            template.previous.unwrap_or(0).into(),
        ],
    )
    .await?;
    Ok(())
}

fn read_info(row: &Row) -> Result<TemplateVersionInfo, StoreError> {
    Ok(TemplateVersionInfo { version: row.int(0)?, created_at: row.time(1)?, published_at: row.time_opt(2)? })
}
