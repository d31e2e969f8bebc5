//! Versions of templates: insert, find, list, prune.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId, Timestamp};

use super::template::{Template, TemplateContent};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

/// A version without its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateVersionInfo {
    pub version: i64,
    pub created_at: Timestamp,
    /// When the version was published last.
    pub published_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateVersion {
    pub info: TemplateVersionInfo,
    pub content: TemplateContent,
}

#[boxed_futures]
impl Store {
    pub async fn find_template_version(
        &self,
        server_id: ServerId,
        id: TemplateId,
        version: i64,
    ) -> Result<Option<TemplateVersion>> {
        let text = "SELECT version, created_at, published_at, content FROM template_versions
                    WHERE server_id = $1 AND template_id = $2 AND version = $3";
        self.fetch_opt(text, vec![server_id.0.into(), id.0.into(), version.into()], read).await
    }

    /// Versions before `before`, newest first.
    pub async fn list_template_versions(
        &self,
        server_id: ServerId,
        id: TemplateId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TemplateVersionInfo>> {
        let text = "SELECT version, created_at, published_at FROM template_versions
                    WHERE server_id = $1 AND template_id = $2 AND version < $3 ORDER BY version DESC LIMIT $4";
        let before = before.unwrap_or(i64::MAX);
        let params = vec![server_id.0.into(), id.0.into(), before.into(), (limit as i64).into()];
        self.fetch_all(text, params, read_info).await
    }
}

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

fn read(row: &Row) -> Result<TemplateVersion> {
    Ok(TemplateVersion { info: read_info(row)?, content: row.json(3)? })
}

fn read_info(row: &Row) -> Result<TemplateVersionInfo> {
    Ok(TemplateVersionInfo { version: row.int(0)?, created_at: row.time(1)?, published_at: row.time_opt(2)? })
}
