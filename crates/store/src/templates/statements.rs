//! Templates: create, find, list, change, publish, delete.

use postroad_model::{ServerId, TemplateId, Timestamp};

use super::records::{NewTemplate, Template, TemplateChange, TemplateKind, TemplateRef};
use super::versions;
use crate::Updated;
use crate::error::StoreError;
use crate::name_part::like_part;
use crate::sql::{Row, Sql};

macro_rules! columns {
    () => {
        "id, server_id, alias, name, kind, latest, published, previous, created_at, updated_at"
    };
}

pub(super) async fn create(
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

pub(super) async fn find(
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

pub(super) async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    name_part: Option<&str>,
    after: Option<TemplateId>,
    limit: i64,
) -> Result<Vec<Template>, StoreError> {
    let text = concat!(
        "SELECT ",
        columns!(),
        " FROM templates WHERE server_id = $1 AND id > $2
            AND (CAST($4 AS TEXT) IS NULL OR lower(name) LIKE lower($4) ESCAPE '\\'
                 OR lower(alias) LIKE lower($4) ESCAPE '\\')
          ORDER BY id LIMIT $3"
    );
    let after = after.map_or(0, |id| id.0);
    let params = [server_id.0.into(), after.into(), limit.into(), name_part.map(like_part).into()];
    sql.query(text, &params).await?.iter().map(read).collect()
}

pub(super) async fn change(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    change: TemplateChange,
    versions_kept_max: i64,
    now: Timestamp,
) -> Result<Updated<Template>, StoreError> {
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
        return Ok(Updated::OtherVersion(template.latest));
    }
    if let Some(content) = change.content {
        lock_layout(sql, server_id, content.layout).await?;
        versions::insert(sql, server_id, id, template.latest, &content, now).await?;
        versions::prune(sql, &template, versions_kept_max).await?;
    }
    Ok(Updated::Done(template))
}

pub(super) async fn publish(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: TemplateId,
    version: i64,
    now: Timestamp,
) -> Result<Template, StoreError> {
    sql.change(
        "UPDATE templates SET previous = CASE WHEN published = $3 THEN previous ELSE published END, published = $3,
                updated_at = $4
         WHERE server_id = $1 AND id = $2",
        &[server_id.0.into(), id.0.into(), version.into(), now.into()],
    )
    .await?;
    sql.change(
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

/// Publishes the newest version of a layout that has none published, so that later drafts of it change no mail.
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

pub(super) async fn delete(sql: &Sql<'_>, server_id: ServerId, id: TemplateId) -> Result<(), StoreError> {
    // Locks the row: a template that is being saved with this layout waits, and then finds it deleted.
    let text = "UPDATE templates SET alias = NULL WHERE server_id = $1 AND id = $2";
    sql.change(text, &[server_id.0.into(), id.0.into()]).await?;
    let text = "SELECT v.version FROM template_versions v JOIN templates t ON t.server_id = v.server_id AND t.id = v.template_id
                WHERE v.server_id = $1 AND v.layout_id = $2 AND v.version IN (t.latest, t.published) LIMIT 1";
    if sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?.is_some() {
        return Err(StoreError::InUse);
    }
    let text = "DELETE FROM template_versions WHERE server_id = $1 AND template_id = $2";
    sql.execute(text, &[server_id.0.into(), id.0.into()]).await?;
    let text = "DELETE FROM templates WHERE server_id = $1 AND id = $2";
    sql.change(text, &[server_id.0.into(), id.0.into()]).await
}

/// Keeps the layout from being deleted until the transaction ends. `MissingReference` if it does not exist.
async fn lock_layout(
    sql: &Sql<'_>,
    server_id: ServerId,
    layout: Option<TemplateId>,
) -> Result<(), StoreError> {
    let Some(id) = layout else { return Ok(()) };
    let text = "UPDATE templates SET kind = kind WHERE server_id = $1 AND id = $2 AND kind = 'layout'";
    match sql.execute(text, &[server_id.0.into(), id.0.into()]).await? {
        0 => Err(StoreError::MissingReference),
        _ => Ok(()),
    }
}

async fn find_by_id(sql: &Sql<'_>, server_id: ServerId, id: TemplateId) -> Result<Template, StoreError> {
    find(sql, server_id, TemplateRef::Id(id)).await?.ok_or(StoreError::NotFound)
}

fn read(row: &Row) -> Result<Template, StoreError> {
    Ok(Template {
        id: TemplateId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        alias: row.text_opt(2)?,
        name: row.text(3)?,
        kind: row.name(4, TemplateKind::parse)?,
        latest: row.int(5)?,
        published: row.int_opt(6)?,
        previous: row.int_opt(7)?,
        created_at: row.time(8)?,
        updated_at: row.time(9)?,
    })
}
