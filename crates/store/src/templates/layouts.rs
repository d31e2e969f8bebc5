//! Locks layouts while templates that use them are saved.

use postroad_model::{ServerId, TemplateId};

use crate::error::StoreError;
use crate::sql::Sql;

/// Keeps the layout from being deleted until the transaction ends. `MissingReference` if there is no such layout.
pub(super) async fn lock_layout(
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
