//! Changes a template, which makes a new version if there is new content.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId, Timestamp};

use super::find::find_by_id;
use super::layouts::lock_layout;
use super::template::{Template, TemplateContent};
use super::versions;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store, UpdateResult};

/// Changes of a template; `None` keeps a value.
#[derive(Debug, Clone, Default)]
pub struct TemplateChange {
    /// The newest version must be this one; otherwise nothing is changed. `None` accepts any newest version.
    pub if_latest: Option<i64>,
    /// `Some(None)` removes the alias.
    pub alias: Option<Option<String>>,
    pub name: Option<String>,
    /// New content, which becomes a new version.
    pub content: Option<TemplateContent>,
}

#[boxed_futures]
impl Store {
    /// Changes alias and name, and adds a version if there is new content. Keeps the newest `versions_kept_max`
    /// versions, the published version and the one published before it. `OtherVersion` if `if_latest` is given and is
    /// not the newest version; `Conflict` if the alias or name is taken, `MissingReference` if the layout that the
    /// content names does not exist.
    pub async fn change_template(
        &self,
        server_id: ServerId,
        id: TemplateId,
        change: TemplateChange,
        versions_kept_max: usize,
    ) -> Result<UpdateResult<Template>> {
        let now = self.clock.now();
        let kept_max = versions_kept_max as i64;
        self.write(move |sql| Box::pin(apply(sql, server_id, id, change, kept_max, now))).await
    }
}

async fn apply(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    change: TemplateChange,
    versions_kept_max: i64,
    now: Timestamp,
) -> Result<UpdateResult<Template>, StoreError> {
    let has_content = change.content.is_some();
    let (sets_alias, alias) = (change.alias.is_some(), change.alias.flatten());
    // Locks the row, so that concurrent changes make separate versions.
    let changed = sql
        .execute(
            "UPDATE templates SET name = coalesce($3, name),
                alias = CASE WHEN CAST($4 AS BIGINT) = 1 THEN $5 ELSE alias END,
                latest = latest + $6,
                updated_at = CASE WHEN $6 = 1 OR (name, alias) IS DISTINCT FROM
                        (coalesce($3, name), CASE WHEN CAST($4 AS BIGINT) = 1 THEN $5 ELSE alias END)
                    THEN $7 ELSE updated_at END
         WHERE server_id = $1 AND id = $2 AND latest = coalesce($8, latest)",
            &[
                server_id.0.into(),
                id.0.into(),
                change.name.into(),
                sets_alias.into(),
                alias.into(),
                has_content.into(),
                now.into(),
                change.if_latest.into(),
            ],
        )
        .await?;
    let template = find_by_id(sql, server_id, id).await?;
    if changed == 0 {
        return Ok(UpdateResult::OtherVersion(template.latest));
    }
    if let Some(content) = change.content {
        lock_layout(sql, server_id, content.layout).await?;
        versions::insert(sql, server_id, id, template.latest, &content, now).await?;
        versions::prune(sql, &template, versions_kept_max).await?;
    }
    Ok(UpdateResult::Done(template))
}
