//! Deletes a template, unless other templates use it as their layout.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId};

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Deletes a template with all its versions. `InUse` while the newest or published version of another template has
    /// it as its layout.
    pub async fn delete_template(&self, server_id: ServerId, id: TemplateId) -> Result<()> {
        self.write(move |sql| Box::pin(delete(sql, server_id, id))).await
    }
}

async fn delete(sql: &Sql<'_>, server_id: ServerId, id: TemplateId) -> Result<(), StoreError> {
    // Locks the row: a template that is being saved with this layout waits, and then finds the layout deleted.
    let text = "UPDATE templates SET alias = NULL WHERE server_id = $1 AND id = $2";
    sql.execute_one(text, &[server_id.0.into(), id.0.into()]).await?;
    let text = "SELECT v.version FROM template_versions v JOIN templates t ON t.server_id = v.server_id AND t.id = v.template_id
                WHERE v.server_id = $1 AND v.layout_id = $2 AND v.version IN (t.latest, t.published) LIMIT 1";
    if sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?.is_some() {
        return Err(StoreError::InUse);
    }
    let text = "DELETE FROM template_versions WHERE server_id = $1 AND template_id = $2";
    sql.execute(text, &[server_id.0.into(), id.0.into()]).await?;
    let text = "DELETE FROM templates WHERE server_id = $1 AND id = $2";
    sql.execute_one(text, &[server_id.0.into(), id.0.into()]).await
}
