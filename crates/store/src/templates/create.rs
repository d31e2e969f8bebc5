//! Creates a template.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId, Timestamp};

use super::find::find_by_id;
use super::layouts::lock_layout;
use super::template::{Template, TemplateContent, TemplateKind};
use super::versions;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewTemplate {
    pub server_id: ServerId,
    pub alias: Option<String>,
    pub name: String,
    pub kind: TemplateKind,
    pub content: TemplateContent,
}

#[boxed_futures]
impl Store {
    /// Creates a template with its first version, not published. `Conflict` if the alias or name is taken,
    /// `LimitReached` if the server already has `templates_max` templates, `MissingReference` if the layout does not
    /// exist.
    pub async fn create_template(&self, new: NewTemplate, templates_max: usize) -> Result<Template> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, templates_max as i64, now))).await
    }
}

async fn create(
    sql: &Sql<'_>,
    new: NewTemplate,
    templates_max: i64,
    now: Timestamp,
) -> Result<Template, StoreError> {
    let server_id = new.server_id;
    // Two concurrent calls may both pass this check; the limit need not be exact.
    let text = "SELECT id FROM templates WHERE server_id = $1 ORDER BY id LIMIT $2";
    if sql.query(text, &[server_id.0.into(), templates_max.into()]).await?.len() as i64 >= templates_max {
        return Err(StoreError::LimitReached);
    }
    lock_layout(sql, server_id, new.content.layout).await?;
    let row = sql
        .query_opt(
            "INSERT INTO templates (server_id, alias, name, kind, latest, created_at, updated_at)
             VALUES ($1, $2, $3, $4, 1, $5, $5) RETURNING id",
            &[server_id.0.into(), new.alias.into(), new.name.into(), new.kind.as_str().into(), now.into()],
        )
        .await?;
    let id = TemplateId(row.ok_or(StoreError::Conflict)?.int(0)?);
    versions::insert(sql, server_id, id, 1, &new.content, now).await?;
    find_by_id(sql, server_id, id).await
}
