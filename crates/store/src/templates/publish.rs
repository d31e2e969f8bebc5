//! Publishes a version of a template.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId, Timestamp};

use super::find::find_by_id;
use super::layouts::lock_layout;
use super::template::Template;
use super::versions;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Publishes this version; also publishes its layout if no version of the layout is published. `NotFound` if the
    /// template or version does not exist, `MissingReference` if the layout does not exist.
    pub async fn publish_template(
        &self,
        server_id: ServerId,
        id: TemplateId,
        version: i64,
    ) -> Result<Template> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(publish(sql, server_id, id, version, now))).await
    }
}

async fn publish(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    version: i64,
    now: Timestamp,
) -> Result<Template, StoreError> {
    sql.execute_one(
        "UPDATE templates SET previous = CASE WHEN published = $3 THEN previous ELSE published END, published = $3,
                updated_at = $4
         WHERE server_id = $1 AND id = $2",
        &[server_id.0.into(), id.0.into(), version.into(), now.into()],
    )
    .await?;
    sql.execute_one(
        "UPDATE template_versions SET published_at = $4 WHERE server_id = $1 AND template_id = $2 AND version = $3",
        &[server_id.0.into(), id.0.into(), version.into(), now.into()],
    )
    .await?;
    let layout = versions::find_layout(sql, server_id, id, version).await?;
    lock_layout(sql, server_id, layout).await?;
    if let Some(layout) = layout {
        publish_layout(sql, server_id, layout, now).await?;
    }
    find_by_id(sql, server_id, id).await
}

/// Publishes the newest version of a layout that has no published version, so that later drafts of the layout change no
/// mail.
async fn publish_layout(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let text = "UPDATE templates SET published = latest, updated_at = $3
                WHERE server_id = $1 AND id = $2 AND published IS NULL";
    let params = [server_id.0.into(), id.0.into(), now.into()];
    if sql.execute(text, &params).await? > 0 {
        let text = "UPDATE template_versions SET published_at = $3 WHERE server_id = $1 AND template_id = $2
                    AND version = (SELECT published FROM templates WHERE server_id = $1 AND id = $2)";
        sql.execute(text, &params).await?;
    }
    Ok(())
}
