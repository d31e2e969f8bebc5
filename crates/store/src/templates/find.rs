//! Finds and lists templates.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, TemplateId};

use super::template::{Template, TemplateKind, TemplateRef};
use crate::error::StoreError;
use crate::name_part::like_pattern;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

macro_rules! columns {
    () => {
        "id, server_id, alias, name, kind, latest, published, previous, created_at, updated_at"
    };
}

#[boxed_futures]
impl Store {
    pub async fn find_template(
        &self,
        server_id: ServerId,
        template: TemplateRef,
    ) -> Result<Option<Template>> {
        self.read(move |sql| Box::pin(find(sql, server_id, template))).await
    }

    /// Templates after `after`, in the order of their ids; with `name_part`, only those whose name or alias contains
    /// this text.
    pub async fn list_templates(
        &self,
        server_id: ServerId,
        name_part: Option<String>,
        after: Option<TemplateId>,
        limit: usize,
    ) -> Result<Vec<Template>> {
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM templates WHERE server_id = $1 AND id > $2
                AND (CAST($4 AS TEXT) IS NULL OR lower(name) LIKE lower($4) ESCAPE '\\'
                     OR lower(alias) LIKE lower($4) ESCAPE '\\')
              ORDER BY id LIMIT $3"
        );
        let after = after.map_or(0, |id| id.0);
        let name_part = name_part.as_deref().map(like_pattern);
        let params = vec![server_id.0.into(), after.into(), (limit as i64).into(), name_part.into()];
        self.fetch_all(text, params, read).await
    }
}

async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    template: TemplateRef,
) -> Result<Option<Template>, StoreError> {
    let row = match template {
        TemplateRef::Id(id) => {
            let text = concat!("SELECT ", columns!(), " FROM templates WHERE server_id = $1 AND id = $2");
            sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?
        }
        TemplateRef::Alias(alias) => {
            let text = concat!("SELECT ", columns!(), " FROM templates WHERE server_id = $1 AND alias = $2");
            sql.query_opt(text, &[server_id.0.into(), alias.into()]).await?
        }
    };
    row.as_ref().map(read).transpose()
}

pub(super) async fn find_by_id(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
) -> Result<Template, StoreError> {
    find(sql, server_id, TemplateRef::Id(id)).await?.ok_or(StoreError::NotFound)
}

fn read(row: &Row) -> Result<Template, StoreError> {
    Ok(Template {
        id: TemplateId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        alias: row.text_opt(2)?,
        name: row.text(3)?,
        kind: row.parsed(4, TemplateKind::parse)?,
        latest: row.int(5)?,
        published: row.int_opt(6)?,
        previous: row.int_opt(7)?,
        created_at: row.time(8)?,
        updated_at: row.time(9)?,
    })
}
